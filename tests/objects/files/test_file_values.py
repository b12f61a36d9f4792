"""File values in objects: their url is the service's to say.

Parse Server's advisory x4qj-2f4q-r4rx (requests to addresses of a client's choice) is why.
"""

from __future__ import annotations

import pytest

from backend.settings.conf import service_settings
from objects.file_urls import file_url
from tests.objects.files.uploads import stored

pytestmark = pytest.mark.django_db


def file(name: str, url: str | None = None) -> dict[str, str]:
    return {"__type": "File", "name": name} | ({} if url is None else {"url": url})


def test_a_file_goes_into_an_object_and_comes_out_with_its_url(master):
    name = stored("a.png")
    object_id = master.make("Photo", image=file(name), more=[{"deep": file(name)}])
    shown = file(name, f"{service_settings.PUBLIC_URL}/api/files/test-app/{name}")
    assert master.get(f"/classes/Photo/{object_id}").json["image"] == shown
    assert master.get(f"/classes/Photo/{object_id}").json["more"] == [{"deep": shown}]
    assert master.results("Photo", where={"image": file(name)}, keys="image")[0]["image"] == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://localhost:8000.evil.example/x",
        "",
    ],
)
def test_a_url_of_the_client_s_choice_is_never_stored(master, url):
    name = stored("a.png")
    object_id = master.make("Photo", image=file(name, url), list=[], box={})
    master.put(
        f"/classes/Photo/{object_id}", {"list": {"__op": "Add", "objects": [file(name, url)]}}
    )
    master.put(f"/classes/Photo/{object_id}", {"box.inside": file(name, url)})
    body = master.get(f"/classes/Photo/{object_id}").json
    shown = file(name, file_url(name))
    assert (body["image"], body["list"], body["box"]) == (shown, [shown], {"inside": shown})


def test_hosts_that_a_setting_names_may_be_referred_to(master, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": ("cdn.example.org",)}
    for url, is_kept in (
        ("https://cdn.example.org/a.png", True),
        ("https://CDN.example.org/a.png", True),
        ("https://cdn.example.org:444/a.png", True),
        ("https://cdn.example.org.evil.example/a.png", False),
        ("https://evil.example/cdn.example.org", False),
        ("https://cdn.example.org@evil.example/", False),
        ("https://user@cdn.example.org/", False),
        ("https://evil.example\\@cdn.example.org/", False),
        ("https://cdn.example.org\n.evil.example/", False),
        ("ftp://cdn.example.org/a.png", False),
        ("//cdn.example.org/a.png", False),
        ("https://[", False),
    ):
        object_id = master.make("Photo", image=file("a.png", url))
        image = master.get(f"/classes/Photo/{object_id}").json["image"]
        assert image["url"] == (url if is_kept else file_url("a.png")), url


@pytest.mark.parametrize(
    ("domains", "url", "is_stored"),
    [
        (("*",), "http://any.example.net/a.png", True),
        (("*",), "https://user@any.example.net/a.png", False),
        (("*",), "javascript:alert(1)", False),
        (("*",), "file:///etc/passwd", False),
        (("*.example.org",), "https://cdn.example.org/a.png", True),
        (("*.example.org",), "https://a.b.example.org/a.png", True),
        (("*.example.org",), "https://example.org/a.png", False),
        (("*.example.org",), "https://evilexample.org/a.png", False),
        (("*.example.org",), "https://cdn.example.org.evil.example/a.png", False),
    ],
)
def test_a_setting_may_name_all_hosts_or_those_below_one(master, settings, domains, url, is_stored):
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": domains}
    object_id = master.make("Photo", image=file("a.png", url), list=[{"in": file("a.png", url)}])
    body = master.get(f"/classes/Photo/{object_id}").json
    shown = file("a.png", url if is_stored else file_url("a.png"))
    assert (body["image"], body["list"]) == (shown, [{"in": shown}])


def test_a_url_is_the_one_of_today_wherever_objects_are_read(master, settings):
    name = stored("a b.png")
    box = {"text": '{"url": "x", "name": "y", "__type": "File"}', "deep": [file(name)]}
    object_id = master.make("Photo", image=file(name), box=box, note="n")
    master.make("Album", cover={"__type": "Pointer", "className": "Photo", "objectId": object_id})
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": "https://new.example.org"}
    shown = file(name, f"https://new.example.org/api/files/test-app/{name.replace(' ', '%20')}")
    for results in (
        master.get(f"/classes/Photo/{object_id}").json,
        master.results("Photo", where={"image": file(name)})[0],
        master.results("Photo", keys="image,box")[0],
        master.results("Album", include="cover")[0]["cover"],
    ):
        assert results["image"] == shown
        assert results["box"] == {"text": box["text"], "deep": [shown]}


def test_a_trusted_url_stays_as_it_is(master, settings):
    name = stored("a.png")
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": ("old.example.org",)}
    url = f"https://old.example.org/files/{name}"
    object_id = master.make("Photo", image=file(name, url))
    assert master.get(f"/classes/Photo/{object_id}").json["image"]["url"] == url
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_DOMAINS": ()}
    assert master.get(f"/classes/Photo/{object_id}").json["image"]["url"] == file_url(name)


def test_names_that_arent_ours_are_quoted():
    assert file_url("../a b?c#d").endswith("/files/test-app/..%2Fa%20b%3Fc%23d")
    assert file_url("../a").endswith("/files/test-app/..%2Fa")
    assert file_url("a/..").endswith("/files/test-app/a%2F..")
    assert file_url("a/../b c").endswith("/files/test-app/a%2F..%2Fb%20c")

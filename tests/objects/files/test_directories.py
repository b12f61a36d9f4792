"""Files in directories, which the master key or a trigger chooses, as with Parse Server."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command

from backend.kernel.errors import InvalidFileName
from backend.settings.conf import service_settings
from objects.files import service
from objects.files.models import StoredFile
from objects.files.orphans import unused_files
from objects.files.uploads import Upload
from tests.objects.files.uploads import PNG, file_path, send, stored, stored_names, upload
from tests.people import sign_up
from tests.rest import CLIENT, MASTER, READ_ONLY

pytestmark = pytest.mark.django_db

IN_DIRECTORY = {**MASTER, "X-Svc-File-Directory": "reports/2026"}


def in_directory(**headers: str) -> str:
    """The name of a file in ``reports/2026`` that is uploaded with these headers, too."""
    name = stored("a.png", headers={**IN_DIRECTORY, **headers})
    assert name.startswith("reports/2026/"), name
    return name


def test_the_master_key_puts_a_file_into_a_directory():
    answer = upload("my file.png", headers=IN_DIRECTORY)
    directory, _, last = answer.json["name"].rpartition("/")
    assert (answer.status, directory, last[32:]) == (201, "reports/2026", "_my file.png")
    place = f"/api/files/test-app/reports/2026/{last.replace(' ', '%20')}"
    assert answer.json["url"] == f"{service_settings.PUBLIC_URL}{place}"
    shown = send("GET", file_path(answer.json["name"]))
    assert (shown.status, shown.body) == (200, PNG)
    assert shown.headers["content-disposition"] == 'inline; filename="my file.png"'
    described = send("GET", f"/files/test-app/metadata/{answer.json['name']}").json
    assert (described["name"], described["url"]) == (answer.json["name"], answer.json["url"])
    (path,) = (Path(django_settings.DATA_DIR) / "files").rglob("*_my file.png")
    assert path.parent.parent.parts[-2:] == ("reports", "2026")


@pytest.mark.parametrize("content_type", ["application/json", "multipart/form-data; boundary=x"])
def test_file_data_names_the_directory_too(content_type):
    data = {"fileData": {"directory": "a/b"}}
    if content_type == "application/json":
        keys = {"_ApplicationId": "test-app", "_MasterKey": MASTER["X-Svc-Master-Key"]}
        body, headers = json.dumps({"base64": "aGVsbG8=", **data, **keys}).encode(), {}
    else:
        parts = (
            '--x\r\nContent-Disposition: form-data; name="fileData"\r\n\r\n'
            f"{json.dumps(data['fileData'])}\r\n--x\r\n"
            'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
            "hello\r\n--x--\r\n"
        )
        body, headers = parts.encode(), MASTER
    answer = send("POST", "/files/a.txt", body, headers, content_type=content_type)
    assert answer.status == 201, answer.body
    assert answer.json["name"].startswith("a/b/")


def test_clients_choose_no_directory():
    ann = sign_up("ann")
    answer = upload("a.png", headers={**ann.headers, "X-Parse-File-Directory": "reports"})
    assert answer.error == (400, 119)
    assert answer.json["error"] == "Directory can only be set using the Master Key."
    answer = upload("a.png", headers={**ann.headers, "X-Parse-File-Directory": "../a"})
    assert answer.error == (400, 119)
    assert upload("a.png", headers={**READ_ONLY, "X-Svc-File-Directory": "a"}).error == (400, 119)
    assert not stored_names()


@pytest.mark.parametrize(
    "directory",
    [
        *("", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a.b", "a b", "_a", "-a"),
        *("ä", "a\\b", "a\n", "a%2Fb", "metadata", "metadata/a", "a" * 256, "a/" * 127 + "bcd"),
        # No directory is where a file may be.
        *(f"{'0' * 32}_a", f"a/{'0' * 32}_a"),
        *(1, True, [], {}),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_directory_that_is_none_is_refused(directory):
    keys = {"_ApplicationId": "test-app", "_MasterKey": MASTER["X-Svc-Master-Key"]}
    body = {"base64": "aGVsbG8=", "fileData": {"directory": directory}, **keys}
    answer = send("POST", "/files/a.txt", json.dumps(body).encode(), content_type="text/plain")
    assert answer.error == (400, 122)
    assert answer.json["error"].startswith("Directory ")
    assert not stored_names()


def test_an_empty_header_names_no_directory():
    assert "/" not in stored("a.png", headers={**MASTER, "X-Svc-File-Directory": ""})


def test_the_longest_directory_and_name_are_stored_and_found():
    directory = "/".join(["d" * 128, "e" * 127])
    name = stored("f" * 128, headers={**MASTER, "X-Svc-File-Directory": directory})
    assert len(name) == 256 + 1 + 33 + 128
    assert send("GET", file_path(name)).body == PNG


def test_the_master_key_removes_a_file_by_its_whole_name():
    name = in_directory()
    assert send("DELETE", f"/files/{name}", headers=CLIENT).error == (403, 119)
    assert send("DELETE", f"/files/{name.rpartition('/')[2]}", headers=MASTER).error == (400, 153)
    assert send("DELETE", f"/files/other/{name}", headers=MASTER).error == (400, 153)
    assert send("GET", file_path(name)).status == 200
    answer = send("DELETE", f"/files/{name}", headers=MASTER)
    assert (answer.status, answer.json) == (200, {})
    assert send("GET", file_path(name)).status == 404
    assert not stored_names()


def test_parts_after_the_first_may_be_called_metadata():
    name = stored("a.png", headers={**MASTER, "X-Svc-File-Directory": "a/metadata"})
    assert send("GET", file_path(name)).body == PNG
    assert send("GET", f"/files/test-app/metadata/{name}").json["name"] == name
    assert send("DELETE", f"/files/{name}", headers=CLIENT).error == (403, 119)
    assert send("DELETE", f"/files/{name}", headers=MASTER).json == {}
    assert not stored_names()


@pytest.mark.parametrize("directory", ["metadata", "a" * 256, f"{'0' * 32}_a", "a/../b", "-"])
def test_a_file_of_another_server_has_a_directory_that_files_here_may_have(directory):
    with Upload(100) as incoming, pytest.raises(InvalidFileName):
        service.transfer(f"{directory}/{'1' * 32}_a.txt", incoming, None)


def test_a_private_file_in_a_directory_is_opened_by_its_link():
    name = in_directory(**{"X-Svc-File-ACL": "{}"})
    assert send("GET", file_path(name)).status == 404
    described = send("GET", f"/files/test-app/metadata/{name}", headers=MASTER).json
    link = described["url"].removeprefix(service_settings.PUBLIC_URL)
    assert send("GET", link).body == PNG
    other = in_directory(**{"X-Svc-File-ACL": "{}"})
    assert send("GET", link.replace(name, other)).status == 404


def test_files_with_a_host_of_their_own_keep_their_directory(settings):
    name = in_directory()
    settings.SERVICE = {**settings.SERVICE, "FILE_HOST": "files.example.org"}
    moved = send("GET", file_path(name))
    assert moved.status == 307
    assert moved.headers["location"].endswith(f"//files.example.org/api/files/test-app/{name}")
    on_host = {**MASTER, "Host": "files.example.org"}
    assert send("GET", file_path(name), headers=on_host).body == PNG
    for deeper in (name, f"a/metadata/{name}"):
        assert send("DELETE", f"/files/{deeper}", headers=on_host).error == (404, 108)
    assert send("GET", file_path(name), headers=on_host).body == PNG


def test_an_object_shows_the_address_of_today(master, settings):
    name = in_directory()
    object_id = master.make("Photo", image={"__type": "File", "name": name})
    place = f"/api/files/test-app/{name}"
    image = master.get(f"/classes/Photo/{object_id}").json["image"]
    assert image["url"] == f"{service_settings.PUBLIC_URL}{place}"
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": "https://new.example.org"}
    image = master.get(f"/classes/Photo/{object_id}").json["image"]
    assert image == {"__type": "File", "name": name, "url": f"https://new.example.org{place}"}


def test_clean_files_finds_unused_files_in_directories(master):
    used, unused, plain = in_directory(), in_directory(), stored("a.png")
    in_hex = stored("a.png", headers={**MASTER, "X-Svc-File-Directory": f"x{'0' * 32}_a"})
    master.make("Photo", image={"__type": "File", "name": used}, text=f"see {in_hex}")
    StoredFile.objects.update(created_at=datetime.now(UTC) - timedelta(hours=48))
    with unused_files() as found:
        assert {each.name for each in found} == {unused, plain}
    call_command("clean_files", "--delete", stdout=io.StringIO())
    assert send("GET", file_path(used)).body == send("GET", file_path(in_hex)).body == PNG
    assert send("GET", file_path(unused)).status == 404


def test_clean_files_removes_files_of_other_servers_that_share_their_digits(master):
    names = [f"{'1' * 32}_a.txt", f"a/{'1' * 32}_a.txt", f"{'1' * 32}_b.txt", f"{'2' * 32}_b.txt"]
    for name in names:
        with Upload(100) as incoming:
            incoming.write(b"hello")
            assert service.transfer(name, incoming, None)
    StoredFile.objects.update(created_at=datetime.now(UTC) - timedelta(hours=48))
    with unused_files() as found:
        assert {each.name for each in found} == {*names}
    master.make("Photo", text=names[1])
    with unused_files() as found:
        assert {each.name for each in found} == {names[3]}

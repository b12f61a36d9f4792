"""Uploads are content of strangers: what they are served as, for every name, type and storage.

The table crosses names, declared types and storages. A browser decides by the response's headers
alone (``nosniff``), so the headers are the evidence here; ``test_uploads_in_browsers`` shows the
effect in Chromium.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage

from objects.files.delivery import content_headers, served_type
from objects.files.models import StoredFile
from tests.objects.files.conftest import empty_storage  # noqa: F401
from tests.objects.files.test_file_settings import read
from tests.objects.files.uploads import PNG, Sent, file_path, send, stored, upload
from tests.rest import MASTER

pytestmark = pytest.mark.django_db

# https://mimesniff.spec.whatwg.org/#javascript-mime-type, and what else a browser executes, applies
# or shows as a document.
JAVASCRIPT = [
    *("application/ecmascript", "application/javascript", "application/x-ecmascript"),
    *("application/x-javascript", "text/ecmascript", "text/javascript", "text/javascript1.0"),
    *("text/javascript1.5", "text/jscript", "text/livescript", "text/x-ecmascript"),
    "text/x-javascript",
]
ACTIVE = [
    *JAVASCRIPT,
    *("text/html", "application/xhtml+xml", "text/xml", "application/xml", "application/x+xml"),
    *("application/rss+xml", "image/x+xml", "audio/x+xml", "video/x+xml", "font/x+xml"),
    *("application/vnd.mozilla.xul+xml", "application/vnd.wap.xhtml+xml", "text/xsl", "text/vnd.a"),
    *("text/css", "application/wasm", "text/cache-manifest", "application/manifest+json"),
    *("application/importmap+json", "application/speculationrules+json", "text/event-stream"),
    *("multipart/x-mixed-replace", "multipart/related", "multipart/form-data", "message/rfc822"),
    *("application/x-shockwave-flash", "application/java-archive", "application/x-java-applet"),
    *("application/x-ns-proxy-autoconfig", "text/x-component", "text/", "*/*", "unknown/unknown"),
]
HARMLESS = [
    *("image/png", "image/svg+xml", "audio/mpeg", "video/mp4", "text/plain", "text/csv"),
    *("application/pdf", "application/json", "application/zip", "font/woff2", "text/markdown"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
]
NAMES = [
    *("a.js", "a.mjs", "a.cjs", "a.JS", "a.js.", "a.png.js", "a.css", "a.wasm", "a.json", "a.xml"),
    *("a.html", "a.svg", "a.htc", "a.swf", "a.jar", "a.vbs", "a.pac", "a.appcache", "a.php"),
    *("a.png", "a.txt", "a.pdf", "a.mp4", "a.unknown", "a", "sw.js"),
]
DOCUMENTS = re.compile(r"text/html|.*\+xml|(?:text|application)/xml")
# Types that a browser may display without a question, by the decision.
DISPLAYED = re.compile(r"image/(?!svg)[\w.-]+|(?:audio|video)/[\w.-]+|text/plain|application/pdf")


@pytest.fixture(params=["folder", "remote"])
def storage(request: Any, settings: Any) -> str:
    """The storage of this machine, and one that reads by ranges as the S3 storage does."""
    if request.param == "remote":
        files = settings.STORAGES["files"]
        backend = f"{__name__}.RangedStorage"
        settings.STORAGES = {**settings.STORAGES, "files": {**files, "BACKEND": backend}}
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("*",)}
    return str(request.param)


class RangedStorage(FileSystemStorage):
    """A storage with the interface of ``objects.files.s3``."""

    def open_range(self, key: str, start: int, length: int) -> tuple[io.BytesIO, int]:
        content = Path(self.path(key)).read_bytes()
        return io.BytesIO(content[start : start + length]), len(content)


def assert_inert(answer: Sent) -> None:
    """No browser runs this response, shows it as a document, or takes it for a script."""
    headers = answer.headers
    media_type, _, remaining = headers["content-type"].partition(";")
    assert headers["x-content-type-options"] == "nosniff"
    assert media_type not in ACTIVE
    assert not DOCUMENTS.fullmatch(media_type) or media_type == "image/svg+xml"
    assert not remaining or re.fullmatch(r" charset=(utf-8|us-ascii|iso-8859-1)", remaining)
    disposition = headers["content-disposition"].partition(";")[0]
    assert disposition == ("inline" if DISPLAYED.fullmatch(media_type) else "attachment")
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert policy.endswith("; sandbox")
    assert headers["cross-origin-resource-policy"] == "cross-origin"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", NAMES)
def test_no_name_and_type_make_an_upload_active(name, storage):
    content = b"alert(document.domain)"
    for declared in (*ACTIVE, *HARMLESS, "", "text/javascript; charset=utf-7"):
        sent = upload(name, content, declared)
        if sent.status != 201:
            assert sent.error == (400, 130), declared
            continue
        path = file_path(sent.json["name"])
        response = send("GET", path)
        assert response.body == content
        assert_inert(response)
        assert_inert(send("HEAD", path))
        part = send("GET", path, headers={"Range": "bytes=0-4"})
        assert (part.status, part.body) == (206, content[:5])
        assert_inert(part)
        unchanged = send("GET", path, headers={"If-None-Match": response.headers["etag"]})
        assert unchanged.status == 304
        assert_inert(unchanged)


@pytest.mark.parametrize("media_type", ACTIVE)
@pytest.mark.parametrize("spelling", ["{}", "{};charset=utf-8", "{} ; charset=utf-16"])
def test_an_active_type_in_the_table_is_served_as_bytes(media_type, spelling):
    """Also a row that an earlier release or another program wrote."""
    name = stored("a.bin", b"alert(1)")
    StoredFile.objects.filter(name=name).update(content_type=spelling.format(media_type).upper())
    answer = send("GET", file_path(name))
    if media_type != "image/x+xml":
        assert answer.headers["content-type"] == "application/octet-stream"
    assert_inert(answer)


@pytest.mark.parametrize(
    ("content_type", "served"),
    [
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ('text/plain; charset="UTF-8"', "text/plain; charset=utf-8"),
        ("text/csv; charset=iso-8859-1", "text/csv; charset=iso-8859-1"),
        ("text/plain; charset=utf-7", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-16", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-16le", "text/plain; charset=utf-8"),
        ("text/plain; charset=utf-32", "text/plain; charset=utf-8"),
        ("text/plain; charset=iso-2022-jp", "text/plain; charset=utf-8"),
        ("text/plain; charset=hz-gb-2312", "text/plain; charset=utf-8"),
        ("text/plain; charset=x-user-defined", "text/plain; charset=utf-8"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("application/json", "application/json"),
        ("image/png; charset=utf-8", "image/png"),
        ("application/pdf; charset=utf-8", "application/pdf"),
        ("text/plain; a=b; charset=utf-8; c=d", "text/plain; charset=utf-8"),
        ("", "application/octet-stream"),
        ("\r\nX: y", "application/octet-stream"),
    ],
)
def test_a_charset_never_makes_another_text_of_the_bytes(content_type, served):
    assert served_type(content_type) == served


def test_a_polyglot_is_what_its_name_says(storage):
    gif = b"GIF89a/*" + b"\0" * 20 + b"*/=1;alert(document.domain)"
    pdf = b"%PDF-1.7\n<html><script>alert(1)</script>"
    text = b"a <script>alert(1)</script>"
    for name, content in (("a.gif", gif), ("a.pdf", pdf), ("a.txt", text)):
        answer = send("GET", file_path(stored(name, content, "text/javascript")))
        assert_inert(answer)
    assert send("GET", file_path(stored("a", gif, "text/javascript"))).headers["content-type"] == (
        "application/octet-stream"
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Service-Worker": "script"},
        {"Service-Worker": ""},
        *(
            {"Sec-Fetch-Dest": destination}
            for destination in (
                *("script", "worker", "sharedworker", "serviceworker", "audioworklet"),
                *("paintworklet", "xslt", "style", "manifest", " Script "),
            )
        ),
    ],
)
@pytest.mark.parametrize("name", ["sw.js", "a.png", "a.json"])
def test_a_browser_gets_no_file_as_a_script(headers, name):
    path = file_path(stored(name, b"alert(1)"))
    for keys in ({}, MASTER):
        assert send("GET", path, headers={**keys, **headers}).error == (403, 119)


@pytest.mark.parametrize(
    "destination", ["image", "audio", "video", "document", "iframe", "empty", "font", "track", ""]
)
def test_a_browser_gets_a_file_for_everything_else(destination):
    path = file_path(stored("a.png", PNG))
    assert send("GET", path, headers={"Sec-Fetch-Dest": destination}).status == 200


def test_errors_and_other_responses_of_the_route_are_no_scripts_either():
    path = file_path(stored("a.js", b"alert(1)"))
    outside = send("GET", path, headers={"Range": "bytes=100-"})
    assert outside.status == 416
    assert outside.headers["x-content-type-options"] == "nosniff"
    for answer in (send("GET", file_path("0" * 32 + "_a.js")), send("GET", "/classes/A")):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_headers_of_a_name_hold_nothing_else():
    headers = content_headers("0" * 32 + "_a b~@.png", "image/png")
    assert headers["Content-Disposition"] == 'inline; filename="a b~@.png"'
    assert not any("\n" in value or "\r" in value for value in headers.values())


# -- A separate host ------------------------------------------------------------------------------

SEPARATE = "files.example.org"


@pytest.fixture
def separate(settings: Any) -> str:
    settings.SERVICE = {**settings.SERVICE, "FILE_HOST": SEPARATE}
    return SEPARATE


@pytest.mark.parametrize("host", [SEPARATE, "FILES.example.org", "files.example.org.:8443"])
def test_the_host_for_files_serves_files_and_nothing_else(separate, host):
    name = stored("a.png", PNG)
    at = {"Host": host}
    assert send("GET", file_path(name), headers=at).body == PNG
    assert send("HEAD", file_path(name), headers=at).status == 200
    for method, path, body in (
        ("GET", "/classes/Game", b""),
        ("POST", "/classes/Game", b"{}"),
        ("POST", "/files/a.png", PNG),
        ("DELETE", f"/files/{name}", b""),
        ("GET", f"/files/test-app/metadata/{name}", b""),
        ("GET", "/health", b""),
        ("GET", "/docs", b""),
        ("GET", "/apps/test-app/choose_password", b""),
        ("POST", "/batch", json.dumps({"requests": []}).encode()),
        ("GET", "/unknown", b""),
    ):
        answer = send(method, path, body, headers={**MASTER, **at})
        assert answer.error == (404, 108), (method, path)
    assert send("PUT", file_path(name), headers={**MASTER, **at}).error == (405, 108)


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/health", "/ready", "/static/x.js"])
def test_no_page_of_the_site_is_on_the_host_for_files(separate, path, client):
    from django.test import Client

    assert Client().get(path, headers={"host": SEPARATE}).status_code == 404


def test_files_are_served_nowhere_else(separate, master):
    name = stored("a b.js", b"alert(1)")
    answer = send("GET", file_path(name), headers={"Host": "localhost"})
    assert (answer.status, answer.body) == (307, b"")
    assert answer.headers["location"] == (
        f"http://{SEPARATE}/api/files/test-app/{name.replace(' ', '%20')}"
    )
    signed = send("GET", f"{file_path(name)}?expires=1&signature=a%3Db")
    assert signed.headers["location"].endswith("?expires=1&signature=a%3Db")
    assert send("GET", file_path("x")).error == (404, 101)
    assert send("GET", file_path("0" * 32 + "_\r\nX: y")).status == 400
    photo = master.make("Photo", image={"__type": "File", "name": name})
    url = master.get(f"/classes/Photo/{photo}").json["image"]["url"]
    assert url == answer.headers["location"]


def test_a_request_for_a_script_is_refused_before_it_is_sent_on(separate):
    path = file_path(stored("a.js", b"alert(1)"))
    assert send("GET", path, headers={"Service-Worker": "script"}).error == (403, 119)


def test_the_admin_shows_images_of_the_host_for_files(separate, admin_client):
    policy = admin_client.get("/admin/").headers["Content-Security-Policy"]
    assert f"img-src 'self' data: http://{SEPARATE};" in policy


@pytest.mark.parametrize("path", ["/ws", "/livequery", "/api", "/"])
def test_no_socket_is_on_the_host_for_files(separate, path):
    from backend.asgi import application

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def answer(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": path, "headers": [(b"host", b"Files.example.org:80")]}
    asyncio.run(application(scope, receive, answer))
    assert sent == [{"type": "websocket.close", "code": 4404}]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("https://files.example.org", "must be a host"),
        ("files.example.org/x", "must be a host"),
        ("a@files.example.org", "must be a host"),
        ("files.example.org:x", "must be a host"),
        ("a b", "must be a host"),
        ("API.example.org", "must be another host"),
        ("api.example.org:8443", "must be another host"),
    ],
)
def test_a_host_for_files_that_separates_nothing_is_refused_at_the_start(value, problem):
    done = read("file_settings.service_values('https://api.example.org')", FILE_HOST=value)
    assert done.returncode == 1
    assert f"FILE_HOST {problem}" in done.stderr


def test_a_host_for_files_is_read_in_any_case():
    done = read(
        "file_settings.service_values('https://a.example')", FILE_HOST="Files.Example.org:8"
    )
    assert json.loads(done.stdout)["FILE_HOST"] == "files.example.org:8"

"""What is taken, by extension, by Content-Type and by content.

Parse Server's advisories on uploads are among the cases: 9prm-jqwx-45x9 (HTML), hcj7-6gxh-24ww
(SVG), v5hf-f4c3-m5rv (XML families), 42ph-pf9q-cr72 (parameters of a Content-Type),
vr5f-2r24-w5hc (a type that the extension doesn't have), v8x7-r927-cc93 (extensions that nobody
knows), r899-h629-j84r (a malformed Content-Type), 7wqv-xjf3-x35v (dots at the end of a name),
792q-q67h-w579 (no extension at all).
"""

from __future__ import annotations

import json

import pytest

from backend.settings.conf import DEFAULTS
from objects.files.markup import markup
from tests.objects.files.uploads import PNG, file_path, send, stored, stored_names, upload
from tests.rest import MASTER

pytestmark = pytest.mark.django_db

DENIED = DEFAULTS["FILE_EXTENSIONS_DENIED"]


def refused(name: str, content: bytes = b"text", content_type: str = "") -> bool:
    """Whether an upload is refused, raw and as JSON, and nothing is kept of it."""
    import base64

    raw = upload(name, content, content_type)
    message = {
        "_ApplicationId": "test-app",
        "_MasterKey": "test-master-key",
        "_ContentType": content_type,
        "base64": base64.b64encode(content).decode(),
    }
    as_json = send("POST", f"/files/{name}", json.dumps(message).encode())
    assert raw.status == as_json.status, (raw.body, as_json.body)
    if raw.status == 201:
        return False
    assert raw.error == as_json.error == (400, 130)
    assert not stored_names()
    return True


def test_all_families_of_markup_are_denied_by_default():
    families = {"html", "xhtml", "shtml", "svg", "svgz", "xml", "xsl", "xslt", "rdf", "mathml"}
    assert families <= set(DENIED)


@pytest.mark.parametrize("extension", DENIED)
def test_markup_is_refused_by_extension(extension):
    answer = upload(f"a.{extension}", b"text")
    assert answer.error == (400, 130)
    assert answer.json["error"] == f"File upload of extension {extension} is disabled."


@pytest.mark.parametrize(
    "name",
    ["a.HTML", "a.sVg", "a.html.", "a.svg...", "a.html ", "a.svg. . ", "a.png.xml", "html.htm"],
)
def test_no_spelling_hides_an_extension(name):
    assert refused(name)


@pytest.mark.parametrize("name", ["page", "page.unknown", "page.html5x", "page.html~", "page."])
@pytest.mark.parametrize(
    "content_type",
    [
        "text/html",
        "TEXT/HTML",
        " text/html ",
        "text/html; charset=utf-8",
        "text/html;",
        "text/html ;a=b",
        'text/html;a="b"',
        "application/xhtml+xml",
        "image/svg+xml",
        "image/svg+xml;charset=utf-8",
        "Image/SVG+XML",
        "image/svg",
        "text/xml",
        "application/xml",
        "application/xml-dtd",
        "application/rss+xml",
        "application/atom+xml",
        "application/mathml+xml",
        "application/rdf+xml",
        "text/xsl",
        "application/xslt+xml",
        "application/vnd.mozilla.xul+xml",
        "application/x-html",
        "message/rfc822",
        "multipart/related",
        "multipart/x-mixed-replace; boundary=a",
        "text/x-component",
    ],
)
def test_markup_is_refused_by_content_type(name, content_type):
    assert refused(name, b"text", content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        "text",
        "text/",
        "/html",
        "text/html/x",
        "image/png, text/html",
        "image/png text/html",
        "text/html\t;x",
        "te(xt/html",
        "text/html;charset",
        "x" * 300 + "/y",
        "image/png;a=\"b\x01\"",
        "*",
    ],
)  # fmt: skip
def test_a_malformed_content_type_is_refused(content_type):
    assert refused("page", b"text", content_type)


MARKUP = [
    b"<!DOCTYPE html><p>",
    b"<html>",
    b"<HTML lang=en>",
    b"  \r\n\t<script>alert(1)</script>",
    b"\xef\xbb\xbf<html>",
    b"<!-- a --><html>",
    b"<body onload=alert(1)>",
    b"<iframe src=x>",
    b"<a href=x>",
    b"<img src=x onerror=alert(1)>",
    b"<svg onload=alert(1)>",
    b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
    b'<s:svg xmlns:s="http://www.w3.org/2000/svg"/>',
    b"<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'svg11.dtd'><svg/>",
    b'<?xml version="1.0"?><a/>',
    b'<?xml version="1.0"?><svg/>',
    b'<?xml-stylesheet href="x"?><a/>',
    b'<r xmlns:h="http://www.w3.org/1999/xhtml"><h:script>alert(1)</h:script></r>',
    b"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
    "<html>".encode("utf-16"),
    "<html>".encode("utf-16-be"),
    "\ufeff<svg/>".encode("utf-16-be"),
    "<html>".encode("utf-32"),
    b"\0\0<html>",
]


@pytest.mark.parametrize("content", MARKUP)
def test_markup_is_refused_by_its_content(content):
    assert markup(content) is not None
    assert refused("a.png", content, "image/png")


@pytest.mark.parametrize(
    "content",
    [
        PNG,
        b"",
        b"text",
        b"<",
        b"<3 you",
        b"< html>",
        b"a <html>",
        b"<htmlx>",
        b"<?php echo 1;",
        b"{\"a\": \"<html>\"}",
        b"%PDF-1.7 <html>",
        b"GIF89a<script>alert(1)</script>",
        b"# Title\n<script>",
        b"\xff\xfea\0b\0",
        b"<bytes>",
    ],
)  # fmt: skip
def test_what_isnt_markup_isnt_taken_for_it(content):
    assert markup(content) is None


@pytest.mark.parametrize(
    ("name", "content_type", "served"),
    [
        ("a.png", "", "image/png"),
        ("a.png", "image/png", "image/png"),
        ("a.png", "text/plain", "image/png"),
        ("a.PNG", "application/octet-stream", "image/png"),
        ("a.txt", "text/plain; charset=UTF-8", "text/plain; charset=utf-8"),
        ("a.txt", "application/x-www-form-urlencoded", "text/plain; charset=utf-8"),
        ("a.jpg", "application/javascript", "image/jpeg"),
        ("a.txt", "text/html", "text/plain; charset=utf-8"),
        ("a.png", "image/svg+xml", "image/png"),
        ("a.txt", "no type", "text/plain; charset=utf-8"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", None),
        ("a.webp", "", "image/webp"),
        ("a", "image/jpeg", "image/jpeg"),
        ("a", "", "application/octet-stream"),
        ("a", "application/x-www-form-urlencoded", "application/octet-stream"),
        ("a.unknown", "audio/x-mine", "audio/x-mine"),
        ("a.", "image/png; x=y", "image/png"),
        ("1", "text/plain;charset=\"utf-8\"", "text/plain; charset=utf-8"),
    ],
)  # fmt: skip
def test_files_are_served_as_what_their_extension_says(name, content_type, served):
    got = send("GET", file_path(stored(name, b"some content", content_type)))
    assert got.headers["content-type"] == (served or content_type)


@pytest.mark.parametrize(
    ("name", "content_type", "full"),
    [
        ("a", "image/jpeg", "a.jpg"),
        ("a", "text/plain; charset=utf-8", "a.txt"),
        ("a.", "image/png", "a.png"),
        ("a", "application/octet-stream", "a.bin"),
        ("a", "", "a"),
        ("a", "application/x-www-form-urlencoded", "a"),
        ("a", "audio/x-unheard-of", "a"),
        ("a.unknown", "image/png", "a.unknown"),
        ("a.png", "image/jpeg", "a.png"),
        ("a" * 124, "image/png", "a" * 124 + ".png"),
        ("a" * 125, "image/png", "a" * 125),
    ],
)
def test_a_name_without_an_extension_gets_that_of_its_type(name, content_type, full):
    assert stored(name, b"some content", content_type)[33:] == full


def test_a_list_of_allowed_extensions_lets_nothing_else_in(settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("png", "jpg")}
    assert refused("a.txt")
    assert refused("a")
    assert refused("a.svg")
    assert refused("a", b"text", "text/plain")
    assert refused("a.png", b"<svg/>")
    assert not refused("a.png", b"text", "text/html")
    assert not refused("a.png", PNG)
    assert not refused("a", PNG, "image/png")


def test_what_is_allowed_by_name_comes_before_what_is_denied(settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("gpx", "xml")}
    assert not refused("a.gpx", b"<?xml version='1.0'?><gpx/>", "application/gpx+xml")
    assert upload("a.gpx", b"<html>").status == 400
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("*",)}
    assert not refused("a.svg", b"<svg/>", "image/svg+xml")


def test_the_denied_extensions_may_be_others(settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_DENIED": ("exe",)}
    assert not refused("a.svg", b"<svg/>", "image/svg+xml")
    assert upload("a.exe", b"MZ").error == (400, 130)
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_DENIED": ("bin",)}
    assert upload("a", b"text", "application/octet-stream").error == (400, 130)


def test_the_master_key_is_bound_by_types_too():
    assert upload("a.html", b"<html>", "text/html", headers=MASTER).status == 400

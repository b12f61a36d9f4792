"""Downloads: ranges, conditions, headers."""

from __future__ import annotations

import hashlib

import pytest
from django.http import StreamingHttpResponse

from tests.objects.files.uploads import PNG, file_path, send, stored

pytestmark = pytest.mark.django_db

TEXT = bytes(n % 251 for n in range(200_000))


@pytest.fixture
def path():
    return file_path(stored("a.bin", TEXT))


def test_the_whole_file_with_its_headers(path):
    answer = send("GET", path)
    assert (answer.status, answer.body) == (200, TEXT)
    headers = answer.headers
    assert headers["content-length"] == str(len(TEXT))
    assert headers["etag"] == f'"{hashlib.sha256(TEXT).hexdigest()}"'
    assert headers["accept-ranges"] == "bytes"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "public, max-age=86400, immutable"
    assert headers["last-modified"].endswith("GMT")


def test_head_says_the_same_without_the_content(path):
    head, got = send("HEAD", path), send("GET", path)
    del head.headers["x-request-id"], got.headers["x-request-id"]
    assert (head.status, head.body, head.headers) == (200, b"", got.headers)


@pytest.mark.parametrize(
    ("range_header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-99", 0, 99),
        ("bytes=100-", 100, 199_999),
        ("bytes=65000-140000", 65000, 140_000),
        ("bytes=-5", 199_995, 199_999),
        ("bytes=-900000", 0, 199_999),
        ("bytes=199999-", 199_999, 199_999),
        ("bytes=5-999999999", 5, 199_999),
        ("bytes=0-99999999999999999999", 0, 199_999),
        (f"bytes={'0' * 30}1-{'9' * 4000}", 1, 199_999),
        (f"bytes=-{'9' * 400}", 0, 199_999),
    ],
)
def test_a_range_is_a_part(path, range_header, first, last):
    answer = send("GET", path, headers={"Range": range_header})
    assert (answer.status, answer.body) == (206, TEXT[first : last + 1])
    assert answer.headers["content-range"] == f"bytes {first}-{last}/200000"
    assert answer.headers["content-length"] == str(last + 1 - first)
    head = send("HEAD", path, headers={"Range": range_header})
    assert (head.status, head.body) == (206, b"")


@pytest.mark.parametrize("range_header", ["bytes=200000-", "bytes=-0", "bytes=999999-1000000"])
def test_a_range_outside_is_416(path, range_header):
    answer = send("GET", path, headers={"Range": range_header})
    assert (answer.status, answer.body) == (416, b"")
    assert answer.headers["content-range"] == "bytes */200000"


@pytest.mark.parametrize(
    "range_header",
    ["bytes=5-4", "bytes=-", "bytes=a-b", "items=0-1", "bytes=0-1,5-6", "bytes 0-1", "", "bytes=9"],
)
def test_a_range_that_isnt_one_is_answered_with_the_whole(path, range_header):
    assert send("GET", path, headers={"Range": range_header}).status == 200


def test_a_range_of_another_version_is_answered_with_the_whole(path):
    headers = send("HEAD", path).headers
    for condition, status in (
        (headers["etag"], 206),
        (headers["last-modified"], 206),
        ('"other"', 200),
        (f"W/{headers['etag']}", 200),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 200),
        ("rubbish", 200),
    ):
        answer = send("GET", path, headers={"Range": "bytes=0-1", "If-Range": condition})
        assert answer.status == status, condition


def test_what_the_client_has_isnt_sent_again(path):
    existing = send("HEAD", path).headers
    etag, date = existing["etag"], existing["last-modified"]
    for headers, status in (
        ({"If-None-Match": etag}, 304),
        ({"If-None-Match": f"W/{etag}"}, 304),
        ({"If-None-Match": f'"x", {etag}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"x"'}, 200),
        ({"If-None-Match": '"x"', "If-Modified-Since": date}, 200),
        ({"If-Modified-Since": date}, 304),
        ({"If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, 200),
        ({"If-Modified-Since": "rubbish"}, 200),
    ):
        answer = send("GET", path, headers=headers)
        assert answer.status == status, headers
        if status == 304:
            assert answer.body == b""
            assert answer.headers["etag"] == etag


@pytest.mark.parametrize(
    ("name", "content", "disposition"),
    [
        ("a.png", PNG, "inline"),
        ("a.txt", b"plain text", "inline"),
        ("a.pdf", b"%PDF-1.7", "inline"),
        ("a.mp4", b"\0\0\0\x18ftypmp42", "inline"),
        ("a.js", b"alert(1)", "attachment"),
        ("a.css", b"a {}", "attachment"),
        ("a.json", b"{}", "attachment"),
        ("a.zip", b"PK\3\4", "attachment"),
        ("a", b"bytes", "attachment"),
        ("a b.zip", b"PK\3\4", "attachment"),
    ],
)
def test_only_what_cant_act_is_shown_by_browsers(name, content, disposition):
    answer = send("GET", file_path(stored(name, content)))
    assert answer.headers["content-disposition"] == f'{disposition}; filename="{name}"'
    sandboxed = answer.headers.get("content-security-policy") == "default-src 'none'; sandbox"
    assert sandboxed is (disposition == "attachment")


def test_what_would_run_is_for_saving_only_where_it_is_taken(settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_EXTENSIONS_ALLOWED": ("*",)}
    name = stored("a.html", b"<html><script>alert(1)</script></html>", "text/html")
    answer = send("GET", file_path(name))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_a_browser_on_another_page_may_read(path):
    answer = send("GET", path, headers={"Origin": "https://example.org", "Range": "bytes=0-1"})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (206, "*")


def test_a_row_without_bytes_is_404(tmp_path):
    name = stored("a.png")
    (tmp_path / "files" / name[:2] / name).unlink()
    assert send("GET", file_path(name)).error == (404, 101)


def test_django_s_own_way_answers_the_same(path):
    from django.test import Client

    response = Client().get(f"/api{path}", headers={"Range": "bytes=1-3"})
    assert isinstance(response, StreamingHttpResponse)
    assert (response.status_code, response.getvalue()) == (206, TEXT[1:4])

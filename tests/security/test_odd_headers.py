"""Odd content types, lengths and credentials are no internal errors on any face."""

from __future__ import annotations

from typing import Any

import pytest

from backend.wsgi import application
from tests.rest import CLIENT, Api
from tests.security.fuzz.requests import request

pytestmark = pytest.mark.django_db

FORM = b'--a\r\nContent-Disposition: form-data; name="username"\r\n\r\n\xff\xfe\r\n--a--\r\n'
KINDS = [
    *(f"text/plain; charset={name}" for name in ("zlib", "undefined", "idna", "utf-16", "x\x00y")),
    *(
        "text/plain; charset*=zz'a'b",
        "text/plain; a*=undefined'a'%ff",
        "text/plain; ;=;*=*0*=",
        ";",
    ),
    "application/x-www-form-urlencoded; charset=zlib",
    "multipart/form-data; boundary=a; charset=undefined",
    "multipart/form-data; boundary=a; b*=zz'a'b",
    "multipart/form-data; boundary*=undefined'a'%ff",
    "multipart/form-data; boundary=\xe9",
]
FACES = [
    ("GET", "/health"),
    ("GET", "/admin/login/"),
    ("POST", "/admin/login/"),
    ("GET", "/api/classes/Game"),
    ("POST", "/api/classes/Game"),
    ("POST", "/api/files/a.txt"),
    ("POST", "/api/apps/test-app/request_password_reset"),
    ("POST", "/api/nothing"),
]


def status(method: str, path: str, meta: dict[str, str], body: bytes = b"") -> str:
    """The status of a request that reaches the application as the server hands it over."""
    observed: list[str] = []
    environment: dict[str, Any] = request(method, path, {"QUERY_STRING": "a=%ff"}, body).environ
    parts = application(environment | meta, lambda line, headers: observed.append(line))
    b"".join(parts)
    return observed[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "path"), FACES)
def test_any_content_type_is_answered(kind, method, path):
    keys = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in CLIENT.items()}
    body = FORM if method == "POST" else b""
    assert status(method, path, {**keys, "CONTENT_TYPE": kind}, body) < "500"


@pytest.mark.parametrize("encoded", ["dGVz\xbc", "\u20ac", "====", "/w==", ""])
@pytest.mark.parametrize("path", ["/api/classes/Game", "/api/users/me", "/api/files/a.txt"])
def test_credentials_by_http_basic_that_can_not_be_read_are_none(encoded, path):
    reply = Api({"Authorization": f"Basic {encoded}"}, mount="").call("GET", path)
    assert reply.status in (400, 403, 404, 405)


@pytest.mark.parametrize(
    "length", ["9" * 5_000, "9" * 19, "-1", "1_0", "\u0661", " 1", "0x1", "1,1"]
)
@pytest.mark.parametrize(("method", "path"), FACES)
def test_any_content_length_is_answered(length, method, path):
    keys = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in CLIENT.items()}
    assert status(method, path, {**keys, "CONTENT_LENGTH": length}) < "500"


@pytest.mark.parametrize("text", [b"aGVs\\n\xf5bG8=", b"\xff\xff\xff\xff", b"\\ud800aaa"])
def test_base64_that_is_no_text_is_refused(text):
    raw = b'{"_ApplicationId": "test-app", "_MasterKey": "test-master-key", "base64": "%b"}' % text
    reply = Api().call("POST", "/files/a.txt", raw=raw)
    assert reply.status in (400, 403)

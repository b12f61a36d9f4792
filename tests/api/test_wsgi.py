"""What the WSGI server gets: REST around Django's handler, everything else through it."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.http.response import BadHeaderError
from django.test import override_settings

from backend.http.edge.wsgi_request import Utf8Request
from backend.http.renderers import Answer, json_response, render
from backend.wsgi import application
from tests.rest import CLIENT, MASTER


def request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Any:
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json",
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
    } | {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    answer: dict[str, Any] = {}

    def start_response(status: str, fields: list[tuple[str, str]]) -> None:
        answer.update(status=status, headers={name.lower(): value for name, value in fields})

    answer["body"] = application(environ, start_response)
    return answer


def test_an_object_goes_in_and_comes_out(db: None) -> None:
    made = request("POST", "/api/classes/Thing", MASTER, b'{"name": "one"}')
    assert made["status"] == "201 Created"
    object_id = json.loads(made["body"][0])["objectId"]
    assert made["headers"]["location"].endswith(f"/api/classes/Thing/{object_id}")
    read = request("GET", f"/api/classes/Thing/{object_id}", CLIENT)
    assert read["status"] == "200 OK"
    assert json.loads(read["body"][0])["name"] == "one"
    assert read["headers"]["content-type"] == "application/json"
    assert len(read["headers"]["x-request-id"]) == 32


def test_a_whole_answer_is_a_list_which_the_server_sends_at_once(db: None) -> None:
    for answer in (
        request("GET", "/api/health", {}),
        request("GET", "/api/nowhere", CLIENT),
        request("POST", "/api/classes/Thing", MASTER, b"{"),
        request("OPTIONS", "/api/classes/Thing", {}),
    ):
        assert type(answer["body"]) is list
        assert len(answer["body"]) == 1


def test_errors_are_the_same_as_everywhere(db: None) -> None:
    answer = request("GET", "/api/classes/Thing", {"X-Svc-Application-Id": "no"})
    assert answer["status"] == "403 Forbidden"
    assert json.loads(answer["body"][0])["code"] == 260


def test_the_headers_that_a_browser_looks_at_are_there(db: None) -> None:
    answer = request("GET", "/api/classes/Thing", {**MASTER, "Origin": "https://example.org"})
    assert answer["headers"]["access-control-allow-origin"] == "*"


def test_what_is_not_below_the_mount_path_is_django_s(db: None) -> None:
    assert request("GET", "/admin/", {})["status"] == "302 Found"
    assert request("GET", "/apiary", {})["status"] == "404 Not Found"


def test_a_json_response_has_the_headers_and_attributes_of_django_s() -> None:
    response = json_response({"a": 1}, 201)
    expected = HttpResponse(b'{"a":1}', status=201, content_type="application/json")
    expected.headers["Content-Length"] = "7"
    expected.headers["X-Content-Type-Options"] = "nosniff"
    assert list(response.headers.items()) == list(expected.headers.items())
    assert vars(response).keys() == vars(expected).keys()
    for name in ("content", "status_code", "reason_phrase", "charset", "text", "closed"):
        assert getattr(response, name) == getattr(expected, name)
    assert bytes(response) == bytes(expected)
    assert pickle.loads(pickle.dumps(response)).content == b'{"a":1}'
    assert "set-cookie" not in response.headers
    assert not response.cookies


def test_a_view_s_header_with_a_line_break_is_refused() -> None:
    with pytest.raises(BadHeaderError):
        render(Answer({}, headers={"Location": "/a\r\nSet-Cookie: b"}))


def test_a_view_s_header_replaces_that_of_every_response() -> None:
    response = render(Answer({}, headers={"content-type": "application/vnd.a+json"}))
    assert [
        value for name, value in response.headers.items() if name.lower() == "content-type"
    ] == ["application/vnd.a+json"]


@pytest.mark.parametrize("force", [None, "/forced"])
@pytest.mark.parametrize(
    "source",
    [
        {},
        {"PATH_INFO": ""},
        {"PATH_INFO": "/api/classes/A"},
        {"PATH_INFO": "//api"},
        {"PATH_INFO": "api/a"},
        {"PATH_INFO": "/api/\xc3\xa4"},
        {"PATH_INFO": "/api/\xff"},
        {"PATH_INFO": "/a", "SCRIPT_NAME": "/below"},
        {"PATH_INFO": "/a", "SCRIPT_URL": "/below/a"},
        {"PATH_INFO": "/a", "REDIRECT_URL": "/below//a"},
        {"PATH_INFO": "/a", "CONTENT_LENGTH": ""},
        {"PATH_INFO": "/a", "CONTENT_LENGTH": "3"},
        {"PATH_INFO": "/a", "CONTENT_LENGTH": "x"},
    ],
)
def test_a_request_is_what_django_makes_of_its_environment(
    source: dict[str, str], force: str | None
) -> None:
    def made(kind: type[WSGIRequest]) -> dict[str, Any]:
        request = kind({"REQUEST_METHOD": "post", "wsgi.input": io.BytesIO(b"12345"), **source})
        observed = {name: getattr(request, name) for name in ("path", "path_info", "method")}
        meta = {name: value for name, value in request.META.items() if name != "wsgi.input"}
        return observed | {"meta": meta, "body": request.read()}

    with override_settings(FORCE_SCRIPT_NAME=force):
        assert made(Utf8Request) == made(WSGIRequest)

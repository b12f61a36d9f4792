"""What scripts on pages of other origins may send and read."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from tests.objects.files.uploads import file_path, send, stored
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

ORIGIN = {"Origin": "https://app.example.org"}
# Browsers show these to every script.
ALWAYS = {"cache-control", "content-language", "content-type", "expires", "last-modified", "pragma"}
# For the browser itself, not for scripts.
OF_BROWSERS = {
    *("content-security-policy", "cross-origin-resource-policy", "referrer-policy", "vary"),
    *("x-content-type-options", "allow", "www-authenticate"),
}


def exposed(headers: Any) -> set[str]:
    return {name.strip().lower() for name in headers["access-control-expose-headers"].split(",")}


def documented_headers() -> set[str]:
    """The headers of all responses in the API document."""
    document = Api(MASTER).get("/openapi.json").json
    responses = [
        response
        for operations in document["paths"].values()
        for operation in operations.values()
        if isinstance(operation, dict)
        for response in operation.get("responses", {}).values()
    ]
    responses += document["components"].get("responses", {}).values()
    return {name.lower() for response in responses for name in response.get("headers", {})}


def test_scripts_may_read_every_header_that_the_api_document_names():
    names = documented_headers()
    assert {"location", "x-svc-push-status-id", "x-svc-job-status-id", "retry-after"} <= names
    reply = Api(MASTER).call("GET", "/serverInfo", headers=ORIGIN)
    assert names - ALWAYS - OF_BROWSERS <= exposed(
        {key.lower(): value for key, value in reply.headers.items()}
    )


def test_scripts_may_read_the_id_of_a_push_they_have_sent():
    reply = Api(MASTER).call(
        "POST", "/push", {"where": {}, "data": {"alert": "Hi"}}, headers=ORIGIN
    )
    assert reply.json == {"result": True}
    names = exposed({key.lower(): value for key, value in reply.headers.items()})
    assert {"x-svc-push-status-id", "x-parse-push-status-id"} <= names


@pytest.mark.parametrize("condition", [{}, {"Range": "bytes=0-1"}, {"Range": "bytes=900-"}])
def test_scripts_may_read_every_header_of_a_file(condition):
    path = file_path(stored("a.txt", b"hello", "text/plain"))
    headers = send("GET", path, headers={**ORIGIN, **condition}).headers
    others = {name for name in headers if not name.startswith("access-control-")}
    assert {"etag", "content-range", "accept-ranges", "content-length"} <= exposed(headers)
    assert others - ALWAYS - OF_BROWSERS <= exposed(headers)


def test_scripts_may_ask_for_parts_of_files():
    asked = {**ORIGIN, "Access-Control-Request-Headers": "if-range,range"}
    path = file_path(stored("a.txt", b"hello", "text/plain"))
    headers = send(
        "OPTIONS", path, headers={**asked, "Access-Control-Request-Method": "GET"}
    ).headers
    allowed = headers["access-control-allow-headers"].split(", ")
    assert {"range", "if-range"} <= {*allowed}


def test_headers_are_listed_once():
    names = [name.lower() for name in settings.CORS_EXPOSE_HEADERS]
    assert len(names) == len({*names})

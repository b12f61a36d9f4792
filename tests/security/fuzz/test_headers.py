"""Headers: credentials, addresses, context, content types, lengths and request ids."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from backend.http import idempotency
from backend.http.authentication import authenticate, from_headers
from backend.http.bodies import parsers
from backend.http.context import client_address
from backend.http.views import read_call
from backend.kernel.networks import parse_address
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.requests import request
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    fuzz,
)

APPLICATION = {"HTTP_X_SVC_APPLICATION_ID": "test-app"}
BASIC = base64.b64encode(b"test-app:javascript-key=test-javascript-key").decode()
CORPUS: list[dict[str, str]] = [
    {**APPLICATION, "HTTP_X_SVC_REST_API_KEY": "test-rest-key"},
    {**APPLICATION, "HTTP_X_SVC_MASTER_KEY": "test-master-key"},
    {"HTTP_X_PARSE_APPLICATION_ID": "test-app", "HTTP_X_PARSE_CLIENT_KEY": "test-client-key"},
    {**APPLICATION, "HTTP_X_SVC_JAVASCRIPT_KEY": "test-javascript-key", "REMOTE_ADDR": "::1"},
    {"HTTP_AUTHORIZATION": f"Basic {BASIC}", "HTTP_X_SVC_INSTALLATION_ID": "abc"},
    {**APPLICATION, "HTTP_X_SVC_CLIENT_KEY": "test-client-key", "CONTENT_TYPE": "text/plain; a=b"},
    {
        **APPLICATION,
        "HTTP_X_SVC_REST_API_KEY": "test-rest-key",
        "HTTP_X_SVC_CLOUD_CONTEXT": '{"a": [1, "\u00c3\u00a9"]}',
        "HTTP_X_SVC_REQUEST_ID": "request-1",
        "CONTENT_TYPE": "application/vnd.api+json",
        "QUERY_STRING": "where=%7B%7D",
    },
    {
        **APPLICATION,
        "HTTP_X_SVC_REST_API_KEY": "test-rest-key",
        "HTTP_X_FORWARDED_FOR": "192.0.2.1, 2001:db8::1",
        "HTTP_X_REQUEST_ID": "12345678",
        "HTTP_ORIGIN": "https://example.org",
    },
]
BODIES = [
    b"",
    b'{"name": "a"}',
    b'{"_method": "GET", "where": {}, "_ApplicationId": "test-app"}',
    b'{"_ApplicationId": "test-app", "_MasterKey": "test-master-key", "_context": "{}"}',
    b'{"_ApplicationId": "test-app", "_JavaScriptKey": "test-javascript-key", "a": 1.5e300}',
]


RESTRICTED = {
    "TRUSTED_PROXIES": ("10.0.0.0/8", "::1/128"),
    "MASTER_KEY_IPS": ("127.0.0.0/8", "192.0.2.0/24"),
}


@pytest.fixture(autouse=True)
def _proxied(settings):
    settings.SERVICE = {**settings.SERVICE, **RESTRICTED}


def use(value: tuple[dict[str, str], bytes]) -> None:
    """Read a request to its credentials, and its id."""
    meta, body = value
    address = client_address(meta)
    forwarded = str(meta.get("HTTP_X_FORWARDED_FOR") or "").split(",")
    assert address in (str(meta.get("REMOTE_ADDR") or ""), *map(parse_address, forwarded))
    parsers.media_type(meta)
    idempotency.request_id(meta)
    authenticate(from_headers(meta), address, with_session=False)
    call = read_call(request("POST", "/api/classes/Game", meta, body), with_session=False)
    assert call.method in ("GET", "POST", "PUT", "DELETE")
    assert not {"_ApplicationId", "_MasterKey", "_JavaScriptKey", "_context"} & call.body.keys()


def make(mutator: Mutator) -> tuple[dict[str, str], bytes]:
    meta = dict(mutator.sample())
    for _ in mutator.often():
        name = mutator.pick(list(meta))
        # A server hands bytes over as if they were Latin-1, and no line breaks.
        text = mutator.text(meta[name]).encode("latin-1", "replace").decode("latin-1")
        meta[name] = text.replace("\r", "").replace("\n", "")
    if not mutator.below(8):
        meta["CONTENT_LENGTH"] = mutator.text("13")
    body: bytes = mutator.pick(BODIES)
    return meta, body if mutator.below(2) else mutator.data(body)


def test_the_examples_are_valid():
    accepts(use, [({**meta, "REMOTE_ADDR": "127.0.0.1"}, b"") for meta in CORPUS])
    accepts(use, [({**CORPUS[0], "REMOTE_ADDR": "127.0.0.1"}, body) for body in BODIES])


@EXAMPLES
def test_any_headers_and_body_are_read_or_refused(examples):
    fuzz(use, make, CORPUS, examples)


@EXAMPLES
def test_any_bytes_are_json_or_refused(examples):
    corpus = [
        *BODIES,
        json.dumps(CORPUS).encode(),
        b'"\\ud83d\\ude00"',
        b"[1e5,-0,null]",
        b"1" * 99,
    ]

    def decode(raw: bytes) -> None:
        value = parsers.decode_json(raw, "body")
        assert parsers.decode_json(json.dumps(value).encode(), "body") == value

    fuzz(decode, lambda mutator: mutator.data(mutator.sample()), corpus, examples)


def test_nothing_long_is_remembered():
    names = {name for meta in CORPUS for name in meta if name != "REMOTE_ADDR"}
    names.add("CONTENT_LENGTH")
    for name in sorted(names):

        def containing(text: str, name: str = name) -> tuple[dict[str, Any], bytes]:
            return {**CORPUS[0], name: text}, b""

        check_nothing_long_is_remembered(use, containing)

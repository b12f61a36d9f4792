"""The request id, and what is known of the client."""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from structlog.contextvars import bind_contextvars, get_contextvars

from backend.http import context
from backend.http.context import RequestContext, client_address

PROXY = {"TRUSTED_PROXIES": ("10.0.0.0/8", "::1/128")}


def answer(**headers: str) -> tuple[HttpResponse, dict[str, object]]:
    observed: dict[str, object] = {}

    def view(request):
        observed.update(get_contextvars(), id=request.id)
        return HttpResponse()

    return RequestContext(view)(RequestFactory().get("/", headers=headers)), observed


def test_a_request_gets_an_id_that_is_in_the_answer_and_in_the_log_s_context():
    response, observed = answer()
    assert re.fullmatch(r"[0-9a-f]{32}", response["X-Request-Id"])
    assert observed == {"id": response["X-Request-Id"], "request_id": response["X-Request-Id"]}


def test_what_was_bound_before_a_request_is_not_in_its_lines():
    bind_contextvars(colour="red")
    response, observed = answer()
    assert observed == {"id": response["X-Request-Id"], "request_id": response["X-Request-Id"]}
    _, observed = answer()
    assert "colour" not in observed


def test_nothing_has_to_be_cleared_where_only_ids_are_bound():
    answer()
    assert context._BOUND_HERE <= context._ever_bound.keys(), "structlog names them in another way"


def test_a_well_formed_id_of_the_client_is_kept():
    response, observed = answer(**{"X-Request-Id": "trace-1234.ab_C"})
    assert response["X-Request-Id"] == observed["id"] == "trace-1234.ab_C"


@pytest.mark.parametrize("value", ["short", "x" * 65, "with blank", 'quo"ted-one', "line\nbreak-x"])
def test_a_malformed_id_is_replaced(value: str):
    response, _ = answer(**{"X-Request-Id": value})
    assert re.fullmatch(r"[0-9a-f]{32}", response["X-Request-Id"])


def test_two_requests_do_not_share_an_id():
    assert answer()[0]["X-Request-Id"] != answer()[0]["X-Request-Id"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        # A client that isn't the proxy may send any header.
        ("203.0.113.9", "127.0.0.1", "203.0.113.9"),
        # Our proxy appends what it saw; what stands before is the client's claim.
        ("10.1.2.3", "127.0.0.1, 198.51.100.7", "198.51.100.7"),
        ("::1", "2001:db8::5", "2001:db8::5"),
        # Over the socket only the proxy can connect.
        ("", "198.51.100.7", "198.51.100.7"),
        ("", "", ""),
        # A proxy behind another trusted proxy: the entries of both are read.
        ("10.1.2.3", "192.0.2.1, 198.51.100.7, 10.9.9.9", "198.51.100.7"),
        ("", "198.51.100.7, 10.9.9.9, ::1", "198.51.100.7"),
        # A proxy that isn't trusted is the client.
        ("10.1.2.3", "192.0.2.1, 198.51.100.7, 203.0.113.1", "203.0.113.1"),
        ("10.1.2.3", "nonsense, 10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "192.0.2.1" + ", 10.9.9.9" * 20, "10.9.9.9"),
        ("nonsense", "127.0.0.1", "nonsense"),
    ],
)
@override_settings(SERVICE=PROXY)
def test_the_client_s_address_is_the_one_that_our_proxy_saw(peer: str, forwarded: str, client: str):
    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded}
    assert client_address(meta) == client

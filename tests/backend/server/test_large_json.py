"""Large JSON bodies: keys first, then the limit of who sends them, and only then the decoding."""

from __future__ import annotations

import json

import pytest

from backend.http.bodies.substrings import occurrences
from tests.rest import APPLICATION, CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db

MEGABYTE = 1024 * 1024
# Not JSON: decoding it would be refused with 107.
NONSENSE = b"[" * (19 * MEGABYTE)
ROUTES = ["/classes/Large", "/batch", "/functions/none", "/users", "/login", "/installations"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({**APPLICATION, "X-Svc-REST-API-Key": "wrong"}, {(403, 262), (413, 116)}),
        ({**APPLICATION, "X-Svc-Master-Key": "wrong"}, {(403, 261), (413, 116)}),
        ({"X-Svc-Application-Id": "wrong"}, {(403, 260), (413, 116)}),
        ({}, {(403, 260), (413, 116)}),
    ],
)
def test_with_wrong_keys_it_is_refused_undecoded(
    route: str, keys: dict[str, str], error: set[tuple[int, int]]
) -> None:
    assert Api(keys).call("POST", route, raw=NONSENSE).error in error


@pytest.mark.parametrize("route", ROUTES)
def test_clients_send_a_megabyte_at_most(route: str) -> None:
    reply = Api(CLIENT).call("POST", route, raw=b"[" * (MEGABYTE + 1))
    assert reply.error == (413, 116)
    assert Api(CLIENT).call("POST", route, raw=b"[" * MEGABYTE).error == (400, 107)


def test_the_master_key_in_a_header_sends_up_to_20_megabytes() -> None:
    large = json.dumps({"text": "x" * (19 * MEGABYTE)}).encode()
    assert Api(MASTER).call("POST", "/classes/Large", raw=large).status in (201, 413)
    assert Api(MASTER).call("POST", "/classes/Large", raw=NONSENSE).error == (400, 107)
    over = Api(MASTER).call("POST", "/classes/Large", raw=b"[" * (20 * MEGABYTE + 1))
    assert over.error == (413, 116)


@pytest.mark.parametrize("position", ["first", "last"])
def test_the_master_key_in_the_body_counts_once_it_was_seen(position: str) -> None:
    keys = b'"_ApplicationId": "test-app", "_MasterKey": "%b"'
    filler = b'"text": "' + b"x" * (2 * MEGABYTE) + b'"'

    def send(key: bytes) -> tuple[int, int]:
        parts = [keys % key, filler]
        body = b"{" + b", ".join(parts if position == "first" else parts[::-1]) + b"]"
        return Api().call("POST", "/classes/Large", raw=body).error

    assert send(b"test-master-key") == (400, 107)  # decoded, and the bracket is wrong
    assert send(b"wrong") == (413, 116)


def test_a_key_in_the_body_does_not_count_with_one_in_a_header() -> None:
    body = b'{"_ApplicationId": "test-app", "_MasterKey": "test-master-key", "text": "'
    reply = Api(CLIENT).call("POST", "/classes/Large", raw=body + b"x" * 2 * MEGABYTE + b'"}')
    assert reply.error == (413, 116)


def test_files_have_a_limit_of_their_own() -> None:
    over = Api(MASTER).call(
        "POST", "/files/a.txt", raw=b"x" * (20 * MEGABYTE + 1), content_type="text/plain"
    )
    assert over.error == (413, 129)
    within = Api(MASTER).call(
        "POST", "/files/a.txt", raw=b"x" * (2 * MEGABYTE), content_type="text/plain"
    )
    assert within.status == 201


# -- without holding up others -------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 1, 262_130, 262_143, 262_144, 262_150, 3_000_000])
def test_the_master_key_is_seen_wherever_it_is(before: int) -> None:
    start = b'{"text": "' + b"x" * before + b'", "_MasterKey" : "test-master-key", '
    body = start + b'"_ApplicationId": "test-app", "more": "' + b"x" * (2 * MEGABYTE) + b'"]'
    assert Api().call("POST", "/classes/Large", raw=body).error == (400, 107)


@pytest.mark.parametrize("claim", [b'"_MasterKey":', b'"_MasterKey": "wrong",', b'"_MasterKey":"'])
def test_a_body_full_of_wrong_keys_is_refused(claim: bytes) -> None:
    body = b"{" + claim * (19 * MEGABYTE // len(claim))
    assert Api().call("POST", "/classes/Large", raw=body).error == (413, 116)


def test_a_search_in_a_large_body_finds_each_occurrence_once() -> None:
    data = b"-" * 262_142 + b"abab" + b"-" * 600_000 + b"ab"
    assert list(occurrences(data, b"ab")) == [262_142, 262_144, 862_146]
    assert list(occurrences(data, b"ab", 262_143)) == [262_144, 862_146]
    assert list(occurrences(b"", b"ab")) == []

"""Handshakes of ``/ws``: who connects, from where, and what the connection is for."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from realtime.core.cursors import BadCursor, Cursor, decode, encode
from realtime.core.event_queries import BadQuery, parse
from realtime.process.admission import QUERY_KEYS, Admission, Refusal, address_of, headers_of
from tests.security.fuzz.mutation import Mutator
from tests.security.fuzz.targets import (
    EXAMPLES,
    accepts,
    check_nothing_long_is_remembered,
    check_work_is_proportional,
    fuzz,
)

CURSOR = "1.abc123.31337:17,10:3.31337:5"
QUERIES = [
    "",
    "contract=Token,0xD122000000000000000000000000000000000000&network=1,31337&event=*",
    "event=Transfer&event=Approval&since=now&reorg=1",
    "since=0&reorg=false",
    f"since={CURSOR}&network=31337",
    "since=2.whatever",
    "finality=final&since=0",
    "applicationId=test-app&javascriptKey=test-javascript-key",
]
HEADERS = [
    {"origin": "https://app.example.org", "host": "localhost", "x-forwarded-for": "192.0.2.1"},
    {"x-svc-application-id": "test-app", "x-svc-rest-api-key": "test-rest-key"},
    {"authorization": "Basic dGVzdC1hcHA6dGVzdC1tYXN0ZXIta2V5", "origin": "null"},
    {"x-forwarded-for": "2001:db8::1%eth0, 192.0.2.1", "origin": "https://[::1"},
    {"x-parse-application-id": "test-app", "x-parse-javascript-key": "test-javascript-key"},
]
CORPUS = [*QUERIES, json.dumps(HEADERS)]


@pytest.fixture(autouse=True)
def _closed(settings):
    settings.SERVICE = {
        **settings.SERVICE,
        "WS_REQUIRE_KEY": True,
        "WS_ALLOWED_ORIGINS": ("https://app.example.org", "https://*.example.com"),
    }


def use(handshake: tuple[str, dict[str, str]]) -> None:
    """Admit a connection, count it out again, and read its filters."""
    text, source = handshake
    raw = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in source.items()
    ]
    headers = headers_of({"headers": raw})
    address = address_of({"client": None}, headers)
    query = parse_qs(text, keep_blank_values=True, errors="replace")
    parse(query, ignored=QUERY_KEYS)
    admission = Admission()
    try:
        admission.admit(address, headers, query, asks_for_key=True)
        admission.leave(address)
    finally:
        assert admission.total == 0


def make(mutator: Mutator) -> tuple[str, dict[str, str]]:
    headers = mutator.pick(HEADERS)
    changed: dict[str, str] = {
        name: mutator.text(value) if mutator.below(2) else value for name, value in headers.items()
    }
    return mutator.text(mutator.pick(QUERIES)), changed


def resume(text: str) -> None:
    """Read a cursor. What was read is written as it was meant."""
    cursor = decode(text)
    if cursor.epoch is not None:
        written = decode(encode(cursor))
        assert written.epoch == cursor.epoch
        for before, after in (
            (cursor.positions, written.positions),
            (cursor.starts, written.starts),
        ):
            assert {key: mark for key, mark in before.items() if mark} == after


def test_the_examples_are_valid():
    accepts(use, [(query, headers) for query in QUERIES for headers in (HEADERS[1], HEADERS[4])])
    accepts(resume, [CURSOR, encode(Cursor("a", {1: 2}, {}))])


@EXAMPLES
def test_any_handshake_is_admitted_or_refused(examples):
    fuzz(use, make, CORPUS, examples, BadQuery, Refusal)


@EXAMPLES
def test_any_cursor_is_read_or_refused(examples):
    cursors = [CURSOR, "1.a..", "1.abc.1:1.", "2.x", "1.0.9223372036854775807:1.1:1"]
    fuzz(resume, lambda mutator: mutator.text(mutator.sample()), cursors, examples, BadCursor)


def handshake(**query: Any) -> tuple[str, dict[str, str]]:
    return "&".join(f"{name}={value}" for name, value in query.items()), {}


@pytest.mark.parametrize("name", ["contract", "network", "event", "since", "reorg"])
def test_work_is_proportional_to_size(name):
    check_work_is_proportional(
        use,
        lambda size: handshake(**{name: ",".join(str(number) for number in range(size))}),
        (20, 80, 320, 1_280),
        BadQuery,
        Refusal,
    )


def test_nothing_long_is_remembered():
    for name in ("contract", "network", "event", "since", "reorg", "finality", "applicationId"):
        check_nothing_long_is_remembered(
            use, lambda text, name=name: handshake(**{name: text}), BadQuery, Refusal
        )
    for header in ("origin", "x-forwarded-for", "x-svc-rest-api-key", "authorization"):
        check_nothing_long_is_remembered(
            use, lambda text, header=header: ("", {header: text}), Refusal
        )

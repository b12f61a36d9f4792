"""Heads that come again: parsed once, and never read in another way than the first time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.server import repeats
from backend.server.repeats import KnownHeads, whole_request
from tests.server.running import Running, running

FIELDS = b"Host: a\r\nX-Svc-Application-Id: app\r\nAccept: */*\r\n"


def request(method: bytes, target: bytes, body: bytes = b"", fields: bytes = FIELDS) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (method, target, fields, length, body)


class Counted:
    """Counts the heads that were parsed and kept."""

    def __init__(self) -> None:
        self.heads = 0

    def __call__(self, environ: dict[str, Any]) -> None:
        self.heads += 1


@pytest.fixture(scope="module")
def kept() -> Counted:
    return Counted()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kept: Counted) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server"), prepare=kept) as server:
        yield server


def forget(server: Running) -> None:
    def run() -> None:
        server.server.heads = KnownHeads()

    server.call(run)


def answers(server: Running, packet: bytes) -> bytes:
    """Everything that the server answers, without the time: what the application saw, or errors."""
    with server.connect() as wire:
        return re.sub(rb"Date: [^\r]*", b"", wire.send(packet).end().rest())


def test_a_head_is_parsed_once_for_all_methods_targets_and_bodies(
    server: Running, kept: Counted
) -> None:
    forget(server)
    before = kept.heads
    packets = [
        request(method, target, body)
        for method in (b"POST", b"PUT")
        for target in (b"/a", b"/b%20c?d=e%20f")
        for body in (b"{}", b"x" * 200_000)
    ]
    with server.connect() as wire:
        for packet in packets:
            echoed = wire.send(packet).response().json
            head, _, body = packet.partition(b"\r\n\r\n")
            assert echoed["method"].encode() == head.split(b" ")[0]
            assert echoed["path"] == ("/a" if b"/a" in head else "/b c")
            assert echoed["query"] == ("" if b"/a" in head else "d=e%20f")
            assert echoed["length"] == len(body)
            assert echoed["headers"]["CONTENT_LENGTH"] == str(len(body))
    assert kept.heads == before + 1


LINES = (
    *(b"Host: a\r\n", b"Host: b\r\n", b"Accept: */*\r\n", b"Cookie: a=b\r\n", b"Proxy: a\r\n"),
    *(b"X-Svc-Application-Id: app\r\n", b"x-svc-application-id: app\r\n", b"X_Under: 1\r\n"),
    *(b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: Upgrade\r\n"),
    *(
        b"Upgrade: websocket\r\n",
        b"Upgrade: h2c\r\n",
        b"Expect: 100-continue\r\n",
        b"Expect: b\r\n",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n"),
    *(b"Content-Length:\r\n", b"Content-Length: 2 \r\n", b"content-length:2\r\n", b"A: \0\r\n"),
    *(b"Content-Length: 02\r\n", b"Content-Length: +2\r\n", b"X-Content-Length: 7\r\n"),
    *(b" folded: 1\r\n", b"A: b\n", b"A: b\r", b"\n", b"\r\n", b"X: a\r\n Content-Length: 2\r\n"),
    *(b"X-Forwarded-For: 1.2.3.4\r\n", b"A: \xff\r\n", b"A\xff: b\r\n", b"A: b\r\n\r\n"),
)
fields = st.lists(st.sampled_from(LINES), max_size=5).map(b"".join)
bodies = st.sampled_from([b"", b"{}", b"0\r\n\r\n", b"GET /c HTTP/1.1\r\nHost: c\r\n\r\n", b"abcd"])
lines = st.sampled_from(
    [
        *(b"GET /a HTTP/1.1", b"POST /a?b=c HTTP/1.1", b"PUT /a%20b HTTP/1.1", b"GET /a HTTP/1.0"),
        *(b"HEAD /a HTTP/1.1", b"GET /a#b HTTP/1.1", b"DELETE /%zz HTTP/1.1", b"GET  /a HTTP/1.1"),
        *(
            b"GET http://b/a HTTP/1.1",
            b"BREW /a HTTP/1.1",
            b"OPTIONS * HTTP/1.1",
            b"CONNECT a HTTP/1.1",
        ),
    ]
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two packets with almost the same fields."""
    first, second = draw(st.tuples(fields, fields))
    shared = draw(st.booleans()) or first == second

    def packet(own: bytes) -> bytes:
        body = draw(bodies)
        announced = draw(st.sampled_from([b"", b"Content-Length: %d\r\n" % len(body)]))
        return b"%b\r\nHost: a\r\n%b%b\r\n%b" % (draw(lines), own, announced, body)

    return packet(first), packet(first if shared else second)


@settings(max_examples=300, deadline=None)
@given(pair=pairs())
def test_a_known_head_means_what_it_meant_the_first_time(
    server: Running, pair: tuple[bytes, bytes]
) -> None:
    first, second = pair
    forget(server)
    unknown = answers(server, second)
    forget(server)
    answers(server, first)
    assert answers(server, second) == unknown
    assert answers(server, second) == unknown


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        request(b"GET", b"/a#b"),
        request(b"GET", b"/a b"),
        request(b"HEAD", b"/"),
        request(b"GET", b"/").replace(b"1.1", b"1.0"),
        request(b"GET", b"/") + b"G",
        request(b"GET", b"/") * 2,
        request(b"POST", b"/", b"{}")[:-1],
        request(b"GET", b"/", fields=b"A: " + b"b" * 2048 + b"\r\n"),
    ],
)
def test_packets_that_are_not_one_plain_request_are_parsed(packet: bytes) -> None:
    assert whole_request(packet) is None


def test_the_limits_hold_for_known_heads(server: Running) -> None:
    limited = FIELDS + b"X-Limit: 3\r\n"
    with server.connect() as wire:
        for _ in range(2):
            assert wire.send(request(b"POST", b"/", b"{}", limited)).response().status == 200
        assert wire.send(request(b"POST", b"/", b"1234", limited)).response().status == 413
    for _ in range(2):
        (reply,) = server.exchange(request(b"GET", b"/" + b"x" * 40_000))
        assert reply.status == 414
    server.is_clean()


def test_heads_of_one_peer_do_not_count_for_another(server: Running, kept: Counted) -> None:
    forget(server)
    before = kept.heads
    for source in ("127.0.0.1", "127.0.0.2"):
        with server.connect(source) as wire:
            for _ in range(2):
                echoed = wire.send(request(b"GET", b"/")).response().json
                assert echoed["address"] == source
    assert kept.heads == before + 2


def test_only_so_many_heads_are_kept(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST", 3)
    forget(server)
    with server.connect() as wire:
        for number in range(5):
            wire.send(request(b"GET", b"/", fields=b"Host: %d\r\n" % number)).response()
    assert len(server.server.heads) == 3


def test_what_the_application_changes_in_one_environment_is_not_in_the_next(
    server: Running,
) -> None:
    forget(server)
    with server.connect() as wire:
        for body in (b"{}", b"[1]", b"{}"):
            echoed = wire.send(request(b"POST", b"/", body)).response().json
            assert echoed["length"] == len(body)
            assert echoed["headers"]["CONTENT_LENGTH"] == str(len(body))
        assert "CONTENT_LENGTH" not in wire.send(request(b"GET", b"/")).response().json["headers"]

"""Heads that clients repeat: parsed once, and never read in another way than the first time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.server.requests import head_cache
from backend.server.requests.head_cache import HeadCache, split_packet
from tests.backend.server.running import Running, connections, running

FIELDS = b"Host: a\r\nX-Svc-Application-Id: app\r\nAccept: */*\r\n"


def request(method: bytes, target: bytes, body: bytes = b"", fields: bytes = FIELDS) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (method, target, fields, length, body)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(autouse=True)
def empty(server: Running) -> None:
    forget(server)


def forget(server: Running) -> None:
    def run() -> None:
        server.server.heads = HeadCache()

    server.call(run)


def learn(server: Running, packet: bytes) -> None:
    """Send a packet so often that its head is cached."""
    answers(server, packet)
    answers(server, packet)


def answers(server: Running, packet: bytes) -> bytes:
    """Everything that the server answers, without the time: what the application saw, or errors."""
    with server.connect() as wire:
        return re.sub(rb"Date: [^\r]*", b"", wire.send(packet).end().rest())


def test_a_head_serves_all_methods_targets_and_bodies(server: Running) -> None:
    packets = [
        request(method, target, body)
        for method in (b"POST", b"PUT")
        for target in (b"/a", b"/b%20c?d=e%20f")
        for body in (b"{}", b"x" * 200_000)
    ]
    learn(server, packets[0])
    with server.connect() as wire:
        for packet in packets:
            echoed = wire.send(packet).response().json
            head, _, body = packet.partition(b"\r\n\r\n")
            assert echoed["method"].encode() == head.split(b" ")[0]
            assert echoed["path"] == ("/a" if b"/a" in head else "/b c")
            assert echoed["query"] == ("" if b"/a" in head else "d=e%20f")
            assert echoed["length"] == len(body)
            assert echoed["headers"]["CONTENT_LENGTH"] == str(len(body))
    assert len(server.server.heads) == 1


def test_a_head_is_prepared_once(tmp_path: Path) -> None:
    prepared: list[str] = []
    with (
        running(tmp_path, prepare=lambda environ: prepared.append(environ["HTTP_HOST"])) as server,
        server.connect() as wire,
    ):
        for _ in range(5):
            wire.send(request(b"GET", b"/")).response()
    assert prepared == ["a"]


def test_a_head_that_comes_once_is_not_cached(server: Running) -> None:
    learn(server, request(b"GET", b"/"))
    for number in range(600):
        server.exchange(request(b"GET", b"/", fields=FIELDS + b"X-Request-Id: %d\r\n" % number))
    assert len(server.server.heads) == 1


def test_a_cached_head_keeps_no_body(server: Running) -> None:
    packet = request(b"POST", b"/", b"x" * 50_000)
    learn(server, packet)
    with server.connect() as wire:
        wire.send(packet).response()
        (connection,) = connections(server.server)
        assert connection._parser._packet is None
    server.is_clean()


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
    shared = draw(st.booleans())

    def packet(own: bytes) -> bytes:
        body = draw(bodies)
        announced = draw(st.sampled_from([b"", b"Content-Length: %d\r\n" % len(body)]))
        return b"%b\r\nHost: a\r\n%b%b\r\n%b" % (draw(lines), own, announced, body)

    return packet(first), packet(first if shared else second)


@settings(max_examples=200, deadline=None)
@given(pair=pairs())
def test_a_known_head_means_what_it_meant_the_first_time(
    server: Running, pair: tuple[bytes, bytes]
) -> None:
    first, second = pair
    forget(server)
    unknown = answers(server, second)
    forget(server)
    learn(server, first)
    for _ in range(3):
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
    assert split_packet(packet) is None


def test_the_limits_hold_for_cached_heads(server: Running) -> None:
    limited = FIELDS + b"X-Limit: 3\r\n"
    learn(server, request(b"POST", b"/", b"{}", limited))
    learn(server, request(b"GET", b"/"))
    assert len(server.server.heads) == 2
    with server.connect() as wire:
        assert wire.send(request(b"POST", b"/", b"{}", limited)).response().status == 200
        assert wire.send(request(b"POST", b"/", b"1234", limited)).response().status == 413
    (reply,) = server.exchange(request(b"GET", b"/" + b"x" * 40_000))
    assert reply.status == 414
    server.is_clean()


def test_heads_of_one_peer_do_not_count_for_another(server: Running) -> None:
    for source in ("127.0.0.1", "127.0.0.2"):
        with server.connect(source) as wire:
            for _ in range(3):
                echoed = wire.send(request(b"GET", b"/")).response().json
                assert echoed["address"] == source
    assert len(server.server.heads) == 2


def test_only_so_many_heads_are_kept(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_cache, "MAX_HEADS", 3)
    for number in range(5):
        learn(server, request(b"GET", b"/", fields=b"Host: %d\r\n" % number))
    assert len(server.server.heads) == 3


def test_what_one_request_changes_is_not_in_the_environment_of_the_next(server: Running) -> None:
    learn(server, request(b"POST", b"/", b"{}"))
    learn(server, request(b"GET", b"/"))
    with server.connect() as wire:
        for body in (b"{}", b"[1]", b"{}"):
            echoed = wire.send(request(b"POST", b"/", body)).response().json
            assert echoed["length"] == len(body)
            assert echoed["headers"]["CONTENT_LENGTH"] == str(len(body))
        assert "CONTENT_LENGTH" not in wire.send(request(b"GET", b"/")).response().json["headers"]

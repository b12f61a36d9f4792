"""What reaches the application, and what is refused before it, byte by byte."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.backend.server.running import BODY_LIMIT, PATIENCE, Running, running

HOST = b"Host: a\r\n"
CHUNKED = HOST + b"Transfer-Encoding: chunked\r\n"


def get(target: bytes = b"/", more: bytes = b"", version: bytes = b"1.1") -> bytes:
    return b"GET %b HTTP/%b\r\n%b%b\r\n" % (target, version, HOST, more)


def post(body: bytes, more: bytes = b"", target: bytes = b"/") -> bytes:
    head = b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n%b\r\n" % (target, HOST, len(body), more)
    return head + body


def chunked(body: bytes, more: bytes = b"", target: bytes = b"/") -> bytes:
    return b"POST %b HTTP/1.1\r\n%b%b\r\n%b" % (target, CHUNKED, more, body)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


# -- bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"0\r\n\r\n", b""),
        (b'5;name=value;other="x y"\r\nhello\r\n0;last\r\n\r\n', b"hello"),
        (b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Checksum: 1\r\nX-More: 2\r\n\r\n", b"hello world"),
        (b"0005\r\nhello\r\n000\r\n\r\n", b"hello"),
        (b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", b"0123456789" * 2),
        (b"".join(b"1\r\n%c\r\n" % byte for byte in b"x" * 4000) + b"0\r\n\r\n", b"x" * 4000),
    ],
    ids=["one", "none", "extensions", "trailers", "zeros", "hex", "bytes"],
)
def test_a_chunked_body_is_read_to_its_end(server: Running, wire: bytes, body: bytes) -> None:
    (reply,) = server.exchange(chunked(wire))
    assert reply.json["sha256"] == digest(body)
    assert reply.json["headers"]["CONTENT_LENGTH"] == str(len(body))
    assert "HTTP_TRANSFER_ENCODING" not in reply.json["headers"]
    assert not any("CHECKSUM" in name for name in reply.json["headers"])


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, BODY_LIMIT])
def test_a_body_with_a_length_is_read_whole(server: Running, size: int) -> None:
    body = bytes(index % 251 for index in range(size))
    (reply,) = server.exchange(post(body))
    assert (reply.json["length"], reply.json["sha256"]) == (size, digest(body))
    server.is_clean()


def test_a_body_may_arrive_byte_by_byte(server: Running) -> None:
    request = chunked(b"5;x=y\r\nhello\r\n0\r\nX-T: 1\r\n\r\n")
    (reply,) = server.exchange(*(bytes([byte]) for byte in request))
    assert reply.json["sha256"] == digest(b"hello")


@pytest.mark.parametrize(
    "wire",
    [
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloXX0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n",
        b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"\r\n5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
        b"5;\0\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_bad_chunks_are_refused_once_and_nothing_runs(server: Running, wire: bytes) -> None:
    replies = server.exchange(chunked(wire) + get(b"/health") * 3)
    assert [reply.error for reply in replies] == [(400, 107)]
    assert server.app.calls == []
    server.is_clean()


@pytest.mark.parametrize(
    "request_without_end",
    [
        chunked(b"5\r\nhel"),
        chunked(b"5\r\nhello\r\n"),
        chunked(b"5\r\nhello\r\n0\r\n"),
        chunked(b"5\r\nhello\r\n0\r\nX-T: 1\r\n"),
        post(b"hello")[:-1],
        get()[:-1],
    ],
)
def test_a_request_without_its_end_is_not_run(server: Running, request_without_end: bytes) -> None:
    assert server.exchange(request_without_end) == []
    server.is_clean()
    assert server.app.calls == []


def test_endless_trailers_and_chunk_extensions_are_refused(server: Running) -> None:
    piece = b"x" * 60_000
    for start in (b"1\r\nx\r\n0\r\nX-T: ", b"1\r\nx\r\n1;x="):
        with server.connect() as wire:
            wire.send(chunked(start))
            server.wait_for(lambda running: running.spool.memory == 1)
            for _ in range(6):  # more than one packet's worth
                wire.send(piece)
            assert wire.response().error[0] in (400, 431)
    server.is_clean()


def test_a_body_of_tiny_chunks_is_bounded(server: Running) -> None:
    with server.connect() as wire:
        wire.send(chunked(b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"))
        assert wire.response().error == (400, 107)
    assert server.app.calls == []


def test_clients_that_wait_for_100_continue_are_let_go_on(server: Running) -> None:
    with server.connect() as wire:
        wire.send(post(b"", b"Expect: 100-Continue\r\n").replace(b"Length: 0", b"Length: 5"))
        assert wire.response().status == 100
        reply = wire.send(b"hello").response()
    assert reply.json["sha256"] == digest(b"hello")
    assert "HTTP_EXPECT" not in reply.json["headers"]


def test_100_continue_waits_for_the_response_before_it(server: Running) -> None:
    with server.connect() as wire:
        expecting = post(b"", b"Expect: 100-continue\r\n").replace(b"Length: 0", b"Length: 5")
        wire.send(get(b"/wait") + expecting)
        assert server.app.started.acquire(timeout=10)
        server.app.gate.set()
        assert wire.response().json["path"] == "/wait"
        assert wire.response().status == 100
        assert wire.send(b"hello").response().json["length"] == 5


def test_a_client_that_does_not_wait_gets_no_100_continue_late(server: Running) -> None:
    with server.connect() as wire:
        wire.send(get(b"/wait") + post(b"hello", b"Expect: 100-continue\r\n"))
        assert server.app.started.acquire(timeout=10)
        server.app.gate.set()
        assert [wire.response().json["length"] for _ in range(2)] == [0, 5]


def test_http_1_0_knows_no_100_continue(server: Running) -> None:
    request = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"
    (reply,) = server.exchange(request)
    assert reply.json["length"] == 5


def test_an_empty_expectation_is_none(server: Running) -> None:
    (reply,) = server.exchange(post(b"hello", b"Expect:\r\n"))
    assert reply.json["length"] == 5


@pytest.mark.parametrize("answers", [b"/", b"/own"])
@pytest.mark.parametrize("framing", ["length", "chunks", "expect"])
def test_a_body_over_the_limit_is_refused_before_it_is_read(
    server: Running, answers: bytes, framing: str
) -> None:
    more = b"X-Limit: 100\r\n"
    row = get(b"/health") * 20
    requests = {
        "length": post(row, more, answers),
        "chunks": chunked(b"%x\r\n%b\r\n0\r\n\r\n" % (len(row), row), more, answers),
        "expect": post(row, more + b"Expect: 100-continue\r\n", answers),
    }
    (reply,) = server.exchange(requests[framing])
    if answers == b"/own":  # as the application has it, by the length
        announced = int(reply.json["headers"]["CONTENT_LENGTH"])
        assert (reply.json["length"], announced > 100) == (0, True)
    else:
        assert reply.error == (413, 116)
    assert reply.headers["connection"] == "close"
    assert server.app.calls == (["/own"] if answers == b"/own" else [])
    server.is_clean()


# -- heads --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get(b"/" + b"x" * 33_000), 414),
        (get(more=b"X-A: %b\r\n" % (b"x" * 66_000)), 431),
        (get(more=b"X-A: b\r\n" * 101), 431),
        (b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n", 501),
        (get(version=b"2.0"), 505),
        (get(version=b"3.0"), 400),
        (get(b"no-slash"), 400),
        (get(b"/%"), 400),
        (get(b"/a#b"), 400),
        (get(b"/a b"), 400),
        (get(b"/\0"), 400),
        (get(b"http:///x y"), 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (get(more=HOST), 400),
        (get(more=b"X-Svc-Master-Key: a\r\nx-svc-master-key: b\r\n"), 400),
        (get(more=b"X-A: b\r\n continued\r\n"), 400),
        (get(more=b"X-A : b\r\n"), 400),
        (get(more=b"X-A: b\0c\r\n"), 400),
        (get(more=b"X-A\r\n"), 400),
        (get(more=b": b\r\n"), 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (get().replace(b"\r\n\r\n", b"\rX: y\r\n\r\n"), 400),
        (post(b"x", b"Expect: something\r\n"), 417),
        (post(b"x", b"Content-Length: 1\r\n"), 400),
        (post(b"x").replace(b"Length: 1", b"Length: +1"), 400),
        (post(b"x").replace(b"Length: 1", b"Length: 1, 1"), 400),
        (post(b"x").replace(b"Length: 1", b"Length: 0x1"), 400),
        (post(b"x").replace(b"Length: 1", b"Length: 99999999999999999999"), 400),
        (post(b"x").replace(b"Length: 1", b"Length: "), 400),
        (post(b"x", b"Transfer-Encoding: chunked\r\n"), 400),
        (chunked(b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"), 400),
        (chunked(b"0\r\n\r\n").replace(b": chunked", b": gzip, chunked"), 501),
        (chunked(b"0\r\n\r\n").replace(b": chunked", b": chunked, chunked"), 400),
        (chunked(b"0\r\n\r\n").replace(b": chunked", b": identity"), 501),
        (chunked(b"0\r\n\r\n").replace(b": chunked", b": \x0bchunked"), 400),
        (chunked(b"0\r\n\r\n").replace(b": chunked", b": \xa0chunked"), 400),
        (chunked(b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), 501),
        (b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 501),
    ],
)
def test_heads_that_are_refused_get_one_json_error(
    server: Running, request_bytes: bytes, status: int
) -> None:
    replies = server.exchange(request_bytes + get(b"/health") * 3)
    assert len(replies) == 1, replies
    assert replies[0].error[0] in (status, 505 if status == 400 else status)
    assert replies[0].headers["connection"] == "close"
    assert server.app.calls == []
    server.is_clean()


def test_a_head_without_an_end_is_refused_at_its_limit(server: Running) -> None:
    for start in (b"GET /", b"GET / HTTP/1.1\r\nX-A: ", b"GET / HTTP/1.1\r\nX-", b"\r\n" * 100):
        with server.connect() as wire:
            try:
                wire.send(
                    start, *([b"\r\n" * 50_000 if start[:1] == b"\r" else b"x" * 100_000] * 8)
                )
            except ConnectionError:  # refused and cut off while it sends
                continue
            assert wire.response().error[0] in (414, 431)
    server.is_clean()


def test_a_large_body_does_not_count_as_the_head_that_follows_it(server: Running) -> None:
    head, remaining = get(b"/second")[:20], get(b"/second")[20:]
    with server.connect() as wire:
        wire.send(post(b"x" * 200_000) + head)
        assert wire.response().json["length"] == 200_000
        assert wire.send(remaining).response().json["path"] == "/second"


def test_a_row_of_requests_does_not_count_as_the_chunks_that_follow_it(server: Running) -> None:
    with server.connect() as wire:
        wire.send(post(b"x" * 200_000) + chunked(b"1\r\nx\r\n"))
        assert wire.response().json["length"] == 200_000
        assert wire.send(b"0\r\n\r\n").response().json["length"] == 1


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a%20b?x=%20", "/a b", "x=%20"),
        (b"http://other.example/a?b", "/a", "b"),
        (b"HTTPS://other.example", "/", ""),
        (b"http://other.example?b", "/", "b"),
        (b"//a/../b", "//a/../b", ""),
        (b"/a%2fb%00", "/a/b\0", ""),
        (b"/?a?b", "/", "a?b"),
    ],
)
def test_targets(server: Running, target: bytes, path: str, query: str) -> None:
    (reply,) = server.exchange(get(target))
    assert (reply.json["path"], reply.json["query"]) == (path, query)


def test_what_two_readers_could_read_differently_is_dropped_or_joined(server: Running) -> None:
    more = (
        b"X_Svc_Master_Key: spoofed\r\nContent_Length: 5\r\nX-Svc_Session-Token: spoofed\r\n"
        b"Proxy: evil\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n"
        b"Forwarded: for=9.9.9.9\r\nX-Real-IP: 9.9.9.9\r\nX-Forwarded-Host: evil\r\n"
        b"Accept: a\r\nAccept: b\r\nCookie: a=1\r\nCookie: b=2\r\n"
    )
    (reply,) = server.exchange(get(more=more))
    expected = {"HTTP_HOST": "a", "HTTP_ACCEPT": "a,b", "HTTP_COOKIE": "a=1; b=2"}
    assert reply.json["headers"] == expected


def test_a_proxy_may_say_whose_request_it_is(tmp_path: Path) -> None:
    with running(tmp_path, proxies=frozenset({"127.0.0.1"})) as server:
        (reply,) = server.exchange(get(more=b"X-Forwarded-For: 9.9.9.9\r\n"))
        assert reply.json["headers"]["HTTP_X_FORWARDED_FOR"] == "9.9.9.9"


# -- connections --------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    row = [get(b"/%d" % number) for number in range(5)]
    replies = server.exchange(b"".join(row) + post(b"body", target=b"/5") + get(b"/6"))
    assert [reply.json["path"] for reply in replies] == [f"/{number}" for number in range(7)]
    assert replies[5].json["length"] == 4


def test_pipelined_requests_over_the_limit_end_the_connection(server: Running) -> None:
    with server.connect() as wire:
        replies = wire.send(get(b"/wait") + get(b"/x") * 100)
        assert server.app.started.acquire(timeout=10)
        server.app.gate.set()
        replies = wire.responses()
    assert len(replies) == 9  # the one that was worked on, and those that may wait
    assert replies[-1].headers["connection"] == "close"
    assert all("connection" not in reply.headers for reply in replies[:-1])
    server.is_clean()


def test_a_packet_full_of_cheap_requests_is_bounded_too(server: Running) -> None:
    with server.connect() as wire:
        assert len(wire.send(get(b"/health") * 5000).responses()) <= 9


def test_an_error_comes_after_the_responses_before_it(server: Running) -> None:
    with server.connect() as wire:
        wire.send(get(b"/wait") + get(b"/second") + b"NONSENSE\r\n\r\n" + get(b"/health"))
        assert server.app.started.acquire(timeout=10)
        server.app.gate.set()
        first, second, error = wire.responses()
    assert [first.json["path"], second.json["path"]] == ["/wait", "/second"]
    assert error.error == (501, 108)


def test_a_connection_is_used_again(server: Running) -> None:
    with server.connect() as wire:
        for number in range(3):
            assert wire.send(get(b"/%d" % number)).response().json["path"] == f"/{number}"
            assert wire.send(post(b"x" * 5000)).response().json["length"] == 5000
        reply = wire.send(get(more=b"Connection: close\r\n")).response()
        assert (reply.headers["connection"], wire.rest()) == ("close", b"")


def test_http_1_0_closes_unless_it_is_asked_not_to(server: Running) -> None:
    with server.connect() as wire:
        reply = wire.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").response()
        assert reply.headers["connection"] == "keep-alive"
        reply = wire.send(b"GET /stream?size=10 HTTP/1.0\r\n\r\n").response()
        assert "transfer-encoding" not in reply.headers
        assert (reply.body, wire.rest()) == (b"x" * 10, b"")


def test_head_has_the_headers_of_get_and_no_body(server: Running) -> None:
    head = get(b"/big?size=1000").replace(b"GET", b"HEAD")
    stream = get(b"/stream?size=300000&pieces=3").replace(b"GET", b"HEAD")
    with server.connect() as wire:
        assert wire.send(head).response("HEAD").body == b""
        assert wire.send(stream).response("HEAD").body == b""
        assert wire.send(get(b"/next")).response().json["path"] == "/next"
    assert server.app.streams[0].has_closed.wait(10)


def test_a_refused_head_request_has_no_body_either(server: Running) -> None:
    with server.connect() as wire:
        wire.send(b"HEAD / HTTP/1.1\r\n" + HOST + b"Content-Length: x1\r\n\r\n")
        assert wire.rest().count(b"\r\n\r\n") == 1


def test_a_client_that_has_ended_its_side_gets_every_response(server: Running) -> None:
    with server.connect() as wire:
        wire.send(get(b"/wait") + get(b"/big?size=3000000") * 2 + b"NONSENSE /").end()
        assert server.app.started.acquire(timeout=10)
        server.app.gate.set()
        replies = wire.responses()
    assert [len(reply.body) for reply in replies[1:3]] == [3_000_000] * 2
    server.is_clean()


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket, h2c", b"TLS/1.0"])
def test_other_protocols_are_not_spoken(server: Running, upgrade: bytes) -> None:
    more = b"Connection: Upgrade\r\nUpgrade: " + upgrade + b"\r\n"
    in_chunks = chunked(b"5\r\nhello\r\n0\r\n\r\n", more)
    row = post(b"hello", more) + in_chunks + get(more=more) + post(b"last")
    replies = server.exchange(row)
    assert [reply.json["length"] for reply in replies] == [5, 5, 0, 4]
    replies = server.exchange(*(bytes([byte]) for byte in row))
    assert [reply.json["length"] for reply in replies] == [5, 5, 0, 4]


def test_a_handshake_without_a_realtime_process_is_refused(server: Running) -> None:
    handshake = get(b"/ws", b"Connection: Upgrade\r\nUpgrade: websocket\r\n")
    (reply,) = server.exchange(handshake + get(b"/health") * 3)
    assert reply.error == (503, 1)
    assert int(reply.headers["retry-after"]) > 0


@pytest.mark.parametrize("method", [b"POST", b"HEAD", b"DELETE"])
def test_only_get_without_a_body_is_a_handshake(server: Running, method: bytes) -> None:
    more = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    request = post(b"hello", more).replace(b"POST", method)
    replies = server.exchange(request, method=method.decode())
    assert [reply.status for reply in replies] == [200]
    assert server.app.calls == ["/"]


def test_failing_applications_are_internal_errors_and_the_server_goes_on(server: Running) -> None:
    with server.connect() as wire:
        for path in (b"/raise", b"/exit", b"/raise", b"/exit", b"/exit"):
            assert wire.send(get(path)).response().error == (500, 1)
        assert wire.send(get()).response().status == 200
        assert wire.send(get(b"/bad-header")).rest() == b""
    server.is_clean()


def test_requests_that_run_finish_when_the_server_stops(server: Running) -> None:
    with server.connect() as busy, server.connect() as idle, server.connect() as half:
        busy.send(get(b"/wait"))
        half.send(get()[:-2])
        assert idle.send(get()).response().status == 200
        assert server.app.started.acquire(timeout=10)
        server.loop.call_soon_threadsafe(server.stop.set)
        assert idle.rest() == half.rest() == b""
        server.app.gate.set()
        (reply,) = busy.responses()
    assert (reply.json["path"], reply.headers["connection"]) == ("/wait", "close")


def test_open_connections_are_served_once_more_when_the_server_stops(tmp_path: Path) -> None:
    with (
        running(tmp_path, last_requests=PATIENCE) as server,
        server.connect() as idle,
        server.connect() as unused,
    ):
        assert idle.send(get()).response().status == 200
        server.wait_for(lambda server: len(server.connections) == 2)
        server.loop.call_soon_threadsafe(server.stop.set)
        server.wait_for(lambda server: server.is_stopping)
        for each in (idle, unused):
            (reply,) = each.send(get(b"/last")).responses()
            assert (reply.json["path"], reply.headers["connection"]) == ("/last", "close")


def test_responses_are_json_whatever_is_sent(server: Running) -> None:
    (reply,) = server.exchange(b"\xff" * 100)
    assert set(json.loads(reply.body)) == {"code", "error"}

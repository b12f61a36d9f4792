"""Responses as bytes: what is written is what a client reads, for any response."""

from __future__ import annotations

import gzip

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.server.responses.heads import LAST_CHUNK, Response, chunk, compressed, framed

names = st.from_regex(r"[A-Za-z][A-Za-z-]{0,20}", fullmatch=True)
values = st.text(st.characters(max_codepoint=255), max_size=30)


def read(wire: bytes, method: str) -> tuple[h11.Response, bytes, bool]:
    """Response, body, and whether the connection may be used again, as h11 reads them."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(wire)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(b"")
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            assert isinstance(event, h11.EndOfMessage)
            assert client.trailing_data[0] == b""
            return response, body, client.their_state is h11.DONE


@settings(max_examples=80)
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]),
    status=st.sampled_from([200, 201, 204, 206, 304, 400, 404, 413, 500, 503]),
    version=st.sampled_from(["1.0", "1.1"]),
    body=st.binary(max_size=100),
    remaining=st.none() | st.lists(st.binary(min_size=1, max_size=50), max_size=3),
    headers=st.lists(st.tuples(names, values), max_size=5),
    keep_alive=st.booleans(),
)
def test_what_is_written_is_what_a_client_reads(
    method: str,
    status: int,
    version: str,
    body: bytes,
    remaining: list[bytes] | None,
    headers: list[tuple[str, str]],
    keep_alive: bool,
) -> None:
    response = Response(
        status, [*headers, ("X-Last", "yes")], body, None if remaining is None else iter(remaining)
    )
    framing = framed(response, method, version, keep_alive=keep_alive)
    pieces = [body, *(remaining or [])]
    wire = framing.head
    if framing.has_body:
        if framing.is_chunked:
            wire += b"".join(chunk(piece) for piece in pieces if piece) + LAST_CHUNK
        else:
            wire += b"".join(pieces)
    answer, observed, is_open = read(wire, method)
    assert answer.status_code == status
    assert observed == (b"".join(pieces) if framing.has_body else b"")
    assert (b"x-last", b"yes") in answer.headers
    if framing.closes:
        assert not is_open or (b"connection", b"close") in answer.headers
    assert wire.split(b"\r\n\r\n")[0].lower().count(b"\r\nconnection:") <= 1
    assert wire.split(b"\r\n\r\n")[0].lower().count(b"\r\ncontent-length:") <= 1


@pytest.mark.parametrize("bad", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rb", "a\0b"])
def test_headers_cannot_be_injected(bad: str) -> None:
    for headers in ([("X-A", bad)], [(bad, "value")]):
        head = framed(Response(200, headers, b"x"), "GET", "1.1", keep_alive=True).head
        assert b"Evil" not in head
        assert b"\0" not in head
        read(head + b"x", "GET")


def test_the_application_does_not_decide_about_the_connection() -> None:
    headers = [("Connection", "keep-alive"), ("Transfer-Encoding", "gzip"), ("Content-Length", "5")]
    framing = framed(Response(200, headers, b"four"), "GET", "1.1", keep_alive=False)
    _, body, is_open = read(framing.head + b"four", "GET")
    assert (body, is_open) == (b"four", False)


LONG = Response(200, [("Content-Type", "application/json"), ("ETag", '"a"')], b"x" * 5000)


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5, br", True),
        ("GZIP, gzip", True),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;\tq = 0", False),
        ("gzip;Q=0.", False),
        ("gzip;q=0.001", True),
        ("x-gzip", False),
        ("not-gzip, br", False),
    ],
)
def test_gzip_is_what_the_client_accepts(accepted: str, is_packed: bool) -> None:
    response = compressed(LONG, accepted)
    names = {name.lower(): value for name, value in response.headers}
    assert (names.get("content-encoding") == "gzip") == is_packed
    if is_packed:
        assert gzip.decompress(response.body) == LONG.body
        assert (names["vary"], names["etag"]) == ("Accept-Encoding", 'W/"a"')


@pytest.mark.parametrize(
    "response",
    [
        Response(200, [("Content-Type", "application/json")], b"x" * 100),
        Response(200, [("Content-Type", "image/png")], b"x" * 5000),
        Response(206, LONG.headers, LONG.body),
        Response(200, [*LONG.headers, ("Content-Encoding", "br")], LONG.body),
        Response(200, LONG.headers, LONG.body, iter([b"more"])),
    ],
)
def test_what_is_small_packed_partial_or_long_stays_as_it_is(response: Response) -> None:
    assert compressed(response, "gzip") is response

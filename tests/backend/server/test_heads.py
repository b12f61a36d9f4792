"""Request heads to WSGI environments: what two readers could read differently doesn't pass."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.kernel.errors import ServiceError
from backend.server.refusals import MalformedRequest
from backend.server.requests.heads import environ_of, framing, split_target

BASE: dict[str, Any] = {"SCRIPT_NAME": "", "wsgi.url_scheme": "http"}
HOST = (b"Host", b"a")


def environ(*fields: tuple[bytes, bytes], version: str = "1.1", proxied: bool = False) -> Any:
    return environ_of(BASE, "GET", b"/", version, fields, is_proxied=proxied)


@settings(max_examples=100)
@given(path=st.binary(max_size=30), query=st.text(st.characters(codec="ascii"), max_size=20))
def test_paths_are_decoded_once(path: bytes, query: str) -> None:
    target = f"/{quote(path, safe='')}?{quote(query, safe='%?=&')}".encode()
    read = environ_of(BASE, "GET", target, "1.1", [HOST], is_proxied=False)
    assert read["PATH_INFO"].encode("latin-1") == b"/" + path
    assert read["QUERY_STRING"] == quote(query, safe="%?=&")


@settings(max_examples=200)
@given(target=st.binary(max_size=40))
def test_any_target_is_split_or_refused(target: bytes) -> None:
    try:
        path, query = split_target(target)
    except MalformedRequest:
        return
    assert path == b"*" or path.startswith(b"/")
    assert not any(byte <= 32 or byte == 127 for byte in path + query)


@settings(max_examples=200)
@given(
    fields=st.lists(
        st.tuples(
            st.from_regex(rb"[A-Za-z_-]{1,12}", fullmatch=True)
            | st.sampled_from([b"X-Forwarded-For", b"Proxy", b"X-Svc-Master-Key", b"Cookie"]),
            st.binary(max_size=10),
        ),
        max_size=8,
    )
)
def test_only_header_names_come_from_clients(fields: list[tuple[bytes, bytes]]) -> None:
    try:
        read = environ(HOST, *fields)
    except MalformedRequest:
        return
    own = {*BASE, "REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"}
    assert all(
        name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        for name in read.keys() - own
    )
    assert not {"HTTP_PROXY", "HTTP_X_FORWARDED_FOR"} & read.keys()
    assert BASE == {"SCRIPT_NAME": "", "wsgi.url_scheme": "http"}


@pytest.mark.parametrize("name", [b"X-Svc-Anything", b"x-parse-anything", b"Host", b"Expect"])
def test_single_fields_may_not_be_repeated(name: bytes) -> None:
    with pytest.raises(ServiceError, match="sent twice"):
        environ(HOST, (name, b"a"), (name.upper(), b"a"), version="1.0")


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        ([], 0),
        ([(b"Content-Length", b"0")], 0),
        ([(b"Content-Length", b"007")], 7),
        ([(b"Transfer-Encoding", b"Chunked")], None),
    ],
)
def test_framing(fields: list[tuple[bytes, bytes]], length: int | None) -> None:
    assert framing(environ(HOST, *fields)) == length


@pytest.mark.parametrize(
    "fields",
    [
        [(b"Content-Length", b"1"), (b"Transfer-Encoding", b"chunked")],
        [(b"Content-Length", b"")],
        [(b"Content-Length", b"-1")],
        [(b"Content-Length", b"1 1")],
        [(b"Content-Length", "\u0661".encode())],
        [(b"Content-Length", b"1" * 19)],
        [(b"Transfer-Encoding", b"gzip")],
        [(b"Transfer-Encoding", b"chunked;x=y")],
    ],
)
def test_ambiguous_framing_is_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(ServiceError) as refusal:
        framing(environ(HOST, *fields))
    assert refusal.value.status in (400, 501)

"""Response heads, compression, and the server's own errors. Pure: no I/O, no Django."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from time import time
from typing import Final

from backend.kernel.errors import ServiceError
from backend.kernel.texts.encoding import encode_json

Header = tuple[str, str]

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_NO_BODY: Final = frozenset({204, 304})
# Smaller bodies fit into one packet anyway.
_COMPRESS_FROM: Final = 1400
_COMPRESSIBLE: Final = (
    "application/json",
    "application/javascript",
    "application/x-ndjson",
    "application/xml",
    "image/svg+xml",
    "text/",
)

_NO_WEIGHT: Final = re.compile(r"[ \t]*q[ \t]*=[ \t]*0(\.0*)?[ \t]*", re.IGNORECASE)
_BAD_HEADER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True)
class Response:
    """The application's response. Of a long one, ``rest`` yields the pieces after ``body``."""

    status: int
    headers: list[Header] = field(default_factory=list)
    body: bytes = b""
    rest: Iterator[bytes] | None = None
    close: Iterable[object] | None = None
    """The application's iterable: its ``close`` method, if it has one, is called at the end."""


def error_response(error: ServiceError) -> Response:
    """Return the response for an error, in the JSON form of all errors."""
    body = encode_json(error.body())
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Access-Control-Allow-Origin", "*"),
        *getattr(error, "headers", {}).items(),
    ]
    return Response(error.status, headers, body)


def compressed(response: Response, accepted: str) -> Response:
    """Return the response compressed with gzip, or unchanged.

    Depends on ``Accept-Encoding`` (``accepted``) and on the response's type and size.
    """
    if (
        response.rest is not None
        or len(response.body) < _COMPRESS_FROM
        or "gzip" not in accepted
        or response.status in (206, 304)
    ):
        return response
    names = {name.lower(): value for name, value in response.headers}
    kind = names.get("content-type", "")
    if not kind.startswith(_COMPRESSIBLE) or "content-encoding" in names or _refuses_gzip(accepted):
        return response
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    body = packer.compress(response.body) + packer.flush()
    vary = names.get("vary")
    headers = [
        (name, value)
        for name, value in response.headers
        if name.lower() not in ("content-length", "vary", "etag")
    ]
    if "etag" in names:  # weak: compression changes the bytes
        headers.append(("ETag", f"W/{names['etag'].removeprefix('W/')}"))
    headers += [
        ("Content-Encoding", "gzip"),
        ("Content-Length", str(len(body))),
        ("Vary", f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"),
    ]
    return Response(response.status, headers, body, None, response.close)


def _refuses_gzip(accepted: str) -> bool:
    for item in accepted.split(","):
        coding, _, weight = item.partition(";")
        if coding.strip().lower() == "gzip":
            return _NO_WEIGHT.fullmatch(weight) is not None
    return True


def announced_length(headers: Iterable[Header]) -> int | None:
    """Return the value of ``Content-Length``, or None."""
    for name, value in headers:
        if _kind(name) is _LENGTH and _is_length(value):
            return int(value)
    return None


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdecimal()


class _Kind(Enum):
    """What the server does with a header of the application."""

    SENT = 1
    DROPPED = 2
    LENGTH = 3
    DATE = 4


_SENT, _DROPPED, _LENGTH, _DATE = _Kind


@lru_cache(maxsize=512)
def _kind(name: str) -> _Kind:
    lowered = name.lower()
    if lowered in ("connection", "keep-alive", "transfer-encoding") or _BAD_HEADER.search(name):
        kind = _DROPPED
    elif lowered == "content-length":
        kind = _LENGTH
    else:
        kind = _DATE if lowered == "date" else _SENT
    return kind


@dataclass(slots=True)
class _Clock:
    second: int = 0
    text: str = ""


_clock = _Clock()


def _date() -> str:
    now = int(time())
    if now != _clock.second:
        _clock.text = formatdate(now, usegmt=True)
        _clock.second = now
    return _clock.text


@dataclass(frozen=True, slots=True)
class Framing:
    """How a response is framed: by its length, by chunks, or by closing the connection."""

    head: bytes
    is_chunked: bool
    has_body: bool
    closes: bool
    length: int | None
    """The announced length of the body."""


def framed(response: Response, method: str, version: str, *, keep_alive: bool) -> Framing:
    """Return the head of a response and its framing.

    The server sets ``Connection`` and the framing, and ``Date`` if it is missing. Of the
    application's own framing, only the length counts of a body that the server doesn't have (a
    stream, or the response to ``HEAD``). Headers with control characters are dropped.
    """
    lines = []
    length: int | None = None
    has_date = False
    for name, value in response.headers:
        kind = _kind(name)
        if kind is _DROPPED:
            continue
        if kind is _LENGTH:
            if length is None and _is_length(value):
                length = int(value)
            continue
        # ``isprintable`` is fast; tabs and some other characters that may be sent don't pass it.
        if not value.isprintable() and _BAD_HEADER.search(value):
            continue
        has_date = has_date or kind is _DATE
        lines.append(f"{name}: {value}\r\n")
    has_body = method != "HEAD" and response.status not in _NO_BODY and response.status >= 200
    if response.rest is None and (has_body or (length is None and response.status not in _NO_BODY)):
        length = len(response.body)
    is_chunked = has_body and length is None and version == "1.1"
    closes = not keep_alive or (has_body and length is None and not is_chunked)
    if length is not None and response.status != 204:
        lines.append(f"Content-Length: {length}\r\n")
    if is_chunked:
        lines.append("Transfer-Encoding: chunked\r\n")
    if not has_date:
        lines.append(f"Date: {_date()}\r\n")
    if closes:
        lines.append("Connection: close\r\n")
    elif version == "1.0":
        lines.append("Connection: keep-alive\r\n")
    reason = _REASONS.get(response.status, "")
    text = f"HTTP/1.1 {response.status} {reason}\r\n{''.join(lines)}\r\n"
    head = text.encode("latin-1", "replace")
    return Framing(head, is_chunked, has_body, closes, length)


def chunk(piece: bytes) -> bytes:
    """Return a piece of a body as a chunk."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


LAST_CHUNK: Final = b"0\r\n\r\n"

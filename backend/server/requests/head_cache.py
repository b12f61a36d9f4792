"""Heads that clients repeat: parsed once, and copied from then on.

The requests of one client often differ only in the request line and the length of their body. If
the same peer sends the same other header bytes again, they mean the same, so the environment that
they were parsed to is copied. This holds for requests that come whole in one packet, in the
plainest form; httptools parses all others. Pure: no I/O, no Django.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

# Characters of a target that every HTTP parser reads in the same way.
_LINE: Final = re.compile(
    rb"(GET|POST|PUT|DELETE) (/[A-Za-z0-9_.~!$&'()*+,;=:@%/?-]*) HTTP/1\.1\r\n"
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([1-9][0-9]{0,8})\r\n", re.IGNORECASE)
_MAX_HEADERS_SIZE: Final = 2048
"""Bytes of the header lines of a head that is cached."""
MAX_HEADS: Final = 512
"""Heads that one process caches. They take up to ten megabytes."""
_MAX_SEEN: Final = 4096
# Headers that change how the body, or the rest of the connection, is read.
_NOT_CACHED: Final = ("HTTP_TRANSFER_ENCODING", "HTTP_EXPECT", "HTTP_UPGRADE")

_Key = tuple[str, bool, bytes]


class Packet(NamedTuple):
    """The parts of a packet that looks like exactly one request. The head may be malformed."""

    method: bytes
    target: bytes
    has_length: bool
    """Whether a length is announced. Without it, an empty length and one that was cut out of
    ``headers`` would look the same."""
    headers: bytes
    """The header lines without the digits of the length."""
    head_size: int
    body: bytes


class CachedHead(NamedTuple):
    """What header lines were parsed to. ``environ`` is copied, never changed."""

    environ: Mapping[str, Any]
    network: str


def split_packet(data: bytes) -> Packet | None:
    """Return the parts of a packet that looks like one request, and None for every other."""
    line = _LINE.match(data)
    if line is None:
        return None
    # With the line break before the first header, so that _LENGTH matches whole lines alone.
    start = line.end() - 2
    end = data.find(b"\r\n\r\n", start)
    if end < 0 or end - start > _MAX_HEADERS_SIZE:
        return None
    method, target = line.groups()
    body = end + 4
    if len(data) == body:
        return Packet(method, target, False, data[start:end], body, b"")
    length = _LENGTH.search(data, start, end + 2)
    if length is None or len(data) != body + int(length[1]):
        return None
    first, last = length.span(1)
    headers = data[start:first] + data[last:end]
    return Packet(method, target, True, headers, body, data[body:])


def is_cacheable(packet: Packet, environ: Mapping[str, Any]) -> bool:
    """Whether the header lines of a packet, which httptools parsed to this environment, are of the
    plain kind that this module reads as httptools does."""
    headers = packet.headers
    breaks = headers.count(b"\r\n")
    # A lone CR or LF could end a line for httptools, but not here.
    has_plain_lines = (
        headers.count(b"\r") == breaks == headers.count(b"\n") and b"\0" not in headers
    )
    return has_plain_lines and not any(name in environ for name in _NOT_CACHED)


def _key(peer: str, packet: Packet) -> _Key:
    return peer, packet.has_length, packet.headers


class HeadCache:
    """The heads of one process, by peer and header lines. Not thread-safe: call it in the event
    loop.

    A head is cached when it comes for the second time: headers such as request ids make the heads
    of some clients unique, and those would displace the others.
    """

    def __init__(self) -> None:
        self._heads: OrderedDict[_Key, CachedHead] = OrderedDict()  # by last use
        self._seen: set[int] = set()  # hashes of heads that have come once

    def __len__(self) -> int:
        return len(self._heads)

    def get(self, peer: str, packet: Packet) -> CachedHead | None:
        """Return what the header lines of this packet, from this peer, were parsed to."""
        key = _key(peer, packet)
        head = self._heads.get(key)
        if head is not None:
            self._heads.move_to_end(key)
        return head

    def comes_again(self, peer: str, packet: Packet) -> bool:
        """Whether these header lines have come before. They have, from now on."""
        key = hash(_key(peer, packet))
        if key in self._seen:
            return True
        if len(self._seen) >= _MAX_SEEN:
            self._seen.clear()
        self._seen.add(key)
        return False

    def put(self, peer: str, packet: Packet, environ: dict[str, Any], network: str) -> None:
        """Cache what the header lines of a packet that ``is_cacheable`` were parsed to."""
        if len(self._heads) >= MAX_HEADS:
            self._heads.popitem(last=False)
        self._heads[_key(peer, packet)] = CachedHead(environ.copy(), network)

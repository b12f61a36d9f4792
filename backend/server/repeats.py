"""Heads that come again: parsed once.

The requests of a client mostly differ in their first line and the length of their body alone. The
fields of a head that was parsed, and that comes again from the same peer byte for byte, mean the
same, so their environment is copied. This concerns whole requests that come in one packet, in the
plainest form; httptools parses all others. Pure: no I/O, no Django.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

# Characters of a target that no parser reads in two ways.
_LINE: Final = re.compile(
    rb"(GET|POST|PUT|DELETE) (/[A-Za-z0-9_.~!$&'()*+,;=:@%/?-]*) HTTP/1\.1\r\n"
)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?([1-9][0-9]{0,8})\r\n", re.IGNORECASE)
_LONGEST: Final = 2048
"""Bytes of the fields of a head that is kept."""
_MOST: Final = 512
"""Heads that one process keeps: a few megabytes at most."""
# What the rest of a connection, or a body, depends on.
_NOT_PLAIN: Final = ("HTTP_TRANSFER_ENCODING", "HTTP_EXPECT", "HTTP_UPGRADE")


class Whole(NamedTuple):
    """A packet that is exactly one request, if its head can be read as it looks."""

    method: bytes
    target: bytes
    fields: tuple[bool, bytes]
    """Whether there is a body, and the lines of the head without its length."""
    body: bytes


class Known(NamedTuple):
    """What the fields of a head were parsed to. ``environ`` is copied, never changed."""

    environ: Mapping[str, Any]
    address: str


def whole_request(data: bytes) -> Whole | None:
    """Return the parts of a packet that looks like one request, and None for every other."""
    line = _LINE.match(data)
    if line is None:
        return None
    start = line.end() - 2
    end = data.find(b"\r\n\r\n", start)
    if end < 0 or end - start > _LONGEST:
        return None
    begin = end + 4
    if len(data) == begin:
        return Whole(line[1], line[2], (False, data[start:end]), b"")
    announced = _LENGTH.search(data, start, end + 2)
    if announced is None or len(data) != begin + int(announced[1]):
        return None
    first, last = announced.span(1)
    return Whole(line[1], line[2], (True, data[start:first] + data[last:end]), data[begin:])


def may_come_again(whole: Whole, environ: Mapping[str, Any]) -> bool:
    """Whether a head that httptools has parsed to this environment is plain."""
    block = whole.fields[1]
    lines = block.count(b"\r\n")
    # With other ends of lines, a parser could see other fields than this module.
    has_plain_lines = block.count(b"\r") == lines == block.count(b"\n") and b"\0" not in block
    return has_plain_lines and not any(name in environ for name in _NOT_PLAIN)


class KnownHeads:
    """The heads that one process has parsed lately. Not thread-safe: call it in the event loop."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, tuple[bool, bytes]], Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, peer: str, whole: Whole) -> Known | None:
        """Return what the fields of this request, from this peer, were parsed to."""
        key = (peer, whole.fields)
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
        return known

    def keep(self, peer: str, whole: Whole, environ: dict[str, Any], address: str) -> None:
        """Keep what the fields of a request that ``may_come_again`` were parsed to."""
        if len(self._kept) >= _MOST:
            self._kept.popitem(last=False)
        self._kept[peer, whole.fields] = Known(environ.copy(), address)

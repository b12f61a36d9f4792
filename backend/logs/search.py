"""Reading what ``backend.logs.store`` keeps: bounded in time, and continued where it stopped.

Redis has no index of the records. A script in Redis reads them block by block and returns those
with the texts that a filter requires (``LogFilter.needles``), which are decoded and compared here.
A search that has used its time says how far it has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec
import redis
from django.conf import settings

from backend.kernel.connections.redis import lasting
from backend.logs.filters import LogFilter
from backend.logs.store import FIELD, STREAM

SECONDS: Final = 0.2
"""How long one search reads records."""
_AT_ONCE: Final = 500
_PATIENCE: Final = 5.0  # seconds
_BLOCK: Final = 1000  # milliseconds that Redis waits for a new record
_LAST_OF_MILLISECOND: Final = 2**64 - 1
_MOST_NEW: Final = 2000  # records that one call of ``newer`` reads
_MOST_OF_REQUEST: Final = 500
_BEFORE_RECORD: Final = 120_000
"""Milliseconds before a record in which its request may have begun."""
_PLACE: Final = re.compile(r"[0-9]{1,20}-[0-9]{1,20}").fullmatch

# KEYS: the stream. ARGV: the command, both ends, how many records, and texts that each has. Returns
# how many were read, the place of the last one, and places and records in turns, a line each: one
# text is several times cheaper to read than a reply of many.
_READ: Final = """
local entries = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'COUNT', ARGV[4])
local lines = {}
for i = 1, #entries do
  local fields = entries[i][2]
  local record = fields[1] == 'r' and fields[2] or ''
  local matches = not string.find(record, '\\n', 1, true)
  for needle = 5, #ARGV do
    matches = matches and string.find(record, ARGV[needle], 1, true)
  end
  if matches then
    lines[#lines + 1] = entries[i][1]
    lines[#lines + 1] = record
  end
end
local last = #entries > 0 and entries[#entries][1] or ''
return {#entries, last, table.concat(lines, '\\n')}
"""


class LogUnavailable(Exception):
    """Redis doesn't answer."""


class Entry(NamedTuple):
    """A record and its place in the stream."""

    place: str
    fields: dict[str, Any]

    @property
    def milliseconds(self) -> int:
        """When it was stored, since the epoch: at most seconds after it was logged."""
        return milliseconds_of(self.place)


@dataclass(frozen=True)
class Page:
    """Some records, newest first. ``older`` is where the next page begins, None if that is all."""

    entries: list[Entry]
    older: str | None


@dataclass(frozen=True)
class Slice:
    """Some records in the order of their places. ``end`` is how far was read, None if all was."""

    entries: list[Entry]
    end: str | None


class Block(NamedTuple):
    """Matching records of one read, and the place of the last record that was read."""

    entries: list[Entry]
    last: str
    is_cut: bool
    """Whether the search ends here, since its time is over, and there may be more to read."""


def is_place(text: str) -> bool:
    """Whether this can be a place in the stream."""
    return _PLACE(text) is not None and all(int(part) < 2**64 for part in text.split("-"))


def milliseconds_of(place: str) -> int:
    """Return the time of a place in the stream, in milliseconds since the epoch."""
    return int(place.partition("-")[0])


def search(
    criteria: LogFilter,
    *,
    before: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
    most_read: int | None = None,
    seconds: float = SECONDS,
) -> Page:
    """Return the newest matching records, of a period, and older than the place ``before``.

    A page may be short or empty and yet have an older one. Raises ``LogUnavailable``.
    """
    entries: list[Entry] = []
    for block in scan(
        criteria, before=before, since=since, until=until, most_read=most_read, seconds=seconds
    ):
        entries += block.entries
        if len(entries) >= limit:
            del entries[limit:]
            return Page(entries, entries[-1].place)
        if block.is_cut:
            return Page(entries, block.last)
    return Page(entries, None)


def scan(
    criteria: LogFilter,
    *,
    before: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    most_read: int | None = None,
    seconds: float = SECONDS,
) -> Iterator[Block]:
    """Yield matching records, newest first, block by block. Raises ``LogUnavailable``."""
    first = "-" if since is None else str(milliseconds(since))
    last = f"({before}" if before else "+" if until is None else str(milliseconds(until))
    yield from _blocks(criteria, "XREVRANGE", last, first, most_read, seconds)


def between(
    criteria: LogFilter,
    since: datetime,
    until: datetime,
    *,
    oldest_first: bool = False,
    limit: int = 100,
    most_read: int | None = None,
    seconds: float = SECONDS,
) -> list[Entry]:
    """Return the matching records of a period, both times included.

    It may miss older (or newer) ones when its time is over. Raises ``LogUnavailable``.
    """
    first, last = str(milliseconds(since)), str(milliseconds(until))
    command = "XRANGE" if oldest_first else "XREVRANGE"
    ends = (first, last) if oldest_first else (last, first)
    entries: list[Entry] = []
    for block in _blocks(criteria, command, *ends, most_read, seconds):
        entries += block.entries
        if len(entries) >= limit:
            break
    return entries[:limit]


def newer(criteria: LogFilter, place: str, *, limit: int = 100) -> Slice:
    """Return matching records after a place, the oldest first, and how far was read.

    ``end`` is the place itself if there is nothing new. Raises ``LogUnavailable``.
    """
    entries: list[Entry] = []
    end = place
    for block in _blocks(criteria, "XRANGE", f"({place}", "+", _MOST_NEW, SECONDS):
        entries += block.entries
        end = block.last or end
        if len(entries) >= limit:
            del entries[limit:]
            return Slice(entries, entries[-1].place)
    return Slice(entries, end)


def of_request(request_id: str, place: str) -> Slice:
    """Return what all processes logged for the request of the record at this place, in order.

    Its time is bounded, so later consequences may be missing: ``end`` is how far was read. Raises
    ``LogUnavailable``.
    """
    entries: list[Entry] = []
    start = str(max(0, milliseconds_of(place) - _BEFORE_RECORD))
    criteria = LogFilter(request_id=request_id)
    end = None
    for block in _blocks(criteria, "XRANGE", start, "+", None, SECONDS):
        entries += block.entries
        if len(entries) >= _MOST_OF_REQUEST or block.is_cut:
            end = block.last
            break
    # Each process sends its records a moment after it has logged them.
    in_order = sorted(
        entries[:_MOST_OF_REQUEST], key=lambda entry: str(entry.fields.get("timestamp", ""))
    )
    return Slice(in_order, end)


def follow(criteria: LogFilter, since: datetime) -> Iterator[Entry]:
    """Yield matching records as they come, after this time; never ends.

    Raises ``LogUnavailable``.
    """
    place = f"{milliseconds(since)}-{_LAST_OF_MILLISECOND}"
    while True:
        for position, raw in _next(place):
            fields = _decoded(raw)
            if fields is not None and criteria.finds(fields):
                yield Entry(position, fields)
            place = position


def entry(place: str) -> Entry | None:
    """Return the record at this place, or None if it is there no more. Raises
    ``LogUnavailable``."""
    if not is_place(place):
        return None
    for block in _blocks(LogFilter(), "XRANGE", place, place, 1, SECONDS):
        return block.entries[0] if block.entries else None
    return None


def oldest() -> str | None:
    """Return the place of the oldest record, or None if there is none. Raises
    ``LogUnavailable``."""
    return _outermost("XRANGE", "-", "+")


def newest() -> str:
    """Return the place of the newest record. Raises ``LogUnavailable``."""
    return _outermost("XREVRANGE", "+", "-") or "0-0"


def _outermost(command: str, first: str, last: str) -> str | None:
    _, place, _ = _read(command, first, last, 1, [])
    return place or None


def _blocks(
    criteria: LogFilter,
    command: str,
    first: str,
    last: str,
    most_read: int | None,
    seconds: float,
) -> Iterator[Block]:
    deadline = monotonic() + seconds
    needles, folded = criteria.needles, criteria.folded_needles
    compares = criteria != LogFilter()
    remaining = most_read
    while True:
        count = _AT_ONCE if remaining is None else min(_AT_ONCE, remaining)
        read, end, text = _read(command, first, last, count, needles)
        entries = []
        lines = iter(text.split(b"\n") if text else ())
        for place, raw in zip(lines, lines, strict=True):
            if folded:
                lower = raw.lower()
                if any(needle not in lower for needle in folded):
                    continue
            fields = _decoded(raw)
            if fields is not None and (not compares or criteria.finds(fields)):
                entries.append(Entry(place.decode(), fields))
        if remaining is not None:
            remaining -= read
        is_end = read < count
        is_cut = not is_end and (remaining == 0 or monotonic() >= deadline)
        yield Block(entries, end, is_cut)
        if is_end or is_cut:
            return
        first = f"({end}"


def _read(
    command: str, first: str, last: str, count: int, needles: list[bytes]
) -> tuple[int, str, bytes]:
    try:
        script = _script(settings.REDIS_URL)
        reply: Any = script(keys=[STREAM], args=[command, first, last, count, *needles])
    except (redis.RedisError, OSError) as error:
        raise LogUnavailable(type(error).__name__) from None
    return reply[0], reply[1].decode(), reply[2]


@lru_cache(maxsize=2)
def _script(url: str) -> Any:
    return lasting(url, _PATIENCE).register_script(_READ)


def _next(place: str) -> list[tuple[str, bytes]]:
    """Wait for records after this place."""
    command = ("XREAD", "COUNT", _AT_ONCE, "BLOCK", _BLOCK, "STREAMS", STREAM, place)
    try:
        with lasting(settings.REDIS_URL, _PATIENCE) as client:
            streams: Any = client.execute_command(*command)
    except (redis.RedisError, OSError) as error:
        raise LogUnavailable(type(error).__name__) from None
    if not streams:
        return []
    entries = streams[0][1] if isinstance(streams, list) else next(iter(streams.values()))
    return [(position.decode(), fields.get(FIELD, b"")) for position, fields in entries]


def milliseconds(time: datetime) -> int:
    """Return a time as the first part of a place in the stream, which is never negative."""
    return max(0, int(time.timestamp() * 1000))


def _decoded(raw: bytes) -> dict[str, Any] | None:
    try:
        fields = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None
    return fields if isinstance(fields, dict) else None

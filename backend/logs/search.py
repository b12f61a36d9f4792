"""Reading what ``backend.logs.store`` keeps: newest first, page by page, bounded in work.

What asks by a request id, a level and so on reads the records one after the other, since Redis
has no index of them; a page reads at most ``MOST_READ`` records and then says where the next one
begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import redis
from django.conf import settings

from backend.kernel.connections.redis import lasting
from backend.logs.store import FIELD, STREAM

MOST_READ = 25_000
LEVELS = ("debug", "info", "warning", "error", "critical")
_AT_ONCE = 1000
_PATIENCE = 5.0  # seconds
_BLOCK = 1000  # milliseconds that Redis waits for a new record
_LAST_OF_MILLISECOND = 2**64 - 1
_STATUS = re.compile(r"[1-5]([0-9]{2}|xx|XX)").fullmatch
_PLACE = re.compile(r"[0-9]{1,20}-[0-9]{1,20}").fullmatch


class LogUnavailable(Exception):
    """Redis doesn't answer."""


@dataclass(frozen=True)
class Entry:
    """A record and its place in the stream."""

    place: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogFilter:
    """Which records are asked for; an empty text asks for nothing.

    ``level`` is the lowest one. ``path`` and ``text`` are looked for without regard to case, a
    text in all values. ``status`` is one of a response, such as ``403``, or a class of them, such
    as ``4xx``; ``code`` is that of an error.
    """

    request_id: str = ""
    level: str = ""
    process: str = ""
    path: str = ""
    text: str = ""
    status: str = ""
    code: str = ""

    def finds(self, fields: dict[str, Any]) -> bool:
        """Whether a record matches."""
        return (
            (not self.request_id or fields.get("request_id") == self.request_id)
            and (not self.level or _rank(fields.get("level")) >= _rank(self.level))
            and (not self.process or fields.get("process") == self.process)
            and (not self.status or _is_of_status(str(fields.get("status", "")), self.status))
            and (not self.code or str(fields.get("code", "")) == self.code)
            and (not self.path or self.path.casefold() in str(fields.get("path", "")).casefold())
            and (not self.text or any(self.text.casefold() in t for t in _texts(fields.values())))
        )


@dataclass(frozen=True)
class Page:
    """Some records, newest first. ``older`` is where the next page begins, None if that is all."""

    entries: list[Entry]
    older: str | None


def is_place(text: str) -> bool:
    """Whether this can be a place in the stream."""
    return _PLACE(text) is not None


def search(
    criteria: LogFilter, *, before: str | None = None, limit: int = 100, most_read: int = MOST_READ
) -> Page:
    """The newest records that are asked for, older than the place ``before``.

    A page may be short or empty and yet have an older one. Raises ``LogUnavailable``.
    """
    entries: list[Entry] = []
    last: str | None = None
    for number, (place, raw) in enumerate(_newest_first(before), start=1):
        last = place
        # Cheaper than decoding: an id is written in no other way than as it is.
        if not criteria.request_id or criteria.request_id.encode() in raw:
            fields = _decoded(raw)
            if fields is not None and criteria.finds(fields):
                entries.append(Entry(place, fields))
        if len(entries) == limit or number == most_read:
            return Page(entries, last)
    return Page(entries, None)


def between(
    criteria: LogFilter,
    since: datetime,
    until: datetime,
    *,
    oldest_first: bool = False,
    limit: int = 100,
    most_read: int = MOST_READ,
) -> list[Entry]:
    """Return the matching records of a period, both times included.

    It reads at most ``most_read`` records, so it may miss older (or newer) ones. Raises
    ``LogUnavailable``.
    """
    first, last = _milliseconds(since), _milliseconds(until)
    entries: list[Entry] = []
    for number, (place, raw) in enumerate(_period(first, last, oldest_first), start=1):
        fields = _decoded(raw)
        if fields is not None and criteria.finds(fields):
            entries.append(Entry(place, fields))
        if len(entries) >= limit or number >= most_read:
            break
    return entries


def follow(criteria: LogFilter, since: datetime) -> Iterator[Entry]:
    """Yield matching records as they come, after this time; never ends.

    Raises ``LogUnavailable``.
    """
    place = f"{_milliseconds(since)}-{_LAST_OF_MILLISECOND}"
    while True:
        for position, raw in _newer(place):
            fields = _decoded(raw)
            if fields is not None and criteria.finds(fields):
                yield Entry(position, fields)
            place = position


def entry(place: str) -> Entry | None:
    """The record at this place, or None if it is there no more. Raises ``LogUnavailable``."""
    if not is_place(place):
        return None
    for position, raw in _read("XRANGE", place, place, 1):
        fields = _decoded(raw)
        return None if fields is None else Entry(position, fields)
    return None


def _newest_first(before: str | None) -> Iterator[tuple[str, bytes]]:
    end = "+" if before is None else f"({before}"
    while True:
        records = _read("XREVRANGE", end, "-", _AT_ONCE)
        yield from records
        if len(records) < _AT_ONCE:
            return
        end = f"({records[-1][0]}"


def _period(first: int, last: int, oldest_first: bool) -> Iterator[tuple[str, bytes]]:
    command = "XRANGE" if oldest_first else "XREVRANGE"
    start, end = (str(first), str(last)) if oldest_first else (str(last), str(first))
    while True:
        records = _read(command, start, end, _AT_ONCE)
        yield from records
        if len(records) < _AT_ONCE:
            return
        start = f"({records[-1][0]}"


def _newer(place: str) -> list[tuple[str, bytes]]:
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


def _milliseconds(time: datetime) -> int:
    """Return a time as the first part of a place in the stream, which is never negative."""
    return max(0, int(time.timestamp() * 1000))


def _read(command: str, first: str, last: str, most: int) -> list[tuple[str, bytes]]:
    try:
        with lasting(settings.REDIS_URL, _PATIENCE) as client:
            answer: Any = client.execute_command(command, STREAM, first, last, "COUNT", most)
    except (redis.RedisError, OSError) as error:
        raise LogUnavailable(type(error).__name__) from None
    return [(place.decode(), fields.get(FIELD, b"")) for place, fields in answer]


def _decoded(raw: bytes) -> dict[str, Any] | None:
    try:
        fields = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def is_status(text: str) -> bool:
    """Whether this can be the ``status`` of a filter."""
    return _STATUS(text) is not None


def _is_of_status(status: str, pattern: str) -> bool:
    return status[:1] == pattern[:1] if pattern[1:].lower() == "xx" else status == pattern


def _rank(level: object) -> int:
    return LEVELS.index(level) if isinstance(level, str) and level in LEVELS else -1


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """All texts and numbers in these values, in one case."""
    for value in values:
        if isinstance(value, dict):
            yield from _texts(value.keys())
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)
        else:
            yield str(value).casefold()

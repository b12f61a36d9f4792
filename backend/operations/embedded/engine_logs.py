"""What the engines write to their logs, on the launcher's lines as well.

Each engine appends to a file of its own, which holds it also while nothing reads it. What is new
in there is passed on, several times a second. A file that has grown is emptied; what it held is
kept beside it, once.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from backend.logs import plain

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of a log before it is emptied."""

_AT_ONCE: Final = 256 * 1024  # bytes that one look reads
_LINE: Final = 2000  # characters of a line that are passed on

POSTGRES_PREFIX: Final = "%m|%p|%b|"
"""PostgreSQL's ``log_line_prefix``, as ``postgres_line`` reads it."""

_POSTGRES: Final = re.compile(r"([0-9-]{10}) ([0-9:.]{12}) UTC\|\d+\|([^|]*)\|([A-Z0-9]+): +(.*)")
_REDIS: Final = re.compile(r"\d+:[A-Z] (\d\d \w{3} \d{4} [0-9:.]{12}) ([.*#-]) (.*)")
# What Redis marks as a warning at each start and end.
_REDIS_ROUTINE: Final = (
    "oO0OoO0OoO0Oo",
    "Redis version=",
    "Valkey version=",
    "Configuration loaded",
    "Server initialized",
    "Redis is now ready to exit",
    "Valkey is now ready to exit",
)
_REDIS_LEVELS: Final = {".": "debug", "-": "debug", "*": "info", "#": "warning"}
_POSTGRES_LEVELS: Final = {
    "WARNING": "warning",
    "ERROR": "error",
    "FATAL": "error",
    "PANIC": "critical",
}


class Entry(NamedTuple):
    """A line of an engine's log."""

    level: str
    event: str
    timestamp: str = ""


class EngineLog:
    """The log of one engine, from its present end on."""

    def __init__(self, process: str, path: Path, read: Callable[[str], Entry]) -> None:
        self._process = process
        self._path = path
        self._read = read
        self._place = self._size()
        self._rest = b""

    def look(self) -> None:
        """Pass on what is new. Never raises because of the file."""
        with suppress(OSError):
            if self._size() < self._place:  # emptied by another
                self._place, self._rest = 0, b""
            self._pass_on()
            size = self._size()
            is_read = self._place >= size and not self._rest
            if size > LONGEST and (is_read or size > 4 * LONGEST):
                self._empty()

    def skip(self) -> None:
        """Leave out what is new, such as the usual words of a first start that has succeeded."""
        self._place, self._rest = self._size(), b""

    def _pass_on(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._place)
            new = file.read(_AT_ONCE)
        self._place += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        if len(self._rest) > _AT_ONCE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if line.strip():
                entry = self._read(line[: 4 * _LINE].decode(errors="replace")[:_LINE].rstrip())
                plain.write(
                    entry.level, entry.event, process=self._process, timestamp=entry.timestamp
                )

    def _empty(self) -> None:
        """Keep what the file holds beside it, if the disk has room, and empty the file: the engine
        goes on appending to it."""
        copy = self._path.with_name(f"{self._path.name}.1")
        try:
            shutil.copyfile(self._path, copy)
        except OSError:
            with suppress(OSError):
                copy.unlink()
        os.truncate(self._path, 0)
        self._place, self._rest = 0, b""

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0


def postgres_line(line: str) -> Entry:
    """A line of PostgreSQL's, with ``POSTGRES_PREFIX``.

    A statement that fails is the application's business, which logs it as far as it matters; a
    connection that is ended or refused is not.
    """
    match = _POSTGRES.match(line)
    if match is None:  # such as the rest of a text of several lines
        return Entry("debug", line)
    day, time, backend, severity, text = match.groups()
    level = _POSTGRES_LEVELS.get(severity, "info")
    if backend == "client backend":
        level = {"FATAL": "warning", "LOG": "info"}.get(severity, "debug")
        if text.startswith("the database system is "):  # starting up, shutting down
            level = "info"
    return Entry(level, text, f"{day}T{time}Z")


def redis_line(line: str) -> Entry:
    """A line of Redis' or Valkey's."""
    match = _REDIS.match(line)
    if match is None:
        return Entry("info", line)
    when, mark, text = match.groups()
    try:
        time = datetime.strptime(when, "%d %b %Y %H:%M:%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return Entry("info", line)
    stamp = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    level = "info" if text.startswith(_REDIS_ROUTINE) else _REDIS_LEVELS[mark]
    return Entry(level, text, stamp)

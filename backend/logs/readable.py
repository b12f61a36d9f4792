"""Log records as lines for a person at a terminal: time, level, process, event, fields.

The launcher, which loads little, writes its lines this way too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_RESET: Final = "\x1b[0m"
_FAINT: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_LEVELS: Final[Mapping[str, str]] = {
    "debug": _FAINT,
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}
_AT_THE_BEGINNING: Final = ("timestamp", "level", "process", "event")
_BELOW: Final = ("exception", "stack")


def render(record: Mapping[str, Any], *, colours: bool) -> str:
    """The line of a record, without the newline at its end. Tracebacks follow in lines of their
    own. ``record`` has at least ``timestamp`` (ISO 8601), ``level``, ``process`` and ``event``."""
    level = str(record["level"])
    parts = [
        _painted(_time(str(record["timestamp"])), _FAINT if colours else ""),
        _painted(f"{level:<8}", _LEVELS.get(level, "") if colours else ""),
        f"{_plain(record['process']):<9}",
        _painted(_plain(record["event"]), _BOLD if colours else ""),
    ]
    left_out = {*_AT_THE_BEGINNING, *_BELOW}
    if record.get("logger") == record["event"]:
        left_out.add("logger")
    for name, value in record.items():
        if name not in left_out:
            parts.append(_painted(f"{_plain(name)}=", _FAINT if colours else "") + _quoted(value))
    below = [record[name] for name in _BELOW if record.get(name)]
    return "\n".join(
        [" ".join(parts), *(_plain(line) for text in below for line in str(text).splitlines())]
    )


def _time(timestamp: str) -> str:
    """The time of day, in milliseconds."""
    return timestamp.partition("T")[2][:12].rstrip("Z") or timestamp


def _painted(text: str, colour: str) -> str:
    return f"{colour}{text}{_RESET}" if colour else text


def _plain(value: object) -> str:
    """The text without what a terminal would obey."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(value))


def _quoted(value: object) -> str:
    text = _plain(value)
    if text and " " not in text:
        return text
    quote = "'" if "'" not in text else '"'
    return f"{quote}{text}{quote}"

"""Values of log lines as plain JSON, bounded and without secrets.

Code of the deployment may log values of any length, depth and type, also broken ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from structlog.typing import EventDict, WrappedLogger

from backend.kernel.interruptions import is_from_outside
from backend.kernel.texts.encoding import describe
from backend.kernel.texts.redaction import MASK, is_sensitive, mask_text

LONGEST_TEXT: Final = 128 * 1024  # characters
_MOST_VALUES: Final = 10_000
_DEEPEST: Final = 20
_LEFT_OUT: Final = "…"
_OURS = {"_record", "_from_structlog"}  # put in and taken out again by structlog's formatter
_LARGEST: Final = 2**64


class _Room:
    """How many values and characters of a field are still written."""

    __slots__ = ("characters", "left")

    def __init__(self) -> None:
        self.left = _MOST_VALUES
        self.characters = 2 * LONGEST_TEXT

    def text(self, text: str) -> str:
        """Return a text without secrets, shortened, or a mark in its place if there is no room."""
        text = mask_text(_cut(text))
        if len(text) > self.characters:
            return _LEFT_OUT
        self.characters -= len(text)
        return text


def mask(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Hide keys, tokens and passwords, by the name of the field and by their look in a text."""
    for key, value in event.items():
        if key not in _OURS:
            event[key] = _masked_field(key, value)
    return event


def _masked_field(key: str, value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    try:
        return MASK if is_sensitive(key) and value else _masked(value, _Room(), 0)
    except BaseException as error:  # of methods of the value, which may be any object
        if is_from_outside(error):
            raise
        return f"<{kind.__name__} that can't be written: {type(error).__name__}>"


def _masked(value: Any, room: _Room, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return room.text(value)
    if value is None or kind is float or kind is bool:
        return value
    if kind is int:
        return value if -_LARGEST < value < _LARGEST else describe(value)
    is_mapping = isinstance(value, Mapping)
    if not is_mapping and not isinstance(value, list | tuple | set | frozenset):
        return room.text(describe(value))
    if depth >= _DEEPEST:
        return _LEFT_OUT
    return _masked_mapping(value, room, depth) if is_mapping else _masked_list(value, room, depth)


def _masked_mapping(value: Mapping[Any, Any], room: _Room, depth: int) -> dict[str, Any]:
    masked: dict[str, Any] = {}
    for key, item in value.items():
        room.left -= 1
        if room.left < 0:
            masked[_LEFT_OUT] = _LEFT_OUT
            break
        name = room.text(describe(key))
        masked[name] = MASK if is_sensitive(name) and item else _masked(item, room, depth + 1)
    return masked


def _masked_list(value: Any, room: _Room, depth: int) -> list[Any]:
    masked: list[Any] = []
    for item in value:
        room.left -= 1
        if room.left < 0:
            masked.append(_LEFT_OUT)
            break
        masked.append(_masked(item, room, depth + 1))
    return masked


def _cut(text: str) -> str:
    """Return the beginning and the end of a long text: the end of a traceback says most.

    The end begins with a whole line, so that no part of a secret stands there without its name.
    """
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    _, _, end = text[-half:].partition("\n")
    left_out = len(text) - half - len(end)
    return f"{text[:half]}\n… {left_out} characters left out …\n{end}"

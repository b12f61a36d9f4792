"""Which log records are requested: the same filter for the admin, the command line and REST."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Final

import msgspec

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
KINDS_OF_KEYS: Final = (
    *("rest key", "javascript key", "client key", "application"),
    *("master", "read-only master", "maintenance", "staff"),
)
METHODS: Final = ("GET", "POST", "PUT", "DELETE")
_CODE_FIELDS: Final = ("function", "job", "trigger", "ran", "what", "about", "task")
"""Where records name a function, trigger or job."""
_PEOPLE: Final = ("user", "staff")
_STATUS: Final = re.compile(r"[1-5]([0-9]{2}|xx|XX)").fullmatch
_NAMED: Final = re.compile(r"(?:^|\s)([A-Za-z_]\w*)=(\S+)")
_PLAIN: Final = re.compile(r'[^\x00-\x1f"\\\x7f-\U0010ffff]+').fullmatch


@dataclass(frozen=True)
class LogFilter:
    """Which records are requested; an empty text requests all.

    ``level`` is the lowest one. ``status`` is one of a response, such as ``403``, or a class of
    them, such as ``4xx``; ``code`` is that of an error. ``user`` is the id of a user, or the name
    of a staff user. ``function`` is part of the name of a function, trigger or job, ``route`` and
    ``path`` are parts of those of a request.

    ``text`` is looked for in all texts of a record, without regard to case. Digits alone are a
    status or a code. ``name=value`` in it looks for the value in the field of this name.
    """

    status: str = ""
    code: str = ""
    method: str = ""
    route: str = ""
    path: str = ""
    class_name: str = ""
    object_id: str = ""
    function: str = ""
    user: str = ""
    key: str = ""
    address: str = ""
    level: str = ""
    process: str = ""
    request_id: str = ""
    text: str = ""

    @property
    def values(self) -> dict[str, str]:
        """What is requested, by name: only what isn't empty."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value}

    def finds(self, record: Mapping[str, Any]) -> bool:
        """Whether a record matches."""
        return all(test(record) for test in self._tests)

    @cached_property
    def _tests(self) -> list[Callable[[Mapping[str, Any]], bool]]:
        """What a record has to pass: only what is requested, since thousands are compared."""
        tests: list[Callable[[Mapping[str, Any]], bool]] = []
        for name, value in self._equal:
            tests.append(partial(_is_equal, name, value))
        if self.level:
            levels = LEVELS[max(0, _rank(self.level)) :]
            tests.append(lambda record: record.get("level") in levels)
        if self.status:
            tests.append(lambda record: _is_of_status(record.get("status"), self.status))
        if self.code:
            tests.append(lambda record: _is_number("code", self.code, record))
        if self.user:
            tests.append(lambda record: self.user in [record.get(name) for name in _PEOPLE])
        if self.function:
            tests.append(
                lambda record: any(self.function in str(record.get(n, "")) for n in _CODE_FIELDS)
            )
        if self.route:
            tests.append(lambda record: self.route in str(record.get("route", "")))
        if self.path:
            path = self.path.casefold()
            tests.append(lambda record: path in str(record.get("path", "")).casefold())
        if self.text:
            tests.append(self._has_text)
        return tests

    @property
    def needles(self) -> list[bytes]:
        """Texts that the JSON of every matching record has: cheaper to look for than to decode."""
        texts = [f"{_json(name)}:{_json(value)}" for name, value in self._equal]
        if is_status(self.status):
            texts.append(f'"status":{self.status.lower().removesuffix("xx")}')
        if self.code:
            texts.append(f'"code":{self.code}')
        if self.user:
            texts.append(_json(self.user))
        texts += [_json(text)[1:-1] for text in (self.function, self.route) if text]
        return [text.encode() for text in texts if text.isascii() and text.isprintable()]

    @cached_property
    def folded_needles(self) -> list[bytes]:
        """Texts that the JSON of every matching record has in lower case."""
        return [
            text.lower().encode() for text in (self.path, self._phrase) if text and _PLAIN(text)
        ]

    @cached_property
    def _equal(self) -> list[tuple[str, str]]:
        names = ("request_id", "process", "method", "class_name", "object_id", "key", "address")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]

    @cached_property
    def _named(self) -> list[tuple[str, str]]:
        return [(name, value.casefold()) for name, value in _NAMED.findall(self.text)]

    @cached_property
    def _phrase(self) -> str:
        phrase = " ".join(_NAMED.sub(" ", self.text).split())
        return "" if phrase.isdecimal() else phrase

    @cached_property
    def _number(self) -> str:
        phrase = _NAMED.sub(" ", self.text).strip()
        return phrase if phrase.isdecimal() else ""

    def _has_text(self, record: Mapping[str, Any]) -> bool:
        if self._number and not any(
            _is_number(name, self._number, record) for name in ("status", "code")
        ):
            return False
        for name, value in self._named:
            field = record.get(name)
            text = str(field).casefold()
            if field is None or not (value in text if isinstance(field, str) else value == text):
                return False
        phrase = self._phrase.casefold()
        return not phrase or any(phrase in text for text in _texts(record.values()))


def is_status(text: str) -> bool:
    """Whether this can be the ``status`` of a filter."""
    return _STATUS(text) is not None


def _is_equal(name: str, value: str, record: Mapping[str, Any]) -> bool:
    return bool(record.get(name) == value)


def _is_number(name: str, text: str, record: Mapping[str, Any]) -> bool:
    value = record.get(name)
    return isinstance(value, int) and str(value) == text


def _is_of_status(status: object, pattern: str) -> bool:
    # Records of jobs have the id of a run in a field of the same name.
    text = str(status) if isinstance(status, int) else ""
    return text[:1] == pattern[:1] if pattern[1:].lower() == "xx" else text == pattern


def _rank(level: object) -> int:
    return LEVELS.index(level) if isinstance(level, str) and level in LEVELS else -1


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """All texts in these values, in one case."""
    for value in values:
        if isinstance(value, str):
            yield value.casefold()
        elif isinstance(value, dict):
            yield from _texts(value.keys())
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()

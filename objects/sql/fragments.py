"""SQL text with its parameters, put together from parts.

``text`` has ``%s`` for every parameter, in order, and never holds anything that a client wrote.
Names that come from a class's definition stand in it only through ``literal``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

_SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL; ``a + b`` puts two in a row."""

    text: str
    params: tuple[Any, ...] = ()

    def __add__(self, other: Sql | str) -> Sql:
        if isinstance(other, str):
            return Sql(self.text + other, self.params)
        return Sql(self.text + other.text, self.params + other.params)

    def __radd__(self, other: str) -> Sql:
        return Sql(other + self.text, self.params)


TRUE: Final = Sql("TRUE")
FALSE: Final = Sql("FALSE")


def both(parts: Iterable[Sql]) -> Sql:
    """Return all of the parts, without those that are always true."""
    conjuncts = [part for part in parts if part.text != "TRUE"]
    if any(part.text == "FALSE" for part in conjuncts):
        return FALSE
    return _joined(conjuncts, " AND ", TRUE)


def either(parts: Iterable[Sql]) -> Sql:
    """Any of the parts, without those that are always false."""
    disjuncts = [part for part in parts if part.text != "FALSE"]
    if any(part.text == "TRUE" for part in disjuncts):
        return TRUE
    return _joined(disjuncts, " OR ", FALSE)


def negation(part: Sql) -> Sql:
    """True where the part is false or unknown."""
    if part.text == "FALSE":
        return TRUE
    if part.text == "TRUE":
        return FALSE
    return Sql(f"(({part.text}) IS NOT TRUE)", part.params)


def _joined(parts: list[Sql], word: str, empty: Sql) -> Sql:
    if len(parts) < 2:
        return parts[0] if parts else empty
    text = word.join(part.text for part in parts)
    return Sql(f"({text})", tuple(value for part in parts for value in part.params))


def literal(name: str) -> str:
    """A name from a class's definition as an SQL string."""
    if _SAFE.fullmatch(name) is None:
        raise ValueError(f"not a name: {name!r}")
    return f"'{name}'"


def json_text(value: object) -> str:
    """A value as JSON, for a parameter."""
    return msgspec.json.encode(value).decode()

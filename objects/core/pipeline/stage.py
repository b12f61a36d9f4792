"""The base of all stages of a pipeline, and what parsing a stage is given.

A stage is one class, a frozen dataclass derived from ``Stage``: its names, its body on the wire
and its line of documentation. Its SQL is one class in ``objects.sql.pipeline.stages``, tested
against ``tests.oracles.pipelines``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from objects.core.pipeline.limits import check_fields

_MAX_NUMBER: Final = 2**53


@dataclass(frozen=True, slots=True)
class Stage:
    """Any stage. Use the subclasses."""

    names: ClassVar[tuple[str, ...]] = ()
    """Its names on the wire; none for nodes that other stages parse to."""
    summary: ClassVar[str] = ""
    """What it does, in Markdown; for the table in docs/aggregation.md."""

    @classmethod
    def parse(cls, body: Body) -> Stages:
        """Return the nodes of the stage. Raises ``InvalidQuery`` that names the place."""
        raise NotImplementedError

    @classmethod
    def nodes(cls) -> tuple[type[Stage], ...]:
        """Return the classes of the nodes that parsing returns."""
        return (cls,)


Stages: TypeAlias = tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """What a client wrote as the body of a stage, and where."""

    json: Json
    place: str
    depth: int
    """How many pipelines the stage's own pipeline is inside of."""
    parse: Callable[[Json, str, int], Stages]
    """Parses a pipeline, by its JSON, place and depth."""

    def fields(self) -> dict[str, Json]:
        """Return the body, an object. Raises ``InvalidQuery`` if it is none, or too large."""
        if not isinstance(self.json, dict):
            raise InvalidQuery(f"{self.place}: expected an object")
        check_fields(self.json, self.place)
        return self.json

    def text(self) -> str:
        """Return the body, a text. Raises ``InvalidQuery`` if it is none, or empty."""
        return text(self.json, self.place)

    def number(self, least: int) -> int:
        """Return the body, a whole number. Raises ``InvalidQuery`` if it is none, or smaller."""
        return number(self.json, self.place, least)


def text(json: Json, place: str) -> str:
    """Return a text that isn't empty. Raises ``InvalidQuery``."""
    if not isinstance(json, str) or not json:
        raise InvalidQuery(f"{place}: expected a name")
    return json


def number(json: Json, place: str, least: int) -> int:
    """Return a whole number of at least ``least``. Raises ``InvalidQuery``."""
    if isinstance(json, float) and json.is_integer():
        json = int(json)
    if isinstance(json, bool) or not isinstance(json, int) or not least <= json <= _MAX_NUMBER:
        raise InvalidQuery(f"{place}: expected a whole number of at least {least}")
    return json

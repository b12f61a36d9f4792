"""Where the parts of the document come from.

A source is a function of the caller. It returns an ``Offer``: a fingerprint of everything that
its part depends on, and a way to make the part. Fingerprints are asked for at every request, so
they must be cheap; parts are made when a fingerprint is new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from backend.kernel.principal import Principal
from backend.openapi.operations import Operation

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Part:
    """What a source has for a caller: operations by path and method, component schemas by the
    names that ``Names`` gave."""

    paths: dict[str, dict[str, Operation]] = field(default_factory=dict)
    schemas: dict[str, Json] = field(default_factory=dict)


class Names:
    """The names of component schemas: one for each, for any names of classes and functions."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = set(taken)

    def take(self, wanted: str) -> str:
        """The name that is wanted, or one like it if there is such a schema already."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source would contribute for one caller."""

    fingerprint: Hashable
    part: Callable[[Names], Part]


Source: TypeAlias = Callable[[Principal], Offer]

_sources: dict[Source, None] = {}
_schemas: dict[str, Json] = {}


def contribute(source: Source, *, schemas: Mapping[str, Json] | None = None) -> None:
    """Add a source to the document. Sources are asked in the order of their contribution.

    ``schemas`` are components with fixed names. Raises ``ValueError`` if another schema has one
    of the names.
    """
    for name, schema in (schemas or {}).items():
        if _schemas.setdefault(name, schema) != schema:
            raise ValueError(f"There are two component schemas {name}.")
    _sources[source] = None


def offers(principal: Principal) -> list[Offer]:
    """What all sources have for a caller."""
    return [source(principal) for source in _sources]


def fixed_schemas() -> Mapping[str, Json]:
    """The components with fixed names."""
    return _schemas

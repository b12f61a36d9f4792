"""Where the parts of the document come from: the routes of the URL configuration, and what a
*source* generates for some of them.

A source is a function of the caller. It returns an ``Offer``: a fingerprint of everything that
its part depends on, and a way to make the part. Fingerprints are compared at every request, so
they must be cheap; parts are made when a fingerprint is new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import TypeAlias

from django.urls import URLPattern

from backend.kernel.json_types import Schema
from backend.kernel.principal import Principal
from backend.openapi.descriptions import Route, routes_of
from backend.openapi.operations import Operation
from backend.openapi.schemas import schema_of
from backend.settings.conf import service_settings

Paths: TypeAlias = dict[str, dict[str, Operation]]


@dataclass(slots=True)
class Part:
    """Operations by path and method, and component schemas by the names that ``Names`` gave."""

    paths: Paths = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)


class Names:
    """The names of component schemas: unique for any names of classes and functions."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = set(taken)

    def take(self, preferred: str) -> str:
        """Return the preferred name, or one like it if there is such a schema already."""
        name, number = preferred, 1
        while name in self._taken:
            number += 1
            name = f"{preferred}_{number}"
        self._taken.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source would contribute for one caller."""

    fingerprint: Hashable
    part: Callable[[Names], Part]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What generates the operations of the routes whose views name it as their ``source``.

    ``offer`` gets the caller and these routes. ``schemas`` are components with fixed names, which
    all descriptions may refer to.
    """

    offer: Callable[[Principal, list[Route]], Offer]
    schemas: Mapping[str, Schema] = field(default_factory=dict)


def _describe(principal: Principal, routes: list[Route]) -> Offer:
    """Take over what views say of themselves, except for operations whose setting is off."""
    settings = {each.setting for route in routes for each in route.operations.values()}
    off = {name for name in settings if name and not getattr(service_settings, name)}

    def part(names: Names) -> Part:
        paths: Paths = {}
        for route in routes:
            for method, operation in route.operations.items():
                if operation.setting not in off:
                    paths.setdefault(route.path, {})[method] = operation
        return Part(paths)

    return Offer(tuple(sorted(off)), part)


_DESCRIBED = Source(_describe)
_patterns: list[URLPattern] = []


def describe_routes(patterns: Iterable[URLPattern]) -> None:
    """Make the document of these routes, in their order."""
    _patterns[:] = patterns
    _read.cache_clear()


@cache
def _read() -> tuple[list[tuple[Source, list[Route]]], dict[str, Schema]]:
    """The routes by their source, and the components with fixed names."""
    routes = routes_of(_patterns)
    schemas: dict[str, Schema] = {}
    for route in routes:
        schemas |= _source(route).schemas
    groups: dict[Hashable, tuple[Source, list[Route]]] = {}
    for number, (source, neighbours) in enumerate(groupby(routes, _source)):
        # Routes that are described in full keep their place among the others.
        key = number if source is _DESCRIBED else source
        resolved = [route.resolved(lambda type_: schema_of(type_, schemas)) for route in neighbours]
        groups.setdefault(key, (source, []))[1].extend(resolved)
    return [*groups.values()], schemas


def _source(route: Route) -> Source:
    return getattr(route.view, "source", None) or _DESCRIBED


def fixed_schemas() -> Mapping[str, Schema]:
    """Return the components with fixed names: those of sources and those of declared types."""
    return _read()[1]


def offers(principal: Principal) -> list[Offer]:
    """Return what all routes have for a caller."""
    return [source.offer(principal, routes) for source, routes in _read()[0]]

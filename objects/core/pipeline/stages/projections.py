"""Stages that shape documents: ``$project``, ``$addFields`` (``$set``) and ``$unset``.

What they name is a tree, since ``{"a.b": 1}`` and ``{"a": {"b": 1}}`` are the same. A tree is
applied to a value like this: an object is shaped by it; an array is shaped element by element
(one level deep); anything else has no parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.expressions import Expression
from objects.core.pipeline.limits import check_fields
from objects.core.pipeline.paths import MAX_STEPS, parse_path
from objects.core.pipeline.stage import Body, Stage, Stages


@dataclass(frozen=True, slots=True)
class Named:
    """The part is named: it is kept, or left out."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The projection of the parts of a value."""

    parts: tuple[tuple[str, Part], ...]

    @property
    def computes(self) -> bool:
        """Whether some part below is the value of an expression."""
        return any(
            part.computes if isinstance(part, Tree) else not isinstance(part, Named)
            for _, part in self.parts
        )


Part: TypeAlias = Named | Tree | Expression


_NAMED: Final = Named()
_Draft: TypeAlias = "dict[str, _Draft | Part]"
_ID: Final = "objectId"


@dataclass(frozen=True, slots=True)
class Include(Stage):
    """Documents with the named and the computed fields, and their id unless it isn't wanted."""

    tree: Tree
    keeps_id: bool = True


@dataclass(frozen=True, slots=True)
class Exclude(Stage):
    """Documents without the named fields."""

    tree: Tree


@dataclass(frozen=True, slots=True)
class SetFields(Stage):
    """Documents with additional computed fields; a missing value removes its field."""

    tree: Tree


class Project(Stage):
    """Becomes ``Include`` or ``Exclude``."""

    names = ("$project",)
    summary = (
        "documents with the named fields (1) and computed ones, or without the named ones (0);"
        ' `{"a.b": 1}` is `{"a": {"b": 1}}`'
    )

    @classmethod
    def parse(cls, body: Body) -> Stages:
        fields, place = _some_fields(body), body.place
        included: _Draft = {}
        excluded: _Draft = {}
        includes_id: bool | None = None
        for path, value in _leaves(fields, place, (), flags=True):
            if path == (_ID,) and isinstance(value, bool):
                includes_id = value
            elif value is False:
                _insert(excluded, path, _NAMED, place)
            else:
                _insert(included, path, _NAMED if value is True else value, place)
        if included and excluded:
            raise InvalidQuery(
                f"{place}: either the fields to keep are named, or those to leave out"
            )
        if excluded or (not included and includes_id is False):
            if includes_id is False:
                _insert(excluded, (_ID,), _NAMED, place)
            return (Exclude(_tree(excluded)),)
        return (Include(_tree(included), includes_id is not False),)

    @classmethod
    def nodes(cls) -> tuple[type[Stage], ...]:
        return Include, Exclude


class AddFields(Stage):
    """Becomes ``SetFields``."""

    names = ("$addFields", "$set")
    summary = "documents with computed fields in addition; a missing value removes its field"

    @classmethod
    def parse(cls, body: Body) -> Stages:
        draft: _Draft = {}
        for path, value in _leaves(_some_fields(body), body.place, (), flags=False):
            _insert(draft, path, cast(Expression, value), body.place)
        return (SetFields(_tree(draft)),)

    @classmethod
    def nodes(cls) -> tuple[type[Stage], ...]:
        return (SetFields,)


class Unset(Stage):
    """Becomes ``Exclude``."""

    names = ("$unset",)
    summary = "documents without a field: its name, or an array of names"

    @classmethod
    def parse(cls, body: Body) -> Stages:
        place = body.place
        names = body.json if isinstance(body.json, list) else [body.json]
        check_fields(names, place)
        draft: _Draft = {}
        for name in names:
            if not isinstance(name, str):
                raise InvalidQuery(f"{place}: expected the name of a field, or an array of names")
            _insert(draft, _steps(name, place, ()), _NAMED, place)
        if not draft:
            raise InvalidQuery(f"{place}: expected at least one field")
        return (Exclude(_tree(draft)),)

    @classmethod
    def nodes(cls) -> tuple[type[Stage], ...]:
        return (Exclude,)


def _some_fields(body: Body) -> Mapping[str, Json]:
    fields = body.fields()
    if not fields:
        raise InvalidQuery(f"{body.place}: expected at least one field")
    return fields


def _leaves(
    body: Mapping[str, Json], place: str, outer: tuple[str, ...], *, flags: bool
) -> list[tuple[tuple[str, ...], bool | Expression]]:
    """Every path that is named, with its flag (keep or leave out) or expression."""
    leaves: list[tuple[tuple[str, ...], bool | Expression]] = []
    for key, value in body.items():
        path = _steps(key, place, outer)
        here = f"{place}.{shown(key)}"
        if flags and isinstance(value, bool | int | float):
            leaves.append((path, bool(value)))
        elif isinstance(value, dict) and value and not _is_operator(value):
            leaves += _leaves(value, here, path, flags=flags)
        else:
            leaves.append((path, parse_expression(value, here)))
    return leaves


def _is_operator(value: Mapping[str, Json]) -> bool:
    return "__type" in value or any(key.startswith("$") for key in value)


def _steps(name: str, place: str, outer: tuple[str, ...]) -> tuple[str, ...]:
    # Only the first step has other names: inside of a value, _id is a key like any other.
    steps = parse_path(name, place) if not outer else parse_path(f"x.{name}", place)[1:]
    if len(outer) + len(steps) > MAX_STEPS:
        raise InvalidQuery(f"{place}: a field path has at most {MAX_STEPS} steps")
    if "__type" in steps:
        raise InvalidQuery(f"{place}: __type can't be the name of a field")
    return (*outer, *steps)


def _insert(draft: _Draft, path: tuple[str, ...], part: Part, place: str) -> None:
    for step in path[:-1]:
        inner = draft.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InvalidQuery(f"{place}: path collision at {shown('.'.join(path))}")
        draft = inner
    if path[-1] in draft:
        raise InvalidQuery(f"{place}: path collision at {shown('.'.join(path))}")
    draft[path[-1]] = part


def _tree(draft: _Draft) -> Tree:
    return Tree(
        tuple(
            (name, _tree(part) if isinstance(part, dict) else part) for name, part in draft.items()
        )
    )

"""Stages that choose documents, put them in order, or count them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.expressions import Expression
from objects.core.pipeline.paths import NATIVE_NAMES, Path, parse_name, parse_path
from objects.core.pipeline.stage import Body, Stage, Stages, number
from objects.core.query.parser import parse_where
from objects.core.query.tree import Query
from objects.core.values import date, normalise_date

_MAX_SORT_KEYS: Final = 32  # as in MongoDB


@dataclass(frozen=True, slots=True)
class Match(Stage):
    """The documents that fulfil the query, and the condition if there is one."""

    names = ("$match",)
    summary = (
        "the documents that fulfil a [`where`](rest.md#queries), with `$expr` at its top for an"
        " expression. At the beginning of a pipeline it uses the class's indexes"
    )

    query: Query
    condition: Expression | None = None

    @classmethod
    def parse(cls, body: Body) -> Stages:
        place = body.place
        where = in_wire_names(body.fields())
        condition = None
        if isinstance(where, dict) and "$expr" in where:
            condition = parse_expression(where["$expr"], f"{place}.$expr")
            where = {key: value for key, value in where.items() if key != "$expr"}
        return (cls(parse_where(where, place, allow_internal=True), condition),)


def in_wire_names(where: Json, depth: int = 0) -> Json:
    """Translate a constraint with MongoDB's names and dates, without validating it."""
    if depth > 60:
        raise InvalidQuery("a query is nested too deeply")
    if isinstance(where, list):
        return [in_wire_names(item, depth + 1) for item in where]
    if not isinstance(where, dict):
        return where
    if where.keys() == {"$date"}:
        moment: Json = {**date(normalise_date(where["$date"], "$date"))}
        return moment
    renamed: dict[str, Json] = {}
    for key, value in where.items():
        root, dot, subpath = key.partition(".")
        name = NATIVE_NAMES.get(root, root) + dot + subpath
        renamed[name] = value if key == "$expr" else in_wire_names(value, depth + 1)
    return renamed


@dataclass(frozen=True, slots=True)
class SortKey:
    """One sort key of documents, whose names needn't be those of fields."""

    path: Path
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Sort(Stage):
    """The documents in order; ties stay in the order that they had."""

    names = ("$sort",)
    summary = (
        "the documents in order: 1 is ascending, with missing values first, -1 descending, with"
        " missing values last. Ties keep their order; those of objects are sorted by id"
    )

    order: tuple[SortKey, ...]

    @classmethod
    def parse(cls, body: Body) -> Stages:
        keys = body.fields()
        if not keys:
            raise InvalidQuery(f"{body.place}: expected at least one field")
        if len(keys) > _MAX_SORT_KEYS:
            raise InvalidQuery(f"{body.place}: at most {_MAX_SORT_KEYS} fields")
        order = []
        for name, direction in keys.items():
            if isinstance(direction, bool) or direction not in (1, -1):
                raise InvalidQuery(f"{body.place}.{shown(name)}: expected 1 or -1")
            order.append(SortKey(parse_path(name, body.place), direction == -1))
        return (cls(tuple(order)),)


@dataclass(frozen=True, slots=True)
class Limit(Stage):
    """The first documents."""

    names = ("$limit",)
    summary = "the first documents, so many"

    count: int

    @classmethod
    def parse(cls, body: Body) -> Stages:
        return (cls(body.number(1)),)


@dataclass(frozen=True, slots=True)
class Skip(Stage):
    """All but the first documents."""

    names = ("$skip",)
    summary = "all but the first documents"

    count: int

    @classmethod
    def parse(cls, body: Body) -> Stages:
        return (cls(body.number(0)),)


@dataclass(frozen=True, slots=True)
class Sample(Stage):
    """Some documents by chance, in an order by chance."""

    names = ("$sample",)
    summary = "`{size}`: so many documents, chosen at random, in random order"

    count: int

    @classmethod
    def parse(cls, body: Body) -> Stages:
        options = body.fields()
        if set(options) != {"size"}:
            raise InvalidQuery(f"{body.place}: expected a size")
        return (cls(number(options["size"], f"{body.place}.size", 1)),)


@dataclass(frozen=True, slots=True)
class Count(Stage):
    """One document with the number of documents; none if there are none."""

    names = ("$count",)
    summary = "one document with the number of documents in the field of this name"

    name: str

    @classmethod
    def parse(cls, body: Body) -> Stages:
        return (cls(parse_name(body.text(), body.place)),)

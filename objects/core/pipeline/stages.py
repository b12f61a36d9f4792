"""The parser of aggregation pipelines: the parameters of ``/aggregate`` as stages.

``parse_aggregation`` is the only gate. Stages are frozen and checked. How they become SQL is in
``objects.sql.pipeline.statement``, which is tested against a second implementation in Python
(``tests.oracles.pipelines``). A document in a pipeline is an object with ``objectId``, its
timestamps as Dates, and its fields, without access list and
relations. ``_id`` is another name for ``objectId``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from backend.kernel.errors import InvalidJSON, InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import ClassName, check_class_name
from objects.core.pipeline.expressions import (
    NATIVE_NAMES,
    Expression,
    Literal,
    Path,
    parse_expression,
    parse_field,
    parse_name,
    parse_path,
)
from objects.core.pipeline.limits import check_fields, check_size
from objects.core.pipeline.projections import (
    Exclude,
    Include,
    SetFields,
    parse_projection,
    parse_set,
    parse_unset,
)
from objects.core.query.parser import parse_where
from objects.core.query.paths import is_index
from objects.core.query.tree import Everything, Query
from objects.core.values import date, normalise_date

MAX_STAGES: Final = 50
_MAX_NESTED_PIPELINES: Final = 3
_MAX_NUMBER: Final = 2**53

ACCUMULATORS: Final = frozenset(
    {"$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$count"}
)


@dataclass(frozen=True, slots=True)
class Match:
    """The documents that fulfil the query, and the condition if there is one."""

    query: Query
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """What becomes of one operand over all documents of a group."""

    name: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Group:
    """One document for each value of the key, which is its ``objectId``; missing is null."""

    key: Expression
    fields: tuple[tuple[str, Accumulator], ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """One sort key of documents, whose names needn't be those of fields."""

    path: Path
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """The documents in order; ties stay in the order that they had."""

    order: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """The first documents."""

    count: int


@dataclass(frozen=True, slots=True)
class Skip:
    """All but the first documents."""

    count: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Some documents by chance, in an order by chance."""

    count: int


@dataclass(frozen=True, slots=True)
class Count:
    """One document with the number of documents; none if there are none."""

    name: str


@dataclass(frozen=True, slots=True)
class Unwind:
    """One document for each element of an array; a value that is no array is its own element.

    Without elements (missing, null, empty) there is none, or with ``keep_empty`` the document
    without the array. ``index_name`` gets the element's position.
    """

    path: Path
    index_name: str | None = None
    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """To each document the array ``name`` of documents of another class, through more stages.

    With ``local`` those whose ``foreign`` field equals the local one, or an element of it; a
    pointer equals the id that it points to. Missing is null.
    """

    class_name: ClassName
    name: str
    local: Path | None
    foreign: Path | None
    stages: tuple[Stage, ...] = ()


Stage: TypeAlias = (
    Match
    | Group
    | Include
    | Exclude
    | SetFields
    | Sort
    | Limit
    | Skip
    | Sample
    | Count
    | Unwind
    | Lookup
)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A request to ``/aggregate``: stages over the objects of ``where``, or distinct values."""

    stages: tuple[Stage, ...] = ()
    where: Query = field(default_factory=Everything)
    distinct: Path | None = None
    raw_values: bool = False
    raw_field_names: bool = False


_READ: Final = frozenset({"pipeline", "distinct", "where", "rawValues", "rawFieldNames"})
_PREFERENCES: Final = frozenset(
    {"readPreference", "includeReadPreference", "subqueryReadPreference"}
)
_OPTIONS: Final = _READ | _PREFERENCES | {"hint", "explain", "comment"}


def parse_aggregation(params: Mapping[str, Json]) -> Aggregation:
    """Parse the parameters of ``/aggregate``: a pipeline, its stages by name, or ``distinct``.

    Raises ``InvalidQuery`` that names the stage and the place, and what ``parse_where`` raises.
    """
    pipeline = params.get("pipeline")
    if pipeline is None:
        pipeline = {key: value for key, value in params.items() if key not in _OPTIONS}
    elif not all(key in _OPTIONS for key in params):
        other = next(key for key in params if key not in _OPTIONS)
        raise InvalidQuery(f"Invalid parameter for query: {shown(other)}")
    check_size(pipeline)
    stages = parse_stages(pipeline, "pipeline")
    if stages and params.get("distinct") is not None:
        raise InvalidQuery("distinct: either distinct values are asked for or a pipeline")
    return Aggregation(
        stages,
        parse_where(_in_wire_names(params.get("where") or None), allow_internal=True),
        _distinct(params.get("distinct")),
        _flag(params, "rawValues"),
        _flag(params, "rawFieldNames"),
    )


def _distinct(name: Json) -> Path | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidQuery("distinct: expected the name of a field")
    return parse_path(name, "distinct")


def _flag(params: Mapping[str, Json], name: str) -> bool:
    value = params.get(name, False)
    if not isinstance(value, bool):
        raise InvalidQuery(f"{name}: expected true or false")
    return value


def parse_stages(pipeline: Json, place: str, depth: int = 0) -> tuple[Stage, ...]:
    """Return the stages of a pipeline: an array of objects with one stage each, or one object."""
    if isinstance(pipeline, dict):
        pipeline = [{name: body} for name, body in pipeline.items()]
    if not isinstance(pipeline, list):
        raise InvalidJSON(f"{place}: expected an array of stages")
    if len(pipeline) > MAX_STAGES:
        raise InvalidQuery(f"{place}: a pipeline has at most {MAX_STAGES} stages")
    stages: list[Stage] = []
    for index, stage in enumerate(pipeline):
        if not isinstance(stage, dict):
            raise InvalidJSON(f"{place}.{index}: expected an object with one stage")
        if len(stage) != 1:
            keys = ", ".join(shown(key) for key in stage)
            raise InvalidQuery(f"Pipeline stages should only have one key but found {keys}.")
        [(name, body)] = stage.items()
        stages += _parse_stage(name, body, f"{place}.{index}.{shown(name)}", depth)
    return tuple(stages)


def _parse_stage(name: str, body: Json, place: str, depth: int) -> tuple[Stage, ...]:
    if not name.startswith("$"):
        raise InvalidQuery(f"Invalid aggregate stage '{shown(name)}'.")
    if name == "$lookup":
        return (_lookup(body, place, depth),)
    if name == "$sortByCount":
        counted = Group(
            parse_expression(body, place), (("count", Accumulator("$sum", Literal(1))),)
        )
        return counted, Sort((SortKey(("count",), descending=True),))
    parse = _STAGES.get(name)
    if parse is None:
        raise InvalidQuery(f"Unrecognized pipeline stage name: '{shown(name)}'")
    return (parse(body, place),)


def _object(body: Json, place: str) -> dict[str, Json]:
    if not isinstance(body, dict):
        raise InvalidQuery(f"{place}: expected an object")
    check_fields(body, place)
    return body


def _text(body: Json, place: str) -> str:
    if not isinstance(body, str) or not body:
        raise InvalidQuery(f"{place}: expected a name")
    return body


def _number(body: Json, place: str, least: int) -> int:
    if isinstance(body, float) and body.is_integer():
        body = int(body)
    if isinstance(body, bool) or not isinstance(body, int) or not least <= body <= _MAX_NUMBER:
        raise InvalidQuery(f"{place}: expected a whole number of at least {least}")
    return body


def _match(body: Json, place: str) -> Match:
    where = _in_wire_names(_object(body, place))
    condition = None
    if isinstance(where, dict) and "$expr" in where:
        condition = parse_expression(where["$expr"], f"{place}.$expr")
        where = {key: value for key, value in where.items() if key != "$expr"}
    return Match(parse_where(where, place, allow_internal=True), condition)


def _in_wire_names(where: Json, depth: int = 0) -> Json:
    """Translate a constraint with MongoDB's names and dates, without validating it."""
    if depth > 60:
        raise InvalidQuery("a query is nested too deeply")
    if isinstance(where, list):
        return [_in_wire_names(item, depth + 1) for item in where]
    if not isinstance(where, dict):
        return where
    if where.keys() == {"$date"}:
        moment: Json = {**date(normalise_date(where["$date"], "$date"))}
        return moment
    renamed: dict[str, Json] = {}
    for key, value in where.items():
        root, dot, subpath = key.partition(".")
        name = NATIVE_NAMES.get(root, root) + dot + subpath
        renamed[name] = value if key == "$expr" else _in_wire_names(value, depth + 1)
    return renamed


def _group(body: Json, place: str) -> Group:
    fields = _object(body, place)
    if "objectId" in fields:
        raise InvalidQuery("Invalid parameter for query: group. Please use _id instead of objectId")
    if "_id" not in fields:
        raise InvalidQuery("Invalid parameter for query: group. Missing key _id")
    accumulated = []
    for name, accumulator in fields.items():
        here = f"{place}.{shown(name)}"
        if name != "_id":
            accumulated.append((parse_name(name, place), _accumulator(accumulator, here)))
    return Group(parse_expression(fields["_id"], f"{place}._id"), tuple(accumulated))


def _accumulator(body: Json, place: str) -> Accumulator:
    if not isinstance(body, dict) or len(body) != 1:
        raise InvalidQuery(f"{place}: expected an object with one accumulator")
    [(name, operand)] = body.items()
    if name not in ACCUMULATORS:
        raise InvalidQuery(f"{place}: unknown group operator '{shown(name)}'")
    if name == "$count":
        if operand != {}:
            raise InvalidQuery(f"{place}.$count: expected {{}}")
        return Accumulator("$sum", Literal(1))
    return Accumulator(name, parse_expression(operand, f"{place}.{name}"))


def _sort(body: Json, place: str) -> Sort:
    keys = _object(body, place)
    if not keys:
        raise InvalidQuery(f"{place}: expected at least one field")
    order = []
    for name, direction in keys.items():
        if isinstance(direction, bool) or direction not in (1, -1):
            raise InvalidQuery(f"{place}.{shown(name)}: expected 1 or -1")
        order.append(SortKey(parse_path(name, place), direction == -1))
    return Sort(tuple(order))


def _sample(body: Json, place: str) -> Sample:
    size = _object(body, place)
    if set(size) != {"size"}:
        raise InvalidQuery(f"{place}: expected a size")
    return Sample(_number(size["size"], f"{place}.size", 1))


def _unwind(body: Json, place: str) -> Unwind:
    options: dict[str, Json] = {"path": body} if isinstance(body, str) else _object(body, place)
    if not options.keys() <= {"path", "includeArrayIndex", "preserveNullAndEmptyArrays"}:
        raise InvalidQuery(f"{place}: expected path, includeArrayIndex, preserveNullAndEmptyArrays")
    path = parse_field(options.get("path"), f"{place}.path").path
    if not path or any(map(is_index, path)) or "__type" in path:
        raise InvalidQuery(f"{place}.path: expected the path of a field, without positions")
    keep_empty = options.get("preserveNullAndEmptyArrays", False)
    if not isinstance(keep_empty, bool):
        raise InvalidQuery(f"{place}.preserveNullAndEmptyArrays: expected true or false")
    index = options.get("includeArrayIndex")
    name = None if index is None else parse_name(_text(index, place), f"{place}.includeArrayIndex")
    return Unwind(path, name, keep_empty)


def _lookup(body: Json, place: str, depth: int) -> Lookup:
    options = _object(body, place)
    for option in options:
        if option not in ("from", "localField", "foreignField", "as", "pipeline"):
            raise InvalidQuery(f"{place}.{shown(option)}: not supported")
    if ("localField" in options) != ("foreignField" in options) or not (
        "localField" in options or "pipeline" in options
    ):
        raise InvalidQuery(f"{place}: expected localField and foreignField, or pipeline")
    local = foreign = None
    if "localField" in options:
        local = parse_path(_text(options["localField"], f"{place}.localField"), place)
        foreign = parse_path(_text(options["foreignField"], f"{place}.foreignField"), place)
    stages: tuple[Stage, ...] = ()
    if "pipeline" in options:
        if depth >= _MAX_NESTED_PIPELINES:
            raise InvalidQuery(f"{place}: pipelines are nested too deeply")
        stages = parse_stages(options["pipeline"], f"{place}.pipeline", depth + 1)
    return Lookup(
        check_class_name(_text(options.get("from"), f"{place}.from")),
        parse_name(_text(options.get("as"), f"{place}.as"), f"{place}.as"),
        local,
        foreign,
        stages,
    )


_STAGES: Final[Mapping[str, Callable[[Json, str], Stage]]] = {
    "$match": _match,
    "$group": _group,
    "$project": lambda body, place: parse_projection(_object(body, place), place),
    "$addFields": lambda body, place: parse_set(_object(body, place), place),
    "$set": lambda body, place: parse_set(_object(body, place), place),
    "$unset": parse_unset,
    "$sort": _sort,
    "$limit": lambda body, place: Limit(_number(body, place, 1)),
    "$skip": lambda body, place: Skip(_number(body, place, 0)),
    "$sample": _sample,
    "$count": lambda body, place: Count(parse_name(_text(body, place), place)),
    "$unwind": _unwind,
}

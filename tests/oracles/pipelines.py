"""What the stages of an aggregation pipeline mean: ``run(stages, documents)``.

The reference for ``objects.sql.pipeline.statement``, and its oracle in tests. Where MongoDB leaves
an order open there is one here: groups are in the order of their keys, values of ``$addToSet`` too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from backend.kernel.json_types import Json
from objects.core.pipeline.accumulators import Accumulator
from objects.core.pipeline.paths import Path
from objects.core.pipeline.stage import Stage
from objects.core.pipeline.stages.groups import Group
from objects.core.pipeline.stages.joins import Lookup, Unwind
from objects.core.pipeline.stages.projections import Exclude, Include, SetFields
from objects.core.pipeline.stages.selection import Count, Limit, Match, Sample, Skip, Sort
from objects.core.query.tree import Query
from objects.core.values import date, equal, frozen, is_pointer, kind
from tests.oracles.expressions import (
    MISSING,
    Value,
    decimal_of,
    evaluate,
    is_true,
    number_of,
    order_key,
    present,
    quotient,
    value_at,
)
from tests.oracles.projections import excluded, included, with_fields

Doc = dict[str, Json]
Matcher = Callable[[Query, Doc], bool]
ClassDocuments = Callable[[str], Iterable[Mapping[str, Json]]]

_TIMESTAMPS = ("createdAt", "updatedAt")


def document_of(obj: Mapping[str, Json]) -> Doc:
    """An object as a document of a pipeline."""
    document = {
        name: value for name, value in obj.items() if name != "ACL" and kind(value) != "Relation"
    }
    for name in _TIMESTAMPS:
        value = document.get(name)
        if isinstance(value, str):
            document[name] = {**date(value)}
    return document


def result_of(document: Mapping[str, Json]) -> Doc:
    """A document as a result: its own timestamps as plain text again."""
    result = dict(document)
    for name in _TIMESTAMPS:
        value = result.get(name)
        if isinstance(value, dict) and value.get("__type") == "Date":
            result[name] = value["iso"]
    return result


def run(
    stages: Sequence[Stage],
    documents: Iterable[Mapping[str, Json]],
    matches: Matcher,
    of_class: ClassDocuments = lambda _class_name: (),
) -> list[Doc]:
    """The documents that come out of the stages.

    ``matches`` is the meaning of queries; ``of_class`` gives the documents of another class.
    """
    rows = [dict(document) for document in documents]
    for stage in stages:
        rows = _stage(stage, rows, matches, of_class)
    return rows


def _stage(stage: Stage, rows: list[Doc], matches: Matcher, of_class: ClassDocuments) -> list[Doc]:
    match stage:
        case Match():
            return [row for row in rows if _fulfils(stage, row, matches)]
        case Group():
            return _group(stage, rows)
        case Include():
            return [included(stage, row) for row in rows]
        case Exclude():
            return [excluded(stage.tree, row) for row in rows]
        case SetFields():
            return [with_fields(stage.tree, row, row) for row in rows]
        case Sort():
            for key in reversed(stage.order):
                rows = sorted(
                    rows,
                    key=lambda row, path=key.path: _sort_key(row, path),  # type: ignore[misc]
                    reverse=key.descending,
                )
            return rows
        case Limit():
            return rows[: stage.count]
        case Skip():
            return rows[stage.count :]
        case Sample():
            return random.sample(rows, min(stage.count, len(rows)))
        case Count():
            return [{stage.name: len(rows)}] if rows else []
        case Unwind():
            return [unwound for row in rows for unwound in _unwind(stage, row)]
        case Lookup():
            return [_lookup(stage, row, matches, of_class) for row in rows]


def _fulfils(stage: Match, row: Doc, matches: Matcher) -> bool:
    if stage.condition is not None and not is_true(evaluate(stage.condition, row)):
        return False
    return matches(stage.query, row)


def _sort_key(row: Doc, path: Path) -> tuple[int, Any]:
    # Missing and null are one to an order.
    return order_key(present(value_at(row, path)))


# --- groups --------------------------------------------------------------------------------------


def _group(stage: Group, rows: list[Doc]) -> list[Doc]:
    groups: dict[object, tuple[Json, list[Doc]]] = {}
    for row in rows:
        key = present(evaluate(stage.key, row))
        if stage.key_is_field and isinstance(key, dict) and is_pointer(key):
            key = key["objectId"]
        groups.setdefault(frozen(key), (key, []))[1].append(row)
    results: list[Doc] = []
    for key, members in sorted(groups.values(), key=lambda group: order_key(group[0])):
        result: Doc = {"objectId": key}
        for name, accumulator in stage.fields:
            result[name] = _accumulate(accumulator, members)
        results.append(result)
    return results


def _accumulate(accumulator: Accumulator, rows: list[Doc]) -> Json:
    values = [evaluate(accumulator.operand, row) for row in rows]
    numbers = [number for number in map(decimal_of, values) if number is not None]
    match accumulator.name:
        case "$sum":
            return number_of(sum(numbers, Decimal(0)))
        case "$avg":
            return quotient(sum(numbers, Decimal(0)), Decimal(len(numbers))) if numbers else None
        case "$min" | "$max":
            results = [value for value in values if present(value) is not None]
            pick = min if accumulator.name == "$min" else max
            return present(pick(results, key=order_key, default=MISSING))
        case "$first":
            return present(values[0])
        case "$last":
            return present(values[-1])
        case "$push":
            return [present(value) for value in values if value is not MISSING]
        case _:
            distinct = {frozen(v): v for v in map(present, values)}
            if MISSING in values and None not in values:
                del distinct[frozen(None)]
            return sorted(distinct.values(), key=order_key)


# --- arrays and other classes --------------------------------------------------------------------


def _inner(row: Mapping[str, Json], path: Path) -> Value:
    """The value at a path that goes through objects alone."""
    value: Value = dict(row)
    for step in path:
        value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
    return value


def _with_inner(row: Mapping[str, Json], path: Path, value: Value) -> Doc:
    result = dict(row)
    if len(path) > 1:
        inner = result.get(path[0])
        if isinstance(inner, dict):
            result[path[0]] = _with_inner(inner, path[1:], value)
    elif value is MISSING:
        result.pop(path[0], None)
    else:
        result[path[0]] = present(value)
    return result


def _unwind(stage: Unwind, row: Doc) -> list[Doc]:
    value = _inner(row, stage.path)
    if isinstance(value, list) and value:
        unwound = [(_with_inner(row, stage.path, item), index) for index, item in enumerate(value)]
    elif isinstance(value, list) or present(value) is None:
        if not stage.keep_empty:
            return []
        empty = _with_inner(row, stage.path, MISSING) if isinstance(value, list) else row
        return [_numbered(empty, stage.index_name, None)]
    else:
        return [_numbered(row, stage.index_name, None)]
    return [_numbered(item, stage.index_name, index) for item, index in unwound]


def _numbered(row: Doc, name: str | None, index: int | None) -> Doc:
    return row if name is None else {**row, name: index}


def _lookup(stage: Lookup, row: Doc, matches: Matcher, of_class: ClassDocuments) -> Doc:
    foreign = [document_of(obj) for obj in of_class(stage.class_name)]
    if stage.local is not None and stage.foreign is not None:
        local = _keys(value_at(row, stage.local))
        foreign = [
            other
            for other in foreign
            if any(
                _joins(a, b, stage.class_name if stage.foreign == ("objectId",) else None)
                for a in local
                for b in _keys(value_at(other, stage.foreign))
            )
        ]
    return {**row, stage.name: [*run(stage.stages, foreign, matches, of_class)]}


def _keys(value: Value) -> list[Json]:
    return value if isinstance(value, list) else [present(value)]


def _joins(local: Json, foreign: Json, class_name: str | None) -> bool:
    if is_pointer(local) and class_name is not None:
        assert isinstance(local, dict)
        return local["className"] == class_name and local["objectId"] == foreign
    if is_pointer(foreign) and isinstance(local, str):
        assert isinstance(foreign, dict)
        return foreign["objectId"] == local
    return equal(local, foreign)

"""The memory that a pipeline takes, bounded before it runs.

A pipeline holds a document per stage, and all values that the stage makes of it. ``check_growth``
refuses pipelines that copy a value over and over. ``largest_document`` is the size up to which all
others stay within ``MEMORY``; the SQL of stages compares documents with it before it computes
anything (``objects.sql.pipeline.sizes``).

The weights are measured in PostgreSQL 18: jsonb that is put together takes about six times its
size while that happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.pipeline.bounds import WHOLE, Bound, documents, total
from objects.core.pipeline.expressions import Call, Document, Expression, Field, Items, Literal
from objects.core.pipeline.operators.registry import OPERATORS
from objects.core.pipeline.stage import Stage, Stages
from objects.core.pipeline.stages.groups import Group
from objects.core.pipeline.stages.joins import Lookup, Unwind
from objects.core.pipeline.stages.projections import Exclude, Include, Named, SetFields, Tree
from objects.core.pipeline.stages.selection import Count, Limit, Match, Sample, Skip, Sort
from objects.core.query.tree import walk

MEBIBYTE: Final = 1024 * 1024
MEMORY: Final = 512 * MEBIBYTE
"""Bytes that a pipeline may take in PostgreSQL, apart from sorts and groups, which use disk."""
_LARGEST: Final = 32 * MEBIBYTE
_COLLECTED_BY_GROUPS: Final = 32 * MEBIBYTE
_SMALLEST: Final = 16 * 1024
MAX_COPIES: Final = 10_000
"""Copies of a document or constant in one field."""

_COLLECTING: Final = ("$push", "$addToSet")
_MADE: Final = 6  # jsonb that is put together
_RENAMED: Final = 2 * _MADE  # parts are removed, others are added
_COLLECTED: Final = 2 * _MADE  # values of several rows in one array
_RETURNED: Final = _RENAMED + 4  # and converted to text
CONTAINER: Final = 100
"""Bytes that each object and array counts for, in addition to its size."""
_JSONB: Final = 8  # times its JSON text
_NOTHING: Final = Bound()


class Measured(NamedTuple):
    """The bounds of an expression."""

    value: Bound
    """The size of its value."""
    memory: Bound
    """What computing it takes, with the value."""


def measured(node: Expression) -> Measured:
    """Return the bounds of an expression over a document."""
    if isinstance(node, Literal):
        size = Bound(constant=_size(node.value))
        return Measured(size, size)
    if isinstance(node, Field):
        if not node.path:
            return Measured(documents(1), documents(_RENAMED))
        name = node.path[0]
        return Measured(Bound({name: 1}), Bound({name: 1 + _MADE * (len(node.path) - 1)}))
    if isinstance(node, Items):
        return _made(node.items)
    if isinstance(node, Document):
        names = Bound(constant=sum(_size(name) for name, _ in node.fields))
        return _made((part for _, part in node.fields), names)
    assert isinstance(node, Call)
    operator = OPERATORS[node.name]
    parts = [measured(operand) for operand in node.operands]
    value = operator.bound([part.value for part in parts])
    made = value * operator.weight(len(parts))
    return Measured(value, total([*(part.memory for part in parts), made]))


def _made(nodes: Iterable[Expression], names: Bound = _NOTHING) -> Measured:
    parts = [measured(node) for node in nodes]
    value = total(
        [*(part.value for part in parts), names, Bound(constant=CONTAINER + 32 * len(parts))]
    )
    return Measured(value, total([*(part.memory for part in parts), value * _MADE]))


def _size(value: Json) -> int:
    if isinstance(value, str):
        return 16 + 4 * len(value)
    text = msgspec.json.encode(value)
    return _JSONB * len(text) + CONTAINER * (text.count(b"{") + text.count(b"["))


# --- memory --------------------------------------------------------------------------------------


def largest_document(stages: Stages) -> int:
    """Return how many bytes of jsonb a document may have before any stage and in the end.

    Raises ``InvalidQuery`` for a pipeline that has no room for documents.
    """
    memory = _pipeline_memory(stages)
    size = min((MEMORY - memory.constant) // memory.factor, _LARGEST)
    if size < _SMALLEST:
        raise InvalidQuery("pipeline: it copies its documents and constants too often")
    return size


class Limits(NamedTuple):
    """Sizes in bytes of jsonb up to which a pipeline stays within its memory."""

    document: int
    """Of each document before any stage and in the end."""
    collected: int
    """Of the values that all groups of a stage together collect in arrays."""


def limits_of(stages: Stages) -> Limits:
    """Return the limits of a pipeline. Raises ``InvalidQuery`` if it has no room for documents."""
    groups = max(1, _groups(stages))
    return Limits(largest_document(stages), _COLLECTED_BY_GROUPS // groups)


def _groups(stages: Stages) -> int:
    number = 0
    for stage in stages:
        if isinstance(stage, Group):
            number += any(accumulator.name in _COLLECTING for _, accumulator in stage.fields)
        elif isinstance(stage, Lookup):
            number += _groups(stage.stages)
    return number


def _pipeline_memory(stages: Stages) -> Bound:
    # Every stage has a document that is within the bound, so their factors add up, whichever
    # fields they are about.
    bounds = [stage_memory(stage) for stage in stages]
    factor = sum(bound.factor for bound in bounds) + _MADE + _RETURNED
    return Bound({WHOLE: factor}, sum(bound.constant for bound in bounds))


def stage_memory(stage: Stage) -> Bound:
    """Return what a stage takes, by the document that it gets."""
    match stage:
        case Match(query=query, condition=condition):
            paths = [path for node in walk(query) if (path := getattr(node, "path", None))]
            bounds = [Bound({path[0]: 2 * len(path)}) for path in paths]
            return total([*bounds, Bound() if condition is None else measured(condition).memory])
        case Group(key=key, fields=fields):
            parts = [measured(key), *(measured(each.operand) for _, each in fields)]
            # What a group collects isn't among them: it has its own limit.
            made = [part.memory + part.value * _MADE for part in parts]
            return total([documents(_MADE + 1), *made])
        case Include(tree=tree):
            return _tree_memory(tree, includes=True) + documents(_MADE)
        case SetFields(tree=tree) | Exclude(tree=tree):
            return _tree_memory(tree, includes=False) + documents(_RENAMED)
        case Sort(order=order):
            return total(Bound({key.path[0]: 2 * len(key.path)}) for key in order)
        case Unwind():
            return documents(_RENAMED + 3)
        case Lookup(stages=stages):
            inner = _pipeline_memory(stages)
            return documents(_RENAMED + _COLLECTED + 1) + inner
        case Limit() | Skip() | Sample() | Count():
            return Bound()
    raise TypeError(f"no bound of {type(stage).__name__}")


def _tree_memory(tree: Tree, *, includes: bool) -> Bound:
    bounds = []
    for name, part in tree.parts:
        if isinstance(part, Tree):
            bounds.append(_nested_memory(part, name))
        elif not isinstance(part, Named):
            bounds += [measured(part).memory, measured(part).value * _MADE]
        elif includes:
            bounds.append(Bound({name: 1 + _MADE}))
    return total(bounds)


def _nested_memory(tree: Tree, field: str) -> Bound:
    """Return what shaping a part of a field takes."""
    bounds = [Bound({field: 2 * _MADE})]
    if tree.computes:
        # The elements of an array have the size of a document at most, with all that is computed
        # for each of them.
        bounds.append(documents(_COLLECTED))
    for _, part in tree.parts:
        if isinstance(part, Tree):
            bounds.append(_nested_memory(part, field))
        elif not isinstance(part, Named):
            bounds += [measured(part).memory, measured(part).value * _MADE]
    return total(bounds)


# --- growth --------------------------------------------------------------------------------------


class _Weights:
    """The copies of an object, or of constants, that the fields of a document hold."""

    def __init__(self, named: Mapping[str, int], remaining: int) -> None:
        self.named = named
        self.remaining = remaining

    def of(self, bound: Bound) -> int:
        weight = int(bound.constant > 0)
        for name, number in bound.copies.items():
            weight += number * (self.whole if name == WHOLE else self.field(name))
        return weight

    def field(self, name: str) -> int:
        return self.named.get(name, self.remaining)

    @property
    def whole(self) -> int:
        return sum(self.named.values()) + self.remaining


def check_growth(stages: Iterable[tuple[str, Stage]]) -> None:
    """Raise ``InvalidQuery`` if fields hold too many copies of what the documents had.

    Each stage has its place, which the error names, with the field.
    """
    weights = _Weights({}, 1)
    for place, stage in stages:
        weights = _after(stage, weights)
        for name, number in weights.named.items():
            if number > MAX_COPIES:
                raise InvalidQuery(
                    f"{place}.{shown(name)}: the value holds more than {MAX_COPIES:,} copies of"
                    " fields and constants, together with the stages before"
                )


def _after(stage: Stage, weights: _Weights) -> _Weights:
    match stage:
        case Group(key=key, fields=fields):
            values = {name: each.operand for name, each in fields}
            named = {name: weights.of(measured(part).value) for name, part in values.items()}
            return _Weights({"objectId": weights.of(measured(key).value), **named}, 0)
        case Include(tree=tree):
            return _Weights({"objectId": weights.field("objectId"), **_named(tree, weights)}, 0)
        case SetFields(tree=tree):
            return _Weights({**weights.named, **_named(tree, weights)}, weights.remaining)
        case Lookup(name=name):
            return _Weights({**weights.named, name: 1}, weights.remaining)
        case Count(name=name):
            return _Weights({name: 1}, 0)
    return weights


def _named(tree: Tree, weights: _Weights) -> dict[str, int]:
    named = {}
    for name, part in tree.parts:
        named[name] = weights.field(name)
        if isinstance(part, Tree):
            named[name] += _computed(part, weights)
        elif not isinstance(part, Named):
            named[name] = weights.of(measured(part).value)
    return named


def _computed(tree: Tree, weights: _Weights) -> int:
    weight = 0
    for _, part in tree.parts:
        if isinstance(part, Tree):
            weight += _computed(part, weights)
        elif not isinstance(part, Named):
            weight += weights.of(measured(part).value)
    return weight

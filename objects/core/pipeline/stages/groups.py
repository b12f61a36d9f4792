"""``$group`` and ``$sortByCount``."""

from __future__ import annotations

from dataclasses import dataclass

from backend.kernel.errors import InvalidQuery
from backend.kernel.texts.shown import shown
from objects.core.pipeline.accumulators import Accumulator, parse_accumulator
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.expressions import Expression, Literal
from objects.core.pipeline.paths import parse_name
from objects.core.pipeline.stage import Body, Stage, Stages
from objects.core.pipeline.stages.selection import Sort, SortKey


@dataclass(frozen=True, slots=True)
class Group(Stage):
    """One document for each value of the key, which is its ``objectId``; missing is null."""

    names = ("$group",)
    summary = (
        "one document for each value of the expression `_id`, with [accumulators](#accumulators)."
        " Missing keys are one group, null. Groups are in the order of their keys"
    )

    key: Expression
    fields: tuple[tuple[str, Accumulator], ...]

    @classmethod
    def parse(cls, body: Body) -> Stages:
        fields, place = body.fields(), body.place
        if "objectId" in fields:
            raise InvalidQuery(
                "Invalid parameter for query: group. Please use _id instead of objectId"
            )
        if "_id" not in fields:
            raise InvalidQuery("Invalid parameter for query: group. Missing key _id")
        accumulated = []
        for name, accumulator in fields.items():
            here = f"{place}.{shown(name)}"
            if name != "_id":
                accumulated.append((parse_name(name, place), parse_accumulator(accumulator, here)))
        return (cls(parse_expression(fields["_id"], f"{place}._id"), tuple(accumulated)),)


class SortByCount(Stage):
    """A group with a count, and a sort."""

    names = ("$sortByCount",)
    summary = "the values of an expression with their `count`, most frequent first"

    @classmethod
    def parse(cls, body: Body) -> Stages:
        count = ("count", Accumulator("$sum", Literal(1)))
        counted = Group(parse_expression(body.json, body.place), (count,))
        return counted, Sort((SortKey(("count",), descending=True),))

    @classmethod
    def nodes(cls) -> tuple[type[Stage], ...]:
        return ()

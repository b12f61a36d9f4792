"""``$group`` and ``$sortByCount``."""

from __future__ import annotations

from dataclasses import dataclass

from backend.kernel.errors import InvalidQuery
from backend.kernel.texts.shown import shown
from objects.core.pipeline.accumulators import Accumulator, parse_accumulator
from objects.core.pipeline.expression_parser import parse_expression
from objects.core.pipeline.expressions import Expression, Field, Literal
from objects.core.pipeline.paths import parse_name
from objects.core.pipeline.stage import Body, Stage, Stages
from objects.core.pipeline.stages.selection import Sort, SortKey


@dataclass(frozen=True, slots=True)
class Group(Stage):
    """One document for each value of the key, which is its ``objectId``; missing is null.

    If the key is a field, a pointer in it counts as the id that it points to.
    """

    names = ("$group",)
    summary = (
        "one document for each value of the expression `_id`, with [accumulators](#accumulators)."
        ' Missing keys are one group, null, and so is everything for a key that is `null`, `""`,'
        " `{}` or `[]`. If the key is a field, a pointer counts as the id that it points to."
        " Groups are in the order of their keys"
    )

    key: Expression
    fields: tuple[tuple[str, Accumulator], ...]

    @property
    def key_is_field(self) -> bool:
        """Whether the key is the value of a field, as it is."""
        return isinstance(self.key, Field) and len(self.key.path) == 1

    @classmethod
    def parse(cls, body: Body) -> Stages:
        fields, place = body.fields(), body.place
        if "objectId" in fields:
            raise InvalidQuery("Cannot use 'objectId' in aggregation stage $group.")
        if "_id" not in fields:
            raise InvalidQuery("Invalid parameter for query: group. Missing key _id")
        accumulated = []
        for name, accumulator in fields.items():
            here = f"{place}.{shown(name)}"
            if name != "_id":
                accumulated.append((parse_name(name, place), parse_accumulator(accumulator, here)))
        key = fields["_id"]
        if key == "" or key == {} or key == []:
            key = None
        return (cls(parse_expression(key, f"{place}._id"), tuple(accumulated)),)


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

"""Operators on arrays."""

from __future__ import annotations

from collections.abc import Sequence

from objects.core.pipeline.bounds import Bound, total
from objects.core.pipeline.expressions import MANY, Operator, PartOperator


class Size(Operator):
    names = ("$size",)
    summary = "how many elements an array has"


class IsArray(Operator):
    names = ("$isArray",)
    summary = "whether the operand is an array"


class ElementAt(PartOperator):
    names = ("$arrayElemAt",)
    operands = (2, 2)
    summary = "an element of an array: array, position from 0, negative from the end"


class End(PartOperator):
    names = ("$first", "$last")
    summary = "the first element of an array; the last one"


class ConcatArrays(Operator):
    names = ("$concatArrays",)
    operands = (1, MANY)
    summary = "the arrays joined"

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return total(operands)

    @classmethod
    def weight(cls, operands: int) -> int:
        # Pairs are joined, then pairs of pairs, each with the memory of jsonb that is put together.
        return 6 * operands.bit_length()

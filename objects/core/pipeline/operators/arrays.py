"""Operators on arrays."""

from __future__ import annotations

from objects.core.pipeline.expressions import MANY, Operator


class Size(Operator):
    names = ("$size",)
    summary = "how many elements an array has"


class IsArray(Operator):
    names = ("$isArray",)
    summary = "whether the operand is an array"


class ElementAt(Operator):
    names = ("$arrayElemAt",)
    operands = (2, 2)
    summary = "an element of an array: array, position from 0, negative from the end"


class End(Operator):
    names = ("$first", "$last")
    summary = "the first element of an array; the last one"


class ConcatArrays(Operator):
    names = ("$concatArrays",)
    operands = (1, MANY)
    summary = "the arrays joined"

"""Operators on numbers."""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import InvalidQuery
from objects.core.pipeline.expressions import MANY, Call, Expression, Literal, Operand, Operator

_NUMBER: Final = 64 * 1024
"""Bytes of the digits of PostgreSQL's largest number."""


class Add(Operator):
    names = ("$add",)
    operands = (1, MANY)
    largest = _NUMBER
    summary = "the sum, exact, in decimal; a date plus milliseconds"


class Subtract(Operator):
    names = ("$subtract",)
    operands = (2, 2)
    largest = _NUMBER
    summary = "the difference; a date minus milliseconds; the milliseconds between two dates"


class Multiply(Operator):
    names = ("$multiply",)
    operands = (1, MANY)
    largest = _NUMBER
    summary = "the product, exact, in decimal"


class Divide(Operator):
    names = ("$divide",)
    operands = (2, 2)
    largest = 512
    summary = "the quotient as a double; null for numbers beyond 1e±140"


class Modulo(Operator):
    names = ("$mod",)
    operands = (2, 2)
    largest = _NUMBER
    summary = "the remainder"


class Rounding(Operator):
    names = ("$abs", "$ceil", "$floor")
    largest = _NUMBER
    summary = "the absolute value; the number rounded up; rounded down"


class Round(Operator):
    """The digits are a constant."""

    names = ("$round",)
    operands = (1, 2)
    largest = _NUMBER
    summary = "the number rounded to a number of digits (0), half to even"

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        items, place = operand.items(), operand.place
        if not 1 <= len(items) <= 2:
            raise InvalidQuery(f"{place}: expected 1 to 2 operands, found {len(items)}")
        digits = items[1] if len(items) == 2 else 0
        if isinstance(digits, bool) or not isinstance(digits, int) or not -20 <= digits <= 100:
            raise InvalidQuery(f"{place}.1: expected a whole number from -20 to 100")
        return Call(name, (operand.expression(items[0], f"{place}.0"), Literal(digits)))

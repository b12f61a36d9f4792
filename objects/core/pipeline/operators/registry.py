"""The registry of all operators of expressions, and its lookups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from objects.core.pipeline.expressions import Operator
from objects.core.pipeline.operators.arrays import ConcatArrays, ElementAt, End, IsArray, Size
from objects.core.pipeline.operators.conditions import (
    Compare,
    Comparison,
    Condition,
    Constant,
    Equality,
    IfNull,
    In,
    Logic,
    Not,
    Switch,
)
from objects.core.pipeline.operators.dates import (
    DateLiteral,
    DatePart,
    DateToString,
    DateTruncation,
)
from objects.core.pipeline.operators.numbers import (
    Add,
    Divide,
    Modulo,
    Multiply,
    Round,
    Rounding,
    Subtract,
)
from objects.core.pipeline.operators.texts import Case, Concat, Substring, TextLength

REGISTERED: Final[tuple[type[Operator], ...]] = (
    *(Add, Subtract, Multiply, Divide, Modulo, Rounding, Round),
    *(Concat, Case, Substring, TextLength),
    *(DatePart, DateToString, DateTruncation, DateLiteral),
    *(Equality, Comparison, Compare, Logic, Not, In),
    *(Condition, Switch, IfNull),
    *(Size, IsArray, ElementAt, End, ConcatArrays),
    Constant,
)
"""All operators, in the order of the documentation."""

OPERATORS: Final[Mapping[str, type[Operator]]] = {
    name: operator for operator in REGISTERED for name in operator.names
}
"""The operator of each name."""

CONSTANTS: Final = frozenset({DateLiteral, Constant})
"""Operators whose calls are parsed to ``Literal``."""

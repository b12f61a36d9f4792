"""Comparisons, logic, choices, and constants."""

from __future__ import annotations

from collections.abc import Sequence

from backend.kernel.errors import InvalidQuery
from objects.core.pipeline.bounds import Bound, largest
from objects.core.pipeline.expressions import MANY, Call, Expression, Literal, Operand, Operator
from objects.core.values import normalise


class Equality(Operator):
    names = ("$eq", "$ne")
    operands = (2, 2)
    summary = "whether two values are equal; whether they differ"


class Comparison(Operator):
    names = ("$gt", "$gte", "$lt", "$lte")
    operands = (2, 2)
    summary = "whether the first value is greater, at least as great, less, at most as great"


class Compare(Operator):
    names = ("$cmp",)
    operands = (2, 2)
    summary = "-1, 0 or 1: the first value is less, equal, greater"


class Logic(Operator):
    names = ("$and", "$or")
    operands = (0, MANY)
    summary = "whether all operands are true; whether some is"


class Not(Operator):
    names = ("$not",)
    summary = "whether the operand isn't true"


class In(Operator):
    names = ("$in",)
    operands = (2, 2)
    summary = "whether a value is an element of an array: value, array"


class IfNull(Operator):
    names = ("$ifNull",)
    operands = (2, MANY)
    summary = "the first operand that is neither missing nor null, or else the last one"

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return largest(operands)


class Condition(Operator):
    names = ("$cond",)
    operands = (3, 3)
    summary = "`{if, then, else}`, or the three in an array"

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        json, place = operand.json, operand.place
        if isinstance(json, dict):
            if set(json) != {"if", "then", "else"}:
                raise InvalidQuery(f"{place}: expected if, then and else")
            json = [json["if"], json["then"], json["else"]]
        if not isinstance(json, list) or len(json) != 3:
            raise InvalidQuery(f"{place}: expected 3 operands")
        return Call(name, operand.expressions(json))

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return largest(operands[1:])


class Switch(Operator):
    """The operands of the node are case and value in turn, and the default."""

    names = ("$switch",)
    summary = "`{branches: [{case, then}, …], default}`: the value of the first case that is true"

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        json, place = operand.json, operand.place
        if not isinstance(json, dict) or not json.keys() <= {"branches", "default"}:
            raise InvalidQuery(f"{place}: expected branches and default")
        branches = json.get("branches")
        if not isinstance(branches, list) or not 1 <= len(branches) <= MANY:
            raise InvalidQuery(f"{place}.branches: expected 1 to {MANY} branches")
        parts: list[Expression] = []
        for index, branch in enumerate(branches):
            here = f"{place}.branches.{index}"
            if not isinstance(branch, dict) or set(branch) != {"case", "then"}:
                raise InvalidQuery(f"{here}: expected case and then")
            parts += operand.expressions([branch["case"], branch["then"]], here)
        return Call(name, (*parts, operand.expression(json.get("default"), f"{place}.default")))

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return largest([*operands[1:-1:2], operands[-1]])


class Constant(Operator):
    names = ("$literal",)
    summary = "the operand as it is, without fields and operators in it"

    @classmethod
    def parse(cls, name: str, operand: Operand) -> Expression:
        return Literal(normalise(operand.json, operand.place))

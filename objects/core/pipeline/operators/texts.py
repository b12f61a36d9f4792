"""Operators on texts."""

from __future__ import annotations

from collections.abc import Sequence

from objects.core.pipeline.bounds import Bound, total
from objects.core.pipeline.expressions import MANY, Operator, PartOperator


class Concat(Operator):
    names = ("$concat",)
    operands = (1, MANY)
    summary = "the texts joined"

    @classmethod
    def bound(cls, operands: Sequence[Bound]) -> Bound:
        return total(operands)

    @classmethod
    def weight(cls, operands: int) -> int:
        # Pairs are joined, then pairs of pairs; the text is read and becomes jsonb.
        return 3 + operands.bit_length()


class _PartOfText(PartOperator):
    @classmethod
    def weight(cls, operands: int) -> int:
        return 4


class Case(_PartOfText):
    names = ("$toLower", "$toUpper")
    summary = "the text with A to Z in lower or upper case"


class Substring(_PartOfText):
    names = ("$substr", "$substrCP")
    operands = (3, 3)
    summary = "a part of a text: text, first position from 0, length; counted in characters"


class TextLength(Operator):
    names = ("$strLenCP",)
    summary = "how many characters a text has"

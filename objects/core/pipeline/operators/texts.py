"""Operators on texts."""

from __future__ import annotations

from objects.core.pipeline.expressions import MANY, Operator


class Concat(Operator):
    names = ("$concat",)
    operands = (1, MANY)
    summary = "the texts joined"


class Case(Operator):
    names = ("$toLower", "$toUpper")
    summary = "the text with A to Z in lower or upper case"


class Substring(Operator):
    names = ("$substr", "$substrCP")
    operands = (3, 3)
    summary = "a part of a text: text, first position from 0, length; counted in characters"


class TextLength(Operator):
    names = ("$strLenCP",)
    summary = "how many characters a text has"

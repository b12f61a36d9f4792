"""The parser of expressions: ``parse_expression`` is the only gate."""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import PROHIBITED_KEYS, is_storable_text
from objects.core.pipeline.expressions import (
    Document,
    Expression,
    Field,
    Items,
    Literal,
    Operand,
)
from objects.core.pipeline.operators.registry import OPERATORS
from objects.core.pipeline.paths import parse_path
from objects.core.values import normalise

MAX_DEPTH: Final = 30


def parse_expression(json: Json, place: str, depth: int = 0) -> Expression:
    """Return the expression that a client wrote. Raises ``InvalidQuery`` that names the place."""
    if depth > MAX_DEPTH:
        raise InvalidQuery(f"{place}: an expression is nested at most {MAX_DEPTH} levels deep")
    if isinstance(json, str) and json.startswith("$"):
        return parse_field(json, place)
    operand = Operand(json, place, depth, parse_expression)
    if isinstance(json, list):
        items = operand.expressions(json)
        if all(isinstance(item, Literal) for item in items):
            return Literal([item.value for item in items if isinstance(item, Literal)])
        return Items(items)
    if not isinstance(json, dict) or "__type" in json:
        return Literal(normalise(json, place))
    names = [key for key in json if key.startswith("$")]
    if not names:
        return _document(json, operand)
    if len(json) > 1:
        raise InvalidQuery(f"{place}: an expression has one operator, found {shown(list(json))}")
    [name] = names
    place = f"{place}.{shown(name)}"
    operator = OPERATORS.get(name)
    if operator is None:
        raise InvalidQuery(f"{place}: unrecognized expression '{shown(name)}'")
    return operator.parse(name, Operand(json[name], place, depth, parse_expression))


def parse_field(text: Json, place: str) -> Field:
    """Return the field that ``$a.b``, ``$$ROOT`` or ``$$CURRENT.a`` names."""
    if not isinstance(text, str) or not text.startswith("$"):
        raise InvalidQuery(f"{place}: expected a field path that begins with $")
    if text.startswith("$$"):
        name, _, subpath = text[2:].partition(".")
        if name not in ("ROOT", "CURRENT"):
            raise InvalidQuery(f"{place}: unknown variable $${shown(name)}")
        return Field(parse_path(subpath, place) if subpath else ())
    return Field(parse_path(text[1:], place))


def _document(json: dict[str, Json], operand: Operand) -> Expression:
    fields = []
    for key, value in json.items():
        if "." in key or key in PROHIBITED_KEYS or not is_storable_text(key):
            raise InvalidQuery(f"{operand.place}: {shown(key)} can't be the name of a field")
        fields.append((key, operand.expression(value, f"{operand.place}.{shown(key)}")))
    if all(isinstance(value, Literal) for _, value in fields):
        return Literal({name: v.value for name, v in fields if isinstance(v, Literal)})
    return Document(tuple(fields))

"""The index of all fields: the conditions that it serves, and what of an object is in it.

It is a GIN index (``jsonb_path_ops``) on ``objects_indexed_1(data)``, which bounds its entries of
one object: of fields with more than 8 KiB in PostgreSQL's binary form, lists and objects are left
out, the largest first, until those that stay take 8 KiB at most (migration 0022). Where a field
is left out, it is the text ``LEFT_OUT`` in the index. So a condition on such a field reads all
objects that leave it out, and compares them whole.

Classes that an earlier version has made have the index on ``data`` itself until it is replaced
(``objects.learned.replacements``), as have models with an index of their own.
"""

from __future__ import annotations

from typing import Final, Literal

from objects.sql.fields import Reading
from objects.sql.fragments import Sql, json_text

LEFT_OUT: Final = "(left out)"
_STAY: Final = frozenset({"String", "Number", "Boolean", "Date", "Pointer", "GeoPoint"})
"""Kinds of fields that are never left out."""

_Operator = Literal["@>", "@?"]
# The functions of the operators. A comparison of the object as it is takes place first where no
# index is used, since the function of the index costs more; and PostgreSQL estimates nothing by it.
_EXACT: Final = {
    "@>": "jsonb_contains({base}, %s::jsonb)",
    "@?": "jsonb_path_exists({base}, %s::jsonpath, '{{}}', true)",
}
_TYPES: Final = {"@>": "jsonb", "@?": "jsonpath"}


def contains(reading: Reading, document: str) -> Sql:
    """The object contains a JSON document that has a value of the reading's field alone."""
    return _served(reading, "@>", document)


def has_match(reading: Reading, path: str) -> Sql:
    """A jsonpath into the reading's field finds something; the index serves tests of equality."""
    return _served(reading, "@?", path)


def may_contain(name: str, data: str, indexed: str, documents: Sql) -> Sql:
    """The object may contain one of an array of JSON documents with this field alone."""
    if not indexed:
        return f"{data} @> ANY(" + documents + ")"
    left_out = Sql("%s::jsonb", (json_text({name: LEFT_OUT}),))
    return (
        f"({indexed}({data}) @> ANY(" + documents + f") OR {indexed}({data}) @> " + left_out + ")"
    )


def is_served(condition: Sql, data: str, indexed: str) -> bool:
    """Whether a condition on the column ``data`` is one that the index serves."""
    call = f"{indexed}({data})" if indexed else None
    return any(
        condition.text == _text(data, call, operator, stays=stays)
        for operator in _TYPES
        for stays in (True, False)
    )


def _served(reading: Reading, operator: _Operator, operand: str) -> Sql:
    stays = reading.is_whole and reading.kind in _STAY
    text = _text(reading.base, reading.indexed, operator, stays=stays)
    if reading.indexed is None:
        return Sql(text, (operand,))
    if stays:
        return Sql(text, (operand, operand))
    return Sql(text, (operand, operand, json_text({reading.steps[0]: LEFT_OUT})))


def _text(base: str, indexed: str | None, operator: str, *, stays: bool) -> str:
    if indexed is None:
        return f"({base} {operator} %s::{_TYPES[operator]})"
    exact = _EXACT[operator].format(base=base)
    served = f"{indexed} {operator} %s::{_TYPES[operator]}"
    if not stays:
        served = f"({served} OR {indexed} @> %s::jsonb)"
    return f"({exact} AND {served})"

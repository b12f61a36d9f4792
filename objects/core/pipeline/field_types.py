"""Values of a ``$match`` in the types of the fields that it is about.

Clients of aggregations write dates as text in ISO 8601 and pointers as the ids of objects, since
they are stored in this form by Parse Server. In a ``where`` both are typed values.
"""

from __future__ import annotations

from dataclasses import replace

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json
from objects.core.query.paths import Path
from objects.core.query.tree import (
    AllOf,
    AnyOf,
    Compare,
    Equals,
    In,
    NoneOf,
    NotEquals,
    NotIn,
    Query,
)
from objects.core.schema.definition import ClassSchema
from objects.core.values import date, normalise_date, pointer


def typed(query: Query, schema: ClassSchema) -> Query:
    """Return the query with texts as dates and pointers, where its fields have these types."""
    if isinstance(query, AllOf | AnyOf | NoneOf):
        return replace(query, parts=tuple(typed(part, schema) for part in query.parts))
    if isinstance(query, Equals | NotEquals | Compare):
        return replace(query, value=_typed_value(query.path, query.value, schema))
    if isinstance(query, In | NotIn):
        values = tuple(_typed_value(query.path, value, schema) for value in query.values)
        return replace(query, values=values)
    return query


def _typed_value(path: Path, value: Json, schema: ClassSchema) -> Json:
    field = schema.fields.get(path[0]) if len(path) == 1 else None
    if field is None or not isinstance(value, str):
        return value
    if field.kind == "Pointer" and field.target_class is not None:
        return {**pointer(field.target_class, value)}
    if field.kind == "Date":
        try:
            return {**date(normalise_date(value))}
        except IncorrectType:
            return value
    return value

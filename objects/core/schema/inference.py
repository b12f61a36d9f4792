"""The type of a field, inferred from its first value; later values have to have the same type."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from backend.kernel.errors import IncorrectType, ObjectTooLarge
from backend.kernel.json_types import Json
from objects.core.names import ClassName, FieldName
from objects.core.schema.definition import ClassSchema, FieldType
from objects.core.values import FieldKind, kind

# Every write of a class and every process that knows it carries all of them.
MAX_FIELDS: Final = 2_000
MAX_CLIENT_FIELDS_PER_WRITE: Final = 100


@lru_cache(maxsize=1024)
def _type(kind_: FieldKind, target_class: ClassName | None = None) -> FieldType:
    return FieldType(kind_, target_class)


_SIMPLE_TYPES: Final[Mapping[type, FieldType]] = {
    str: _type("String"),
    int: _type("Number"),
    float: _type("Number"),
    bool: _type("Boolean"),
    list: _type("Array"),
}


def infer(value: Json) -> FieldType | None:
    """Return the type of field that a normalised value makes; None for null, which makes none."""
    simple = _SIMPLE_TYPES.get(type(value))
    if simple is not None:
        return simple
    value_kind = kind(value)
    if value_kind is None:
        return None
    if value_kind in ("Pointer", "Relation"):
        assert isinstance(value, dict)
        class_name = value["className"]
        assert isinstance(class_name, str)
        return _type(value_kind, class_name)
    return _type(value_kind)


def reconcile(
    schema: ClassSchema, types: Mapping[FieldName, FieldType]
) -> dict[FieldName, FieldType]:
    """Return the fields that a write with values of these types adds to the class.

    Raises ``IncorrectType`` if a field is there with another type, or for a second GeoPoint.
    """
    new: dict[FieldName, FieldType] = {}
    fields = schema.fields
    for name, type_ in types.items():
        existing = fields.get(name)
        if existing is None:
            new[name] = FieldType(type_.kind, type_.target_class)
        elif existing.kind != type_.kind or existing.target_class != type_.target_class:
            raise IncorrectType(
                f"schema mismatch for {schema.class_name}.{name};"
                f" expected {existing} but got {type_}"
            )
    if new:
        check_new_fields(schema, new)
    return new


def check_new_fields(schema: ClassSchema, new: Mapping[FieldName, FieldType]) -> None:
    """Check that fields may be added to a class.

    Raises ``ObjectTooLarge`` if there are too many for the class, and ``IncorrectType`` if they
    give it a second GeoPoint.
    """
    if new and len(schema.fields) + len(new) > MAX_FIELDS:
        raise ObjectTooLarge(
            f"a class has at most {MAX_FIELDS:,} fields; {schema.class_name} has"
            f" {len(schema.fields):,}, and {len(new):,} would be new"
        )
    points = [
        name
        for fields in (schema.fields, new)
        for name in fields
        if fields[name].kind == "GeoPoint"
    ]
    if len(points) > 1 and any(new[name].kind == "GeoPoint" for name in new):
        raise IncorrectType(
            "currently, only one GeoPoint field may exist in an object."
            f" Adding {points[-1]} when {points[0]} already exists."
        )


def check_client_fields(schema: ClassSchema, new: Collection[FieldName], most: int) -> None:
    """Raise ``ObjectTooLarge`` if a client's write adds more fields than clients may.

    ``most`` is what clients together may add to a class.
    """
    if len(new) > MAX_CLIENT_FIELDS_PER_WRITE:
        raise ObjectTooLarge(
            f"an object adds at most {MAX_CLIENT_FIELDS_PER_WRITE} fields to its class;"
            f" {len(new):,} would be new to {schema.class_name}"
        )
    if new and len(schema.client_fields) + len(new) > most:
        raise ObjectTooLarge(
            f"clients add at most {most:,} fields to a class; {schema.class_name} has"
            f" {len(schema.client_fields):,} from them, and {len(new):,} would be new"
        )

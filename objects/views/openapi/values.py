"""Typed values and update operators as component schemas, and what a field looks like in each of
an object's three forms: read, create, update."""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.json_types import Schema
from backend.openapi import ref
from objects.core.schema.definition import FieldType

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_NULL: Schema = {"type": "null"}
_ANY: Schema = {}
_LIST: Schema = {"type": "array", "items": _ANY}


def _object(
    properties: Schema, *, required: tuple[str, ...] | None = None, about: str = ""
) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    schema["required"] = [*(properties if required is None else required)]
    return {**schema, "description": about} if about else schema


def _fixed(text: str) -> Schema:
    """One text and no other; generated clients fill it in by the default."""
    return {"const": text, "default": text}


def _typed(
    name: str, about: str, /, optional: tuple[str, ...] = (), **properties: Schema
) -> Schema:
    every = {"__type": _fixed(name), **properties}
    needed = tuple(each for each in every if each not in optional)
    return _object(every, required=needed, about=about)


def _operator(name: str, about: str, /, **properties: Schema) -> Schema:
    return _object({"__op": _fixed(name), **properties}, about=about)


_LATITUDE = {"type": "number", "minimum": -90, "maximum": 90}
_LONGITUDE = {"type": "number", "minimum": -180, "maximum": 180}
_CORNER = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_POINTERS = {"type": "array", "items": ref("PointerValue")}

VALUES: Mapping[str, Schema] = {
    "DateValue": _typed(
        "Date",
        "A point in time, kept in UTC to the millisecond.",
        iso={"type": "string", "format": "date-time", "examples": ["2020-01-31T12:00:00.000Z"]},
    ),
    "PointerValue": _typed("Pointer", "Another object.", className=_TEXT, objectId=_TEXT),
    "RelationValue": _typed("Relation", "Any number of objects of one class.", className=_TEXT),
    "GeoPointValue": _typed(
        "GeoPoint", "A place, in degrees.", latitude=_LATITUDE, longitude=_LONGITUDE
    ),
    "PolygonValue": _typed(
        "Polygon",
        "An area: corners as latitude and longitude.",
        coordinates={"type": "array", "items": _CORNER, "minItems": 3},
    ),
    "BytesValue": _typed(
        "Bytes", "Bytes in base64.", base64={"type": "string", "contentEncoding": "base64"}
    ),
    "FileValue": _typed(
        "File",
        "A file that was uploaded; `url` follows from `name`.",
        optional=("url",),
        name={"type": "string", "minLength": 1},
        url={"type": ["string", "null"]},
    ),
    "AccessList": {
        "type": "object",
        "description": "Who may read and write: `*`, ids of users, `role:NAME`. Without one,"
        " everybody; empty, the master key alone.",
        "additionalProperties": {
            "type": "object",
            "properties": {"read": {"type": "boolean"}, "write": {"type": "boolean"}},
            "additionalProperties": False,
        },
        "examples": [{"*": {"read": True}, "role:Editors": {"read": True, "write": True}}],
    },
}

OPERATORS: Mapping[str, Schema] = {
    "IncrementOperator": _operator("Increment", "Adds to a number.", amount=_NUMBER),
    "DeleteOperator": _operator("Delete", "Removes the field."),
    "AddOperator": _operator("Add", "Appends to a list.", objects=_LIST),
    "AddUniqueOperator": _operator("AddUnique", "Appends what a list lacks.", objects=_LIST),
    "RemoveOperator": _operator("Remove", "Removes all that is equal from a list.", objects=_LIST),
    "SetOnInsertOperator": _operator("SetOnInsert", "Sets the field of a new object.", amount=_ANY),
    "AddRelationOperator": _operator(
        "AddRelation", "Takes objects into a relation.", objects=_POINTERS
    ),
    "RemoveRelationOperator": _operator(
        "RemoveRelation", "Takes objects out of a relation.", objects=_POINTERS
    ),
    "RelationBatchOperator": _object(
        {
            "__op": _fixed("Batch"),
            "ops": {
                "type": "array",
                "items": {"anyOf": [ref("AddRelationOperator"), ref("RemoveRelationOperator")]},
            },
        },
        about="Several changes of one relation.",
    ),
}

_PLAIN: Mapping[str, Schema] = {
    "String": _TEXT,
    "Number": _NUMBER,
    "Boolean": {"type": "boolean"},
    "Object": {"type": "object"},
    "Array": _LIST,
}
_OPERATORS_OF = {"Number": ("Increment",), "Array": ("Add", "AddUnique", "Remove")}
_RELATION_CHANGES = [
    ref(name)
    for name in (
        "RelationValue",
        "AddRelationOperator",
        "RemoveRelationOperator",
        "RelationBatchOperator",
    )
]


def _value(kind: str) -> Schema:
    return _PLAIN.get(kind) or ref(f"{kind}Value")


def _or_null(kind: str) -> Schema:
    plain = _PLAIN.get(kind)
    if plain is None:
        return {"anyOf": [ref(f"{kind}Value"), _NULL]}
    return {**plain, "type": [plain["type"], "null"]}


def _change(kind: str) -> Schema:
    operators = (*_OPERATORS_OF.get(kind, ()), "SetOnInsert", "Delete")
    return {"anyOf": [_value(kind), _NULL, *(ref(f"{name}Operator") for name in operators)]}


_KINDS = (*_PLAIN, "Date", "Pointer", "GeoPoint", "Polygon", "Bytes", "File")
_READ: Mapping[str, Schema] = {
    **{kind: _or_null(kind) for kind in _KINDS},
    "Relation": ref("RelationValue"),
}
_CREATE: Mapping[str, Schema] = {**_READ, "Relation": {"anyOf": [*_RELATION_CHANGES, _NULL]}}
_UPDATE: Mapping[str, Schema] = {
    **{kind: _change(kind) for kind in _KINDS},
    "Relation": {"anyOf": [*_RELATION_CHANGES, _NULL, ref("DeleteOperator")]},
}


def read_form(field: FieldType) -> Schema:
    """A field of an object that is read."""
    return _READ[field.kind]


def create_form(field: FieldType) -> Schema:
    """A field of a new object."""
    if not (field.required or field.default is not None):
        return _CREATE[field.kind]
    schema = _value(field.kind) if field.required else _CREATE[field.kind]
    if field.required and field.kind == "String":
        schema = {**schema, "minLength": 1}
    # Other defaults may name classes that the reader of the document doesn't know.
    if field.kind in ("String", "Number", "Boolean") and field.default is not None:
        schema = {**schema, "default": field.default}
    return schema


def update_form(field: FieldType) -> Schema:
    """A field in a change of an object: a value or an operator."""
    return _UPDATE[field.kind]


def pointer_schema(class_name: str) -> Schema:
    """A pointer to an object of one class."""
    return _typed("Pointer", "", className=_fixed(class_name), objectId=_TEXT)


def read_pointer(pointer: str, target: str) -> Schema:
    """A pointer field of an object that is read: the pointer, or the object that was included."""
    return {"anyOf": [ref(pointer), ref(target), _NULL]}


def create_pointer(pointer: str, *, required: bool) -> Schema:
    """A pointer field of a new object."""
    return ref(pointer) if required else {"anyOf": [ref(pointer), _NULL]}


def update_pointer(pointer: str) -> Schema:
    """A pointer field in a change of an object."""
    return {"anyOf": [ref(pointer), _NULL, ref("SetOnInsertOperator"), ref("DeleteOperator")]}

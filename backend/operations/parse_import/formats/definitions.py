"""Class definitions as a Parse Server's API, its MongoDB and its PostgreSQL store them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from backend.kernel.json_types import Json
from backend.operations.parse_import.formats.stored_objects import UnreadableValue

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_POINTER: Final = re.compile(r"\*([A-Za-z_][A-Za-z0-9_]*)")
_RELATION: Final = re.compile(r"relation<([A-Za-z_][A-Za-z0-9_]*)>")
_MONGO_KINDS: Final = {
    "string": "String",
    "number": "Number",
    "boolean": "Boolean",
    "date": "Date",
    "map": "Object",
    "object": "Object",
    "array": "Array",
    "geopoint": "GeoPoint",
    "file": "File",
    "bytes": "Bytes",
    "polygon": "Polygon",
}
OF_EVERY_CLASS: Final = frozenset({"objectId", "createdAt", "updatedAt", "ACL"})
_OF_MONGO: Final = frozenset(
    {"_id", "objectId", "createdAt", "updatedAt", "_metadata", "_client_permissions"}
)
_OF_THE_SERVER: Final = frozenset({"_id_", "case_insensitive_username", "case_insensitive_email"})
"""Indexes that Parse Server makes of its own accord."""
_RELATIONS_OF_PARSE: Final = {"_Role": ("users", "roles")}


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field: its type (``Pointer``), its target class, and its options."""

    kind: str
    target_class: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)

    def wire(self) -> dict[str, Json]:
        """Return it as ``/schemas`` takes it."""
        wire: dict[str, Json] = {"type": self.kind, **self.options}
        if self.target_class is not None:
            wire["targetClass"] = self.target_class
        return wire


@dataclass(frozen=True, slots=True)
class ClassDefinition:
    """A class: its fields without those that every class has, its permissions and its indexes."""

    name: str
    fields: Mapping[str, FieldDefinition]
    permissions: Mapping[str, Json] | None = None
    indexes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def relations(self) -> list[str]:
        """The names of its relation fields."""
        declared = [
            name for name, definition in self.fields.items() if definition.kind == "Relation"
        ]
        return [*dict.fromkeys((*declared, *_RELATIONS_OF_PARSE.get(self.name, ())))]

    def kind(self, field_name: str) -> str | None:
        """Return the type of a field, or None if the class has no such field."""
        definition = self.fields.get(field_name)
        return None if definition is None else definition.kind


AUDIENCES: Final = "_Audience"
SCHEDULES: Final = "_JobSchedule"
UNDECLARED: Final[Mapping[str, ClassDefinition]] = {
    AUDIENCES: ClassDefinition(
        AUDIENCES,
        {
            "name": FieldDefinition("String"),
            "query": FieldDefinition("String"),
            "lastUsed": FieldDefinition("Date"),
            "timesUsed": FieldDefinition("Number"),
        },
    ),
    SCHEDULES: ClassDefinition(SCHEDULES, {}),
}
"""Classes that neither ``_SCHEMA`` nor ``GET /schemas`` has, although they hold the team's data."""


class _Schema(msgspec.Struct):
    fields: dict[str, Any] | None = None
    classLevelPermissions: dict[str, Any] | None = None
    indexes: dict[str, Any] | None = None


class _NamedSchema(_Schema, kw_only=True):
    className: str


class _Row(msgspec.Struct):
    className: str
    schema: _Schema | None = None


class _Metadata(msgspec.Struct):
    fields_options: dict[str, dict[str, Any] | None] | None = None
    class_permissions: dict[str, Any] | None = None
    indexes: dict[str, Any] | None = None


class _Document(msgspec.Struct):
    name: str = msgspec.field(name="_id")
    metadata: _Metadata | None = msgspec.field(name="_metadata", default=None)


def of_api(stored: object) -> ClassDefinition:
    """Return the class that an element of ``GET /schemas`` describes. Raises ``UnreadableValue``,
    as the functions below do."""
    schema = _converted(stored, _NamedSchema)
    return _of_schema(schema.className, schema)


def of_table_row(stored: object) -> ClassDefinition:
    """Return the class that a row of PostgreSQL's ``_SCHEMA`` describes."""
    row = _converted(stored, _Row)
    return _of_schema(row.className, row.schema or _Schema())


def of_document(stored: Mapping[str, Any]) -> ClassDefinition:
    """Return the class that a document of MongoDB's ``_SCHEMA`` describes."""
    document = _converted(stored, _Document)
    metadata = document.metadata or _Metadata()
    options = metadata.fields_options or {}
    fields = {}
    for name, kind in stored.items():
        if name in _OF_MONGO or not isinstance(kind, str):
            continue
        fields[name] = _mongo_field(kind, options.get(name) or {})
    return ClassDefinition(
        document.name, fields, metadata.class_permissions, _indexes(metadata.indexes)
    )


def _of_schema(name: str, schema: _Schema) -> ClassDefinition:
    return ClassDefinition(
        name, _fields(schema.fields or {}), schema.classLevelPermissions, _indexes(schema.indexes)
    )


def _converted(stored: object, type_: type[_Struct]) -> _Struct:
    try:
        return msgspec.convert(stored, type_)
    except msgspec.ValidationError as error:
        raise UnreadableValue(str(error)) from None


def _fields(fields: Mapping[str, Any]) -> dict[str, FieldDefinition]:
    return {
        name: FieldDefinition(
            str(stored.get("type")),
            stored.get("targetClass"),
            {key: stored[key] for key in ("required", "defaultValue") if key in stored},
        )
        for name, stored in fields.items()
        if name not in OF_EVERY_CLASS and not name.startswith("_") and isinstance(stored, dict)
    }


def _mongo_field(stored: str, options: Mapping[str, Json]) -> FieldDefinition:
    pointer, relation = _POINTER.fullmatch(stored), _RELATION.fullmatch(stored)
    if pointer:
        return FieldDefinition("Pointer", pointer[1], options)
    if relation:
        return FieldDefinition("Relation", relation[1], options)
    return FieldDefinition(_MONGO_KINDS.get(stored, "Object"), None, options)


def _indexes(indexes: Mapping[str, Any] | None) -> dict[str, Json]:
    return {name: fields for name, fields in (indexes or {}).items() if name not in _OF_THE_SERVER}

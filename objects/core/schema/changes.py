"""What ``/schemas`` is sent: new classes and changes of classes, checked.

The pure half of the schema API: a body and the schema as it is give the schema as it will be,
or the error that says why not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final, cast, get_args

from backend.kernel.errors import (
    IncorrectType,
    InvalidClassName,
    InvalidJSON,
    InvalidKeyName,
    InvalidQuery,
    InvalidSchemaOperation,
)
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.access.class_permissions import (
    ClassPermissions,
    Openness,
    default_permissions,
    new_class_permissions,
    parse_permissions,
)
from objects.core.names import ClassName, FieldName, check_class_name, is_field_name
from objects.core.schema.definition import (
    DEFAULT_FIELDS,
    SYSTEM_FIELDS,
    ClassSchema,
    Direction,
    FieldType,
    IndexDeclaration,
    empty_schema,
)
from objects.core.schema.inference import check_new_fields, infer
from objects.core.values import FieldKind, normalise

# Codes that Parse gives without a name of their own.
_MISSING_CLASS_NAME: Final = 135
_DEFAULT_FIELD: Final = 136

_KINDS: Final[frozenset[str]] = frozenset(get_args(FieldKind))
_ORDERED: Final = frozenset({"String", "Number", "Boolean", "Date", "Pointer", "File"})
_UNIQUE: Final = frozenset({"String", "Number", "Boolean", "Date", "Pointer"})
_INDEX_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_MAX_INDEX_FIELDS: Final = 16
# Parse Server shows this index for every class; it is there without being declared.
_PRIMARY_INDEX: Final = "_id_"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A class before and after, and what the difference means for stored objects and indexes."""

    before: ClassSchema
    after: ClassSchema
    removed_fields: tuple[FieldName, ...] = ()

    @property
    def dropped_indexes(self) -> tuple[IndexDeclaration, ...]:
        """Indexes to drop; an index with a changed declaration is dropped and rebuilt."""
        new = self.after.index_declarations
        old = self.before.index_declarations
        return tuple(index for name, index in old.items() if new.get(name) != index)

    @property
    def added_indexes(self) -> tuple[IndexDeclaration, ...]:
        """Indexes to build."""
        new = self.after.index_declarations
        old = self.before.index_declarations
        return tuple(index for name, index in new.items() if old.get(name) != index)

    @property
    def without_added_indexes(self) -> ClassSchema:
        """The class after the change, until the indexes to build are there."""
        schema = self.after
        for index in self.added_indexes:
            schema = schema.without_index(index)
        return schema


def class_name_of(path_name: str | None, body: Json) -> ClassName:
    """Return the class that a request to ``/schemas`` is about, from its path and its body."""
    body_name = body.get("className") if isinstance(body, dict) else None
    if body_name is not None and not isinstance(body_name, str):
        raise InvalidJSON("className: expected text")
    if path_name and body_name and path_name != body_name:
        raise InvalidClassName(
            f"Class name mismatch between {shown(body_name)} and {shown(path_name)}."
        )
    name = path_name or body_name
    if not name:
        raise InvalidSchemaOperation("POST /schemas needs a class name.", code=_MISSING_CLASS_NAME)
    return check_class_name(name)


def new_schema(
    class_name: ClassName, body: Json, openness: Openness = "open", *, custom_ids: bool = True
) -> ClassSchema:
    """Return the schema of a new class. ``openness`` applies if it names no permissions."""
    schema = empty_schema(check_class_name(class_name), openness)
    return change_schema(
        schema, body, creating=True, openness=openness, custom_ids=custom_ids
    ).after


def change_schema(
    schema: ClassSchema,
    body: Json,
    *,
    creating: bool = False,
    openness: Openness = "open",
    custom_ids: bool = True,
) -> SchemaChange:
    """Return the class after a ``PUT /schemas``. Fields and indexes that aren't named stay.

    Permissions that are null become those of a new class, by ``openness``. ``custom_ids`` says
    which user ids they may name, as in ``parse_permissions``.

    A field that only clients have used becomes the owner's when it is named, and may get another
    type: it is then among the removed fields as well, since stored values have the old type.
    """
    fields, indexes, permissions = _sections(body)
    changes = _field_changes(schema, fields, creating=creating)
    added, removed = changes.added, changes.removed
    remaining = {name: type_ for name, type_ in schema.fields.items() if name not in removed}
    client_fields = schema.client_fields.difference(removed, added)
    after = replace(schema, fields=remaining, client_fields=client_fields)
    check_new_fields(after, {name: t for name, t in added.items() if name not in remaining})
    after = after.with_fields(added)
    after = replace(after, indexes=_changed_indexes(after, indexes, removed))
    if permissions is not None:
        now = parse_permissions(
            permissions,
            after.user_fields,
            after.fields.keys(),
            default_permissions(schema.class_name),
            custom_ids=custom_ids,
        )
    elif isinstance(body, dict) and "classLevelPermissions" in body:
        now = new_class_permissions(schema.class_name, openness)
    else:
        now = _permissions_without(schema, removed, changes.replaced)
    return SchemaChange(schema, replace(after, permissions=now), tuple(removed))


@dataclass
class _FieldChanges:
    """``replaced`` fields are among the added and the removed ones: clients have made them with
    another type, so their values are removed, and the fields are added again."""

    added: dict[FieldName, FieldType] = field(default_factory=dict)
    removed: list[FieldName] = field(default_factory=list)
    replaced: set[FieldName] = field(default_factory=set)


def _field_changes(
    schema: ClassSchema, fields: Mapping[str, Json], *, creating: bool
) -> _FieldChanges:
    changes = _FieldChanges()
    for key, wire in fields.items():
        place = f"fields.{shown(key)}"
        if not isinstance(wire, dict):
            raise InvalidJSON(f"{place}: expected an object")
        if "__op" in wire:
            changes.removed.append(_removed_field(schema, key, wire))
            continue
        name = _field_name(key)
        fixed = _fixed_type(schema.class_name, name)
        if fixed is not None and (creating or wire.get("type") != fixed):
            raise InvalidSchemaOperation(f"field {name} cannot be added", code=_DEFAULT_FIELD)
        if fixed is None:
            type_ = changes.added[name] = _field_type(schema, name, wire, place)
            existing = schema.fields.get(name)
            if existing is not None and not existing.accepts(type_):
                changes.removed.append(name)
                changes.replaced.add(name)
    return changes


def _permissions_without(
    schema: ClassSchema, removed: Collection[FieldName], replaced: Set[FieldName]
) -> ClassPermissions:
    """Return the permissions without removed fields; replaced fields stay protected."""
    before = schema.permissions
    after = before.without_fields(removed)
    if not replaced:
        return after
    protected = {
        group: names | (before.protected_fields[group] & replaced)
        for group, names in after.protected_fields.items()
    }
    return replace(after, protected_fields=protected)


def _sections(body: Json) -> tuple[dict[str, Json], dict[str, Json], Json]:
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise InvalidJSON("expected an object with fields, classLevelPermissions, indexes")
    for key in body:
        if key not in ("className", "fields", "classLevelPermissions", "indexes"):
            raise InvalidJSON(f"{shown(key)}: unknown part of a schema")
    sections = []
    for key in ("fields", "indexes"):
        section = body.get(key)
        if section is not None and not isinstance(section, dict):
            raise InvalidJSON(f"{key}: expected an object")
        sections.append(section or {})
    return sections[0], sections[1], body.get("classLevelPermissions")


def _field_name(text: str) -> FieldName:
    if not is_field_name(text):
        raise InvalidKeyName(f"invalid field name: {shown(text)}")
    return text


def _fixed_type(class_name: ClassName, name: FieldName) -> str | None:
    """Return the type of a built-in field, which can't be changed, or None."""
    if name == "ACL":
        return "ACL"
    fixed = DEFAULT_FIELDS.get(name) or SYSTEM_FIELDS.get(class_name, {}).get(name)
    return fixed.kind if fixed else None


def _removed_field(schema: ClassSchema, name: str, wire: Mapping[str, Json]) -> FieldName:
    if wire["__op"] != "Delete":
        raise InvalidJSON(f"fields.{shown(name)}.__op: expected Delete")
    if not is_field_name(name):
        raise InvalidSchemaOperation(f"Field {shown(name)} does not exist, cannot delete.")
    if _fixed_type(schema.class_name, name) is not None:
        raise InvalidSchemaOperation(f"field {name} cannot be changed", code=_DEFAULT_FIELD)
    if name not in schema.fields:
        raise InvalidSchemaOperation(f"Field {shown(name)} does not exist, cannot delete.")
    return name


def _field_type(
    schema: ClassSchema, name: FieldName, wire: Mapping[str, Json], place: str
) -> FieldType:
    field_type = _plain_type(wire)
    for option in wire:
        if option not in ("type", "targetClass", "required", "defaultValue", "unique"):
            raise InvalidJSON(f"{place}.{shown(option)}: unknown option of a field")
    existing = schema.fields.get(name)
    is_fixed = existing is not None and name not in schema.client_fields
    if existing is not None and is_fixed and not existing.accepts(field_type):
        raise InvalidSchemaOperation(f"Field {name} exists, cannot update.")
    required, unique = _flag(wire, "required", place), _flag(wire, "unique", place)
    if required and field_type.kind == "Relation":
        raise IncorrectType(f"The 'required' option is not applicable for {field_type}")
    if unique and field_type.kind not in _UNIQUE:
        raise IncorrectType(f"The 'unique' option is not applicable for {field_type}")
    default = _default(schema, name, field_type, wire.get("defaultValue"), place)
    return replace(field_type, required=required, default=default, unique=unique)


def _flag(wire: Mapping[str, Json], option: str, place: str) -> bool:
    flag = wire.get(option, False)
    if not isinstance(flag, bool):
        raise InvalidJSON(f"{place}.{option}: expected true or false")
    return flag


def _plain_type(wire: Mapping[str, Json]) -> FieldType:
    type_name, target_class = wire.get("type"), wire.get("targetClass")
    if type_name in ("Pointer", "Relation"):
        if not target_class:
            raise InvalidSchemaOperation(
                f"type {type_name} needs a class name", code=_MISSING_CLASS_NAME
            )
        if not isinstance(target_class, str):
            raise InvalidJSON("invalid JSON")
        return FieldType(cast(FieldKind, type_name), check_class_name(target_class))
    if not isinstance(type_name, str):
        raise InvalidJSON("invalid JSON")
    if type_name not in _KINDS:
        raise IncorrectType(f"invalid field type: {shown(type_name)}")
    return FieldType(cast(FieldKind, type_name))


def _default(
    schema: ClassSchema, name: str, field_type: FieldType, value: Json, place: str
) -> Json:
    if value is None:
        return None
    if field_type.kind == "Relation":
        raise IncorrectType(f"The 'default value' option is not applicable for {field_type}")
    default = normalise(value, f"{place}.defaultValue")
    default_type = infer(default)
    if default_type is None or not field_type.accepts(default_type):
        raise IncorrectType(
            f"schema mismatch for {schema.class_name}.{name} default value;"
            f" expected {field_type} but got {default_type or 'undefined'}"
        )
    return default


def _changed_indexes(
    schema: ClassSchema, submitted: Mapping[str, Json], removed_fields: list[FieldName]
) -> dict[str, IndexDeclaration]:
    indexes = {
        name: index
        for name, index in schema.indexes.items()
        if not any(field in removed_fields for field, _ in index.fields)
    }
    for name, wire in submitted.items():
        if name == _PRIMARY_INDEX:
            continue
        if not isinstance(wire, dict):
            raise InvalidJSON(f"indexes.{shown(name)}: expected an object")
        if "__op" in wire:
            if wire["__op"] != "Delete":
                raise InvalidJSON(f"indexes.{shown(name)}.__op: expected Delete")
            if name not in schema.indexes:
                raise InvalidQuery(f"Index {shown(name)} does not exist, cannot delete.")
            indexes.pop(name, None)
        elif name in schema.indexes:
            raise InvalidQuery(f"Index {name} exists, cannot update.")
        else:
            indexes[name] = _index(schema, name, wire)
    return indexes


def _index(schema: ClassSchema, name: str, wire: dict[str, Json]) -> IndexDeclaration:
    if _INDEX_NAME.fullmatch(name) is None:
        raise InvalidQuery(f"Invalid index name: {shown(name)}")
    place = f"indexes.{name}"
    unique = False
    fields = wire
    if isinstance(wire.get("fields"), dict):
        fields = cast("dict[str, Json]", wire["fields"])
        unique = _flag(wire, "unique", place)
        if not wire.keys() <= {"fields", "unique"}:
            raise InvalidJSON(f"{place}: expected fields and unique, and nothing else")
    if not 1 <= len(fields) <= _MAX_INDEX_FIELDS:
        raise InvalidQuery(f"{place}: expected 1 to {_MAX_INDEX_FIELDS} fields")
    columns = tuple(
        _indexed_field(schema, field, direction, unique, f"{place}.{shown(field)}")
        for field, direction in fields.items()
    )
    kinds = {direction if isinstance(direction, str) else "1 or -1" for _, direction in columns}
    if len(kinds) > 1:
        raise InvalidQuery(
            f"{place}: fields of {' and '.join(sorted(kinds))} need separate indexes"
        )
    return IndexDeclaration(name, columns, unique)


def _indexed_field(
    schema: ClassSchema, name: str, direction: Json, unique: bool, place: str
) -> tuple[FieldName, Direction]:
    if not is_field_name(name) or (field_type := schema.field_type(name)) is None:
        raise InvalidQuery(f"Field {shown(name)} does not exist, cannot add index.")
    if direction in (1, -1) and not isinstance(direction, bool):
        kinds, parsed = _UNIQUE if unique else _ORDERED, cast(Direction, int(cast(int, direction)))
    elif direction == "text" and not unique:
        kinds, parsed = frozenset({"String"}), "text"
    elif direction == "2dsphere" and not unique:
        kinds, parsed = frozenset({"GeoPoint", "Polygon"}), "2dsphere"
    else:
        raise InvalidQuery(f'{place}: expected 1, -1, "text" or "2dsphere" (unique: 1 or -1)')
    if field_type.kind not in kinds:
        raise InvalidQuery(f"{place}: a {field_type} can't be indexed like this")
    return name, parsed

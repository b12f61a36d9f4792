"""The schema of a class: which fields it has, of which types, and what follows from that.

``inference`` has the types of fields that writes add, and ``changes`` parses requests to
``/schemas``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from backend.kernel.errors import ValidationFailed
from backend.kernel.json_types import Json
from objects.core.access.class_permissions import (
    ClassPermissions,
    Openness,
    default_permissions,
    new_class_permissions,
    parse_permissions,
)
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT, ClassName, FieldName
from objects.core.values import FieldKind

"""New fields that one object may add to its class with a client's rights."""

Direction: TypeAlias = Literal[1, -1, "text", "2dsphere"]


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field and its options in ``/schemas``."""

    kind: FieldKind
    target_class: ClassName | None = None
    required: bool = False
    default: Json = None
    unique: bool = False

    def __str__(self) -> str:
        return f"{self.kind}<{self.target_class}>" if self.target_class else self.kind

    def accepts(self, other: FieldType) -> bool:
        """Return whether a value of the other type may be stored in a field of this one."""
        return self.kind == other.kind and self.target_class == other.target_class

    def to_wire(self) -> dict[str, Json]:
        wire: dict[str, Json] = {"type": self.kind}
        if self.target_class is not None:
            wire["targetClass"] = self.target_class
        if self.required:
            wire["required"] = True
        if self.default is not None:
            wire["defaultValue"] = self.default
        if self.unique:
            wire["unique"] = True
        return wire


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """An index that a class asks for; the order of the fields matters."""

    name: str
    fields: tuple[tuple[FieldName, Direction], ...]
    unique: bool = False

    def to_wire(self) -> dict[str, Json]:
        fields: dict[str, Json] = dict(self.fields)
        return {"fields": fields, "unique": True} if self.unique else fields


# ACL is a field as well to those who read a schema, but of a type of its own.
DEFAULT_FIELDS: Final[Mapping[FieldName, FieldType]] = MappingProxyType(
    {
        OBJECT_ID: FieldType("String"),
        CREATED_AT: FieldType("Date"),
        UPDATED_AT: FieldType("Date"),
    }
)


def _columns(definition: str) -> Mapping[FieldName, FieldType]:
    fields = {}
    for column in definition.split():
        name, _, type_name = column.partition(":")
        plain, _, target_class = type_name.partition("->")
        fields[FieldName(name)] = FieldType(plain or "String", target_class or None)  # type: ignore[arg-type]
    return MappingProxyType(fields)


SYSTEM_FIELDS: Final[Mapping[str, Mapping[FieldName, FieldType]]] = MappingProxyType(
    {
        name: _columns(definition)
        for name, definition in {
            "_User": "username password email emailVerified:Boolean authData:Object",
            "_Installation": (
                "installationId deviceToken channels:Array deviceType pushType GCMSenderId timeZone"
                " localeIdentifier badge:Number appVersion appName appIdentifier parseVersion"
            ),
            "_Role": "name users:Relation->_User roles:Relation->_Role",
            "_Session": (
                "user:Pointer->_User installationId sessionToken expiresAt:Date createdWith:Object"
            ),
            "_Product": (
                "productIdentifier download:File downloadName icon:File order:Number title subtitle"
            ),
            "_PushStatus": (
                "pushTime source query payload title expiry:Number expiration_interval:Number"
                " status numSent:Number numFailed:Number pushHash errorMessage:Object"
                " sentPerType:Object failedPerType:Object sentPerUTCOffset:Object"
                " failedPerUTCOffset:Object count:Number"
            ),
            "_JobStatus": "jobName source status message params:Object finishedAt:Date",
            "_JobSchedule": (
                "jobName description params startAfter daysOfWeek:Array timeOfDay lastRun:Number"
                " repeatMinutes:Number"
            ),
            "_Hooks": "functionName className triggerName url",
            "_GlobalConfig": "params:Object masterKeyOnly:Object",
            "_GraphQLConfig": "config:Object",
            "_Audience": "name query lastUsed:Date timesUsed:Number",
            "_Idempotency": "reqId expire:Date",
        }.items()
    }
)

# Names of declared indexes begin with a letter.
_UNIQUE_FIELD: Final = "_unique_"
_NO_NAMES: Final[frozenset[FieldName]] = frozenset()
_NO_FIELDS: Final[Mapping[FieldName, FieldType]] = MappingProxyType({})
_NO_INDEXES: Final[Mapping[str, IndexDeclaration]] = MappingProxyType({})


@dataclass(frozen=True)
class ClassSchema:
    """A class: its fields without those that every class has, its permissions, its indexes.

    A system class's own columns are among ``fields``. ``client_fields`` names those that only
    clients have used: they count against the clients' quota, and the owner may change their type.
    """

    class_name: ClassName
    fields: Mapping[FieldName, FieldType] = field(default_factory=lambda: _NO_FIELDS)
    permissions: ClassPermissions = field(default_factory=ClassPermissions)
    indexes: Mapping[str, IndexDeclaration] = field(default_factory=lambda: _NO_INDEXES)
    client_fields: frozenset[FieldName] = frozenset()

    def field_type(self, name: FieldName) -> FieldType | None:
        """Return the type of a field, one that every class has or one of its own."""
        return self.fields.get(name) or DEFAULT_FIELDS.get(name)

    @cached_property
    def user_fields(self) -> frozenset[FieldName]:
        """The fields that may name users: pointers to ``_User`` and arrays."""
        return frozenset(
            name
            for name, type_ in self.fields.items()
            if type_.kind == "Array" or (type_.kind == "Pointer" and type_.target_class == "_User")
        )

    @cached_property
    def required_fields(self) -> frozenset[FieldName]:
        """The fields without which an object can't be saved."""
        return frozenset(name for name, type_ in self.fields.items() if type_.required)

    @cached_property
    def defaults(self) -> Mapping[FieldName, Json]:
        """The values of fields that a new object doesn't name."""
        return {
            name: type_.default for name, type_ in self.fields.items() if type_.default is not None
        }

    @cached_property
    def index_declarations(self) -> Mapping[str, IndexDeclaration]:
        """All indexes to have: the declared ones, and one for each unique field."""
        declarations = dict(self.indexes)
        for name, type_ in self.fields.items():
            if type_.unique:
                index = IndexDeclaration(f"{_UNIQUE_FIELD}{name}", ((name, 1),), unique=True)
                declarations[index.name] = index
        return declarations

    def with_index(self, index: IndexDeclaration) -> ClassSchema:
        """Return the schema with one of the ``index_declarations`` more."""
        if index.name.startswith(_UNIQUE_FIELD):
            return self._with_unique(index.fields[0][0], unique=True)
        return replace(self, indexes={**self.indexes, index.name: index})

    def without_index(self, index: IndexDeclaration) -> ClassSchema:
        """Return the schema without one of the ``index_declarations``."""
        if index.name.startswith(_UNIQUE_FIELD):
            return self._with_unique(index.fields[0][0], unique=False)
        others = {name: other for name, other in self.indexes.items() if name != index.name}
        return replace(self, indexes=others)

    def _with_unique(self, name: FieldName, *, unique: bool) -> ClassSchema:
        return self.with_fields({name: replace(self.fields[name], unique=unique)})

    def with_fields(self, fields: Mapping[FieldName, FieldType]) -> ClassSchema:
        """Return the schema with more fields, or others of the same name."""
        return replace(self, fields={**self.fields, **fields})

    def adopted_by(self, write_names: Collection[FieldName]) -> frozenset[FieldName]:
        """Return the client-made fields that become the owner's by a write to these fields."""
        if not self.client_fields:
            return _NO_NAMES
        return self.client_fields.intersection(write_names)

    def to_wire(self) -> dict[str, Json]:
        """What ``/schemas`` shows."""
        fields: dict[str, Json] = {
            name: type_.to_wire() for name, type_ in {**DEFAULT_FIELDS, **self.fields}.items()
        }
        fields["ACL"] = {"type": "ACL"}
        wire: dict[str, Json] = {
            "className": self.class_name,
            "fields": fields,
            "classLevelPermissions": self.permissions.to_wire(),
        }
        if self.indexes:
            wire["indexes"] = {name: index.to_wire() for name, index in self.indexes.items()}
        return wire

    def definition(self) -> dict[str, Json]:
        """What has to be kept of the schema: all that doesn't follow from the class's name."""
        system_fields = SYSTEM_FIELDS.get(self.class_name, _NO_FIELDS)
        definition: dict[str, Json] = {
            "fields": {
                name: type_.to_wire()
                for name, type_ in self.fields.items()
                if system_fields.get(name) != type_
            }
        }
        if self.permissions != default_permissions(self.class_name):
            definition["classLevelPermissions"] = self.permissions.to_wire()
        if self.indexes:
            definition["indexes"] = {name: index.to_wire() for name, index in self.indexes.items()}
        # jsonb doesn't keep the order of keys.
        orders: dict[str, Json] = {
            name: [field for field, _ in index.fields]
            for name, index in self.indexes.items()
            if len(index.fields) > 1
        }
        if orders:
            definition["indexOrders"] = orders
        if self.client_fields:
            definition["addedByClients"] = [*sorted(self.client_fields)]
        return definition


def empty_schema(class_name: ClassName, openness: Openness = "open") -> ClassSchema:
    """Return the schema of a new class without custom fields.

    A stored definition without permissions means those of ``"open"``, regardless of the current
    setting.
    """
    return ClassSchema(
        class_name,
        SYSTEM_FIELDS.get(class_name, _NO_FIELDS),
        new_class_permissions(class_name, openness),
    )


def from_definition(class_name: ClassName, definition: Mapping[str, Json]) -> ClassSchema:
    """Return the schema of a ``ClassSchema.definition``, whose names are trusted."""
    schema = empty_schema(class_name)
    fields = definition.get("fields")
    if isinstance(fields, dict) and fields:
        schema = schema.with_fields(
            {FieldName(name): _field(wire) for name, wire in fields.items()}
        )
    indexes = definition.get("indexes")
    if isinstance(indexes, dict):
        orders = definition.get("indexOrders")
        orders = orders if isinstance(orders, dict) else {}
        schema = replace(
            schema, indexes={n: _index(n, wire, orders.get(n)) for n, wire in indexes.items()}
        )
    permissions = definition.get("classLevelPermissions")
    if permissions is not None:
        parsed = parse_permissions(
            permissions, schema.user_fields, schema.fields.keys(), default_permissions(class_name)
        )
        schema = replace(schema, permissions=parsed)
    by_clients = definition.get("addedByClients")
    if isinstance(by_clients, list):
        schema = replace(
            schema, client_fields=frozenset(FieldName(str(name)) for name in by_clients)
        )
    return schema


def _field(wire: Json) -> FieldType:
    assert isinstance(wire, dict)
    return FieldType(
        wire["type"],  # type: ignore[arg-type]
        wire.get("targetClass"),  # type: ignore[arg-type]
        wire.get("required") is True,
        wire.get("defaultValue"),
        wire.get("unique") is True,
    )


def _index(name: str, wire: Json, order: Json) -> IndexDeclaration:
    assert isinstance(wire, dict)
    fields = wire.get("fields")
    is_unique = isinstance(fields, dict)
    directions = fields if isinstance(fields, dict) else wire
    if isinstance(order, list) and {*order} == directions.keys():
        directions = {str(field): directions[str(field)] for field in order}
    return IndexDeclaration(name, tuple(directions.items()), is_unique)  # type: ignore[arg-type]


def with_defaults(schema: ClassSchema, obj: Mapping[str, Json]) -> dict[str, Json]:
    """A new object with the default values of the fields that it doesn't set."""
    if not schema.defaults:
        return dict(obj)
    missing: dict[str, Json] = {
        name: copy.deepcopy(value)
        for name, value in schema.defaults.items()
        if obj.get(name) is None
    }
    return {**obj, **missing}


def check_required(schema: ClassSchema, obj: Mapping[str, Json]) -> None:
    """Raise ``ValidationFailed`` if a new object has a required field missing, null or empty."""
    for name in schema.required_fields:
        if obj.get(name) in (None, ""):
            raise ValidationFailed(f"{name} is required")


def check_not_emptied(schema: ClassSchema, emptied: Iterable[FieldName]) -> None:
    """Raise ``ValidationFailed`` if an update empties a required field (see ``Write.emptied``)."""
    for name in emptied:
        if name in schema.required_fields:
            raise ValidationFailed(f"{name} is required")

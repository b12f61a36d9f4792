"""The forms of each class as component schemas: read, created, changed, found, pointed to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from backend.kernel.json_types import Schema
from backend.openapi import Names, ref, schema_of
from objects.access.visible_classes import VisibleClass
from objects.core.names import SYSTEM_CLASSES
from objects.core.schema.definition import FieldType
from objects.views.bodies import ACL_CHANGE, AuthData, Password, SessionToken
from objects.views.openapi import values

_TIME: Schema = {"type": "string", "format": "date-time"}
_TEXT: Schema = {"type": "string"}
_OBJECT_FIELDS: Schema = {"objectId": _TEXT, "createdAt": _TIME, "updatedAt": _TIME}
# An object in the place of a pointer, by `include`.
_INCLUDED: Schema = {"__type": {"const": "Object"}, "className": {"type": "string"}}
# What an account has and no answer shows.
_NEVER_READ = {"_User": frozenset({"password"})}


OWN_USER: Final = "OwnUser"
"""The name of the schema of a user as the user sees it."""


def _of(type_: Any) -> Schema:
    return schema_of(type_, {})


@dataclass(frozen=True, slots=True)
class Forms:
    """The names of the component schemas of one class."""

    read: str
    create: str
    update: str
    results: str
    pointer: str


class ClassSchemas:
    """The component schemas of all classes that a caller may know."""

    def __init__(self, classes: Iterable[VisibleClass], names: Names) -> None:
        self._classes = {definition.name: definition for definition in classes}
        self._names = names
        self.forms: dict[str, Forms] = {}
        """The forms by class. Those of the service's own classes have fixed names."""
        names.take(OWN_USER)
        for is_own in (True, False):
            group = [name for name in self._classes if (name in SYSTEM_CLASSES) is is_own]
            read = {name: names.take(name.lstrip("_")) for name in group}
            self.forms |= {name: self._forms(base) for name, base in read.items()}
        self.schemas: dict[str, Schema] = {}
        for name, definition in self._classes.items():
            self._describe(definition, self.forms[name])
        self._complete()

    def _forms(self, base: str) -> Forms:
        parts = ("Create", "Update", "Results", "Pointer")
        return Forms(base, *(self._names.take(f"{base}{part}") for part in parts))

    def _complete(self) -> None:
        """Add what an account's owner sees and sends, and what a role needs."""
        users = self.forms["_User"]
        credentials = {"password": _of(Password), "email": _TEXT, "authData": _of(AuthData)}
        for name in (users.create, users.update):
            self.schemas[name]["properties"].update(credentials)
        account = self.schemas[users.read]
        own = {
            "email": values.read_form(FieldType("String")),
            "authData": _of(AuthData),
            "sessionToken": _of(SessionToken),
        }
        self.schemas[OWN_USER] = {
            **account,
            "description": "A user as the user sees it.",
            "properties": {**account["properties"], **own},
        }
        if "_Role" in self.forms:
            self.schemas[self.forms["_Role"].create]["required"] = ["name", "ACL"]

    def _describe(self, definition: VisibleClass, forms: Forms) -> None:
        add = self.schemas
        add[forms.read] = {
            "type": "object",
            "properties": {
                **_OBJECT_FIELDS,
                **self.fields(definition),
                "ACL": ref("AccessList"),
                **_INCLUDED,
            },
            "required": [*_OBJECT_FIELDS],
        }
        written = {
            n: field for n, field in definition.fields.items() if n not in definition.computed
        }
        required = [n for n, f in written.items() if f.required and f.default is None]
        created = {name: self._create(field) for name, field in written.items()}
        add[forms.create] = {"type": "object", "properties": {**created, "ACL": ACL_CHANGE}}
        if required:
            add[forms.create]["required"] = required
        changes = {name: self._update(field) for name, field in written.items()}
        add[forms.update] = {"type": "object", "properties": {**changes, "ACL": ACL_CHANGE}}
        add[forms.results] = results_of(ref(forms.read))
        add[forms.pointer] = values.pointer_schema(definition.name)

    def fields(self, definition: VisibleClass) -> Schema:
        """The fields of a class as they are read."""
        unread = _NEVER_READ.get(definition.name, ())
        return {n: self._read(field) for n, field in definition.fields.items() if n not in unread}

    def _target(self, field: FieldType) -> Forms | None:
        """The forms of the class that a pointer leads to, if the caller may know the class."""
        if field.kind != "Pointer" or field.target_class is None:
            return None
        return self.forms.get(field.target_class)

    def _read(self, field: FieldType) -> Schema:
        target = self._target(field)
        if target is None:
            return values.read_form(field)
        return values.read_pointer(target.pointer, target.read)

    def _create(self, field: FieldType) -> Schema:
        target = self._target(field)
        if target is None:
            return values.create_form(field)
        return values.create_pointer(target.pointer, required=field.required)

    def _update(self, field: FieldType) -> Schema:
        target = self._target(field)
        return (
            values.update_form(field) if target is None else values.update_pointer(target.pointer)
        )


def results_of(item: Schema) -> Schema:
    """What a find is answered with."""
    return {
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": item},
            "count": {"type": "integer", "description": "With the parameter `count`."},
        },
        "required": ["results"],
    }

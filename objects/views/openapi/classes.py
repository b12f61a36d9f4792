"""Each class by itself: its forms as component schemas, and its routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from backend.openapi import Names, Operation, answer, body, parameter, ref
from objects.access.visible_classes import VisibleClass
from objects.core.schema.definition import FieldType
from objects.views.openapi import values

Json = dict[str, Any]
Paths = dict[str, dict[str, Operation]]

FIND_PARAMETERS = tuple(
    parameter(name)
    for name in ("where", "limit", "skip", "order", "keys", "excludeKeys", "include", "count")
)
GET_PARAMETERS = tuple(parameter(name) for name in ("keys", "excludeKeys", "include"))

_TIME: Json = {"type": "string", "format": "date-time"}
OBJECT_FIELDS: Json = {"objectId": {"type": "string"}, "createdAt": _TIME, "updatedAt": _TIME}
_ACL = ref("AccessList")
ACL_CHANGE: Json = {"anyOf": [_ACL, {"type": "null"}, ref("DeleteOperator")]}
# Of an object that stands in another one's place, by `include`.
_INCLUDED: Json = {"__type": {"const": "Object"}, "className": {"type": "string"}}
# What an account has and no answer shows.
_NEVER_READ = {"_User": frozenset({"password"})}


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
        self._classes = {one.name: one for one in classes}
        self.own_user = names.take("OwnUser")
        """The name of the schema of a user as the user sees it."""
        read = {name: names.take(name.lstrip("_")) for name in self._classes}
        self.forms = {
            name: Forms(
                base,
                names.take(f"{base}Create"),
                names.take(f"{base}Update"),
                names.take(f"{base}Results"),
                names.take(f"{base}Pointer"),
            )
            for name, base in read.items()
        }
        self.schemas: dict[str, Json] = {}
        for name, one in self._classes.items():
            self._describe(one, self.forms[name])

    def _describe(self, one: VisibleClass, forms: Forms) -> None:
        add = self.schemas
        add[forms.read] = {
            "type": "object",
            "properties": {**OBJECT_FIELDS, **self.fields(one), "ACL": _ACL, **_INCLUDED},
            "required": [*OBJECT_FIELDS],
        }
        written = {n: field for n, field in one.fields.items() if n not in one.computed}
        required = [n for n, f in written.items() if f.required and f.default is None]
        created = {name: self._create(field) for name, field in written.items()}
        add[forms.create] = {"type": "object", "properties": {**created, "ACL": ACL_CHANGE}}
        if required:
            add[forms.create]["required"] = required
        changes = {name: self._update(field) for name, field in written.items()}
        add[forms.update] = {"type": "object", "properties": {**changes, "ACL": ACL_CHANGE}}
        add[forms.results] = results_of(ref(forms.read))
        add[forms.pointer] = values.pointer_schema(one.name)

    def fields(self, one: VisibleClass) -> Json:
        """The fields of a class as they are read."""
        unread = _NEVER_READ.get(one.name, ())
        return {n: self._read(field) for n, field in one.fields.items() if n not in unread}

    def _target(self, field: FieldType) -> Forms | None:
        """The forms of the class that a pointer leads to, if the caller may know the class."""
        if field.kind != "Pointer" or field.target_class is None:
            return None
        return self.forms.get(field.target_class)

    def _read(self, field: FieldType) -> Json:
        target = self._target(field)
        if target is None:
            return values.read_form(field)
        return values.read_pointer(target.pointer, target.read)

    def _create(self, field: FieldType) -> Json:
        target = self._target(field)
        if target is None:
            return values.create_form(field)
        return values.create_pointer(target.pointer, required=field.required)

    def _update(self, field: FieldType) -> Json:
        target = self._target(field)
        return (
            values.update_form(field) if target is None else values.update_pointer(target.pointer)
        )


def results_of(item: Json) -> Json:
    """What a find is answered with."""
    return {
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": item},
            "count": {"type": "integer", "description": "With the parameter `count`."},
        },
        "required": ["results"],
    }


@dataclass(frozen=True, slots=True)
class Words:
    """How the routes of a class are spoken of: verbs of operation ids, and nouns."""

    tag: str
    one: str
    many: str
    ids: Mapping[str, str]


def words_of(class_name: str) -> Words:
    """The words for the routes below ``/classes``."""
    verbs = ("find", "create", "get", "update", "delete")
    ids = {verb: f"{verb}{class_name[:1].upper()}{class_name[1:]}" for verb in verbs}
    tag = "Users" if class_name == "_User" else class_name.lstrip("_")
    return Words(tag, f"an object of {class_name}", f"objects of {class_name}", ids)


CREATED = {"201": answer("The new object.", ref("CreatedAnswer"), Location="Location")}
UPDATED = {"200": answer("It is changed.", ref("UpdatedAnswer"))}
DONE = {"200": answer("It is done.", ref("EmptyAnswer"))}


def routes(path: str, forms: Forms, words: Words, actions: Iterable[str]) -> Paths:
    """The operations of a class that are among ``actions``, at ``path`` and below it."""
    ids, tag = words.ids, words.tag
    every = {
        "find": Operation(
            ids["find"],
            tag,
            f"Find {words.many}",
            {"200": answer("What was found.", ref(forms.results))},
            parameters=FIND_PARAMETERS,
        ),
        "create": Operation(
            ids["create"],
            tag,
            f"Create {words.one}",
            CREATED,
            body=body(ref(forms.create), required=False),
        ),
        "get": Operation(
            ids["get"],
            tag,
            f"Get {words.one}",
            {"200": answer("The object.", ref(forms.read))},
            parameters=GET_PARAMETERS,
        ),
        "update": Operation(
            ids["update"],
            tag,
            f"Change {words.one}",
            UPDATED,
            body=body(ref(forms.update), required=False),
        ),
        "delete": Operation(ids["delete"], tag, f"Delete {words.one}", DONE),
    }
    places = {
        "find": (path, "get"),
        "create": (path, "post"),
        "get": (f"{path}/{{objectId}}", "get"),
        "update": (f"{path}/{{objectId}}", "put"),
        "delete": (f"{path}/{{objectId}}", "delete"),
    }
    found: Paths = {}
    allowed = frozenset(actions)
    for action, (place, method) in places.items():
        if action in allowed:
            found.setdefault(place, {})[method] = every[action]
    return found

"""The routes of each class, made from what the views of objects say of any class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from backend.kernel.json_types import Schema
from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Operation, Part, Paths, Route, ref
from objects.access.visible_classes import VisibleClass, visible_classes
from objects.core.names import SYSTEM_CLASSES
from objects.core.schema.definition import SYSTEM_FIELDS
from objects.views.openapi.classes import ClassSchemas, Forms

_ANY: Final = "/classes/{className}"
_ACTIONS: Final = {
    (False, "get"): "find",
    (False, "post"): "create",
    (True, "get"): "get",
    (True, "put"): "update",
    (True, "delete"): "delete",
}
# The verbs in ids of operations, of classes with routes of their own. Those of other classes are
# the names of the actions, so that the two can't be the same.
_VERBS: Final = {
    "find": "list",
    "create": "add",
    "get": "read",
    "update": "change",
    "delete": "remove",
}


def class_routes(principal: Principal, routes: list[Route]) -> Offer:
    """Describe the routes below ``/classes``, and those that belong to one class."""
    visible = visible_classes(principal)
    fingerprint = tuple((each.name, each.version, each.actions, each.hidden) for each in visible)
    return Offer(fingerprint, lambda names: _part(visible, routes, names))


def _part(visible: list[VisibleClass], routes: list[Route], names: Names) -> Part:
    # The service's own classes first: descriptions refer to their schemas by name.
    described = [*visible, *_accounts(visible)]
    described.sort(key=lambda each: (each.name not in SYSTEM_CLASSES, each.name))
    schemas = ClassSchemas(described, names)
    # The alias below ``/classes`` after the class's own routes.
    routes = sorted(routes, key=lambda route: (route.path.startswith("/classes/"), route.path))
    generic = [route for route in routes if route.path.startswith(_ANY)]
    own: Paths = {}
    other_paths: Paths = {}
    for each in visible:
        fixed = [route for route in routes if route.arguments.get("class_name") == each.name]
        for route in fixed or generic:
            path = route.path.replace("{className}", each.name)
            for method, operation in route.operations.items():
                action = _ACTIONS[path.endswith("/{objectId}"), method]
                if action in each.actions:
                    words = _words(path.removesuffix("/{objectId}"), each.name)
                    changed = _of_class(operation, action, words, schemas.forms[each.name])
                    (other_paths if fixed else own).setdefault(path, {})[method] = changed
    any_class: Paths = {route.path: dict(route.operations) for route in generic}
    return Part({**own, **any_class, **other_paths}, schemas.schemas)


def _accounts(classes: list[VisibleClass]) -> list[VisibleClass]:
    """``_User`` and ``_Session`` as far as everyone knows them, where the caller may do nothing in
    them: the routes for signing in refer to them."""
    names = {each.name for each in classes}
    return [
        VisibleClass(name, 0, SYSTEM_FIELDS[name], frozenset(), frozenset())
        for name in ("_User", "_Session")
        if name not in names
    ]


@dataclass(frozen=True, slots=True)
class _Words:
    """What the routes of a class are called: their tag, ids of operations by action, nouns."""

    tag: str
    ids: Mapping[str, str]
    nouns: Mapping[str, str]


def _words(path: str, class_name: str) -> _Words:
    if path.startswith("/classes/"):
        name = f"{class_name[:1].upper()}{class_name[1:]}"
        nouns = {"an object": f"an object of {class_name}", "objects": f"objects of {class_name}"}
        tag = "Users" if class_name == "_User" else class_name.lstrip("_")
        return _Words(tag, {action: f"{action}{name}" for action in _VERBS}, nouns)
    plural = path.removeprefix("/")
    singular = plural.removesuffix("s")
    article = "an" if singular[0] in "aeio" else "a"
    ids = {
        action: f"{verb}{(plural if action == 'find' else singular).title()}"
        for action, verb in _VERBS.items()
    }
    nouns = {"an object": f"{article} {singular}", "objects": plural}
    return _Words(plural.title(), ids, nouns)


def _of_class(operation: Operation, action: str, words: _Words, forms: Forms) -> Operation:
    """The operation of any class, as one of this class."""
    written = forms.create if action == "create" else forms.update
    own = {"AnyObject": forms.read, "AnyResults": forms.results, "AnyFields": written}
    by_reference = {ref(name)["$ref"]: ref(form) for name, form in own.items()}

    def schema(generic: Schema) -> Schema:
        return by_reference.get(generic.get("$ref", ""), generic)

    verb, _, noun = operation.summary.partition(" ")
    summary = f"{verb} {words.nouns[noun]}" if noun in words.nouns else operation.summary
    return replace(operation.resolved(schema), id=words.ids[action], tag=words.tag, summary=summary)

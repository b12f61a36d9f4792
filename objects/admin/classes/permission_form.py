"""Class-level permissions as a table of actions and people, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from objects.admin.browser.fields import pretty
from objects.admin.values import read_json
from objects.core.access.class_permissions import ACTIONS, ClassPermissions, Rule
from objects.core.schema.definition import ClassSchema

_MEANINGS: Final = {
    "find": "search and list",
    "get": "read one by its id",
    "count": "count",
    "create": "add",
    "update": "change",
    "delete": "delete",
    "addField": "add fields by saving them",
}
_SPARE_GROUPS: Final = 2


@dataclass(frozen=True, slots=True)
class ActionRow:
    """Who may do one action."""

    action: str
    meaning: str
    public: bool
    logged_in: bool
    entities: str
    pointer_fields: str


@dataclass(frozen=True, slots=True)
class PermissionForm:
    """The whole form."""

    actions: list[ActionRow]
    read_user_fields: str
    write_user_fields: str
    protected: list[tuple[str, str]]
    default_acl: str


def from_permissions(permissions: ClassPermissions) -> PermissionForm:
    """The form of what a class has."""
    rows = [_row(action, permissions.rules.get(action, Rule())) for action in ACTIONS]
    protected = [
        (group, _joined(sorted(names))) for group, names in permissions.protected_fields.items()
    ]
    return PermissionForm(
        rows,
        _joined(permissions.read_user_fields),
        _joined(permissions.write_user_fields),
        protected + [("", "")] * _SPARE_GROUPS,
        "" if permissions.default_acl is None else pretty(dict(permissions.default_acl)),
    )


def _row(action: str, rule: Rule) -> ActionRow:
    entities = sorted(rule.entities - {"*"})
    return ActionRow(
        action,
        _MEANINGS[action],
        "*" in rule.entities,
        rule.requires_authentication,
        _joined(entities),
        _joined(rule.pointer_fields),
    )


def from_post(form: Any) -> PermissionForm:
    """The form as it was filled in."""
    rows = [
        ActionRow(
            action,
            _MEANINGS[action],
            f"{action}.public" in form,
            f"{action}.loggedIn" in form,
            form.get(f"{action}.others", ""),
            form.get(f"{action}.pointerFields", ""),
        )
        for action in ACTIONS
    ]
    groups = zip(form.getlist("protected.group"), form.getlist("protected.fields"), strict=False)
    return PermissionForm(
        rows,
        form.get("readUserFields", ""),
        form.get("writeUserFields", ""),
        [*groups],
        form.get("defaultACL", ""),
    )


def to_wire(form: PermissionForm) -> dict[str, Json]:
    """``classLevelPermissions`` that the form means. Raises ``InvalidJSON``."""
    wire: dict[str, Json] = {}
    for row in form.actions:
        rule: dict[str, Json] = dict.fromkeys(_words(row.entities), True)
        if row.public:
            rule["*"] = True
        if row.logged_in:
            rule["requiresAuthentication"] = True
        if _words(row.pointer_fields):
            rule["pointerFields"] = [*_words(row.pointer_fields)]
        wire[row.action] = rule
    for key, text in (
        ("readUserFields", form.read_user_fields),
        ("writeUserFields", form.write_user_fields),
    ):
        if _words(text):
            wire[key] = [*_words(text)]
    wire["protectedFields"] = {
        group.strip(): [*_words(names)] for group, names in form.protected if group.strip()
    }
    if form.default_acl.strip():
        try:
            wire["ACL"] = read_json(form.default_acl)
        except ServiceError as error:
            raise InvalidJSON(f"The access list of new objects: {error.message}") from None
    return wire


def suggestions(schema: ClassSchema) -> list[str]:
    """The fields that may name users."""
    return sorted(schema.user_fields)


def _joined(names: Any) -> str:
    return ", ".join(names)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]

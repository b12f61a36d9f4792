"""What the public may do with classes, and closing it.

Reading and writing are apart: an app may show its objects to the public and take changes from its
users alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from backend.kernel.errors import ServiceError
from backend.kernel.principal import CLIENT, Principal
from objects.access.policy import MASTER_ONLY_CLASSES, check_class
from objects.access.protection import hidden_fields
from objects.core.access.class_permissions import Access, Action, default_permissions
from objects.core.access.personal_fields import looks_personal
from objects.core.names import USER, ClassName, FieldName
from objects.database import maintenance
from objects.definitions import registry
from objects.rules import rules_of
from objects.service.classes import check_may_manage, existing
from objects.sql.tables import ClassTable

# An "emailVerified" that is true says nothing of a person; a pointer leads to another class.
_TELLING: Final = frozenset({"String", "Number", "Date", "Object", "Array", "Bytes"})


@dataclass(frozen=True, slots=True)
class OpenClass:
    """A class whose objects the public may write, and how: create, update, delete."""

    class_name: ClassName
    actions: tuple[Action, ...]


def open_classes() -> list[OpenClass]:
    """Return the classes whose objects everybody may write, by name.

    Classes that the service itself guards (users, sessions, installations) are listed only where
    their permissions were opened further than they are by default.
    """
    tables = registry.all_classes()
    return [
        OpenClass(table.class_name, actions)
        for table in tables
        if (actions := public_actions(table, "write"))
    ]


def public_actions(table: ClassTable, access: Access) -> tuple[Action, ...]:
    """Return the actions of an access that are open to the public.

    Writes of classes that the service guards by rules (sign-ups are open, for example) count only
    where their permissions were opened further than they are by default.
    """
    if table.class_name in MASTER_ONLY_CLASSES:
        return ()
    actions = table.schema.permissions.public_actions(access)
    if access == "read":
        return tuple(action for action in actions if _is_readable(table, action))
    if actions and rules_of(table.class_name) is not None:
        guarded = default_permissions(table.class_name).public_actions(access)
        actions = tuple(action for action in actions if action not in guarded)
    return actions


def _is_readable(table: ClassTable, action: Action) -> bool:
    """Whether a caller without a login may read objects by this action."""
    try:
        check_class(CLIENT, table, action)
    except ServiceError:  # sessions and installations have rules of their own
        return False
    return True


@dataclass(frozen=True, slots=True)
class ExposedFields:
    """Fields of a class that look personal, and that the public reads."""

    class_name: ClassName
    fields: tuple[FieldName, ...]


def exposed_fields() -> list[ExposedFields]:
    """Return the fields that look personal in classes that everybody reads, by class."""
    return [
        ExposedFields(table.class_name, fields)
        for table in registry.all_classes()
        if (fields := _exposed(table))
    ]


def _exposed(table: ClassTable) -> tuple[FieldName, ...]:
    # By "get" alone, one has to know an object's id.
    if "find" not in public_actions(table, "read"):
        return ()
    hidden = hidden_fields(CLIENT, table)
    if table.class_name == USER:
        hidden |= {FieldName("password")}  # it is set, and never shown
    return tuple(
        name
        for name, field in table.schema.fields.items()
        if field.kind in _TELLING and name not in hidden and looks_personal(name)
    )


@maintenance.reported_first
def close_to_public(
    principal: Principal, class_name: ClassName, access: Access = "write", *, to_users: bool
) -> tuple[Action, ...]:
    """Let the public no longer read, or write, a class; logged-in users still with ``to_users``.

    Returns what the public might do until now. Roles, users and pointer fields in the permissions
    keep their rights, and so does the other access. Raises ``InvalidClassName`` if there is no such
    class.
    """
    check_may_manage(principal, "update")
    with maintenance.writing():
        table = existing(registry.lock(class_name), class_name)
        before = table.schema.permissions
        after = before.closed_to_public(access, to_users=to_users)
        if after != before:
            registry.save(table, replace(table.schema, permissions=after))
    return before.public_actions(access)

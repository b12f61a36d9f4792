"""The classes that a caller may see.

A class is visible to callers who may do something in it, a field to callers who may read it in
every object. The caller must not learn whether a class exists that isn't visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.kernel.errors import ServiceError, ServiceUnavailable, Timeout
from backend.kernel.principal import Principal
from objects.access.policy import check_class
from objects.access.protection import fields_hidden_somewhere
from objects.core.access.class_permissions import ACTIONS, Action
from objects.core.names import FieldName
from objects.core.query.tree import Nothing
from objects.core.schema.definition import FieldType
from objects.definitions import registry
from objects.sql.tables import ClassTable


@dataclass(frozen=True, slots=True)
class VisibleClass:
    """A class as one caller may know it. ``version`` is new whenever the class has changed."""

    name: str
    version: int
    fields: Mapping[FieldName, FieldType]
    actions: frozenset[Action]
    hidden: frozenset[FieldName]
    computed: frozenset[FieldName] = frozenset()  # and never written


def visible_classes(principal: Principal) -> list[VisibleClass]:
    """Return the classes visible to the caller, by name; all classes for a master key."""
    visible = []
    for table in registry.all_classes():
        actions = frozenset(ACTIONS) if principal.is_master else _actions(principal, table)
        if actions - {"addField"}:
            hidden = fields_hidden_somewhere(principal, table)
            fields = table.schema.fields
            if hidden:
                fields = {name: field for name, field in fields.items() if name not in hidden}
            visible.append(
                VisibleClass(
                    table.class_name, table.version, fields, actions, hidden, table.computed
                )
            )
    return visible


def _actions(principal: Principal, table: ClassTable) -> frozenset[Action]:
    return frozenset(action for action in ACTIONS if _may(principal, table, action))


def _may(principal: Principal, table: ClassTable, action: Action) -> bool:
    try:
        condition = check_class(principal, table, action, creating=action == "addField")
    except (Timeout, ServiceUnavailable):
        raise
    except ServiceError:
        return False
    return not isinstance(condition, Nothing)

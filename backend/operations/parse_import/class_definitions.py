"""Classes of the Parse Server, made in this instance: indexes after their objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from backend.kernel.errors import InvalidClassName
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import MASTER
from backend.operations.parse_import.formats.definitions import AUDIENCES, ClassDefinition
from backend.operations.parse_import.problems import Report, is_accepted
from objects.core.names import ClassName, check_class_name
from objects.core.schema.definition import SYSTEM_FIELDS
from objects.service import classes

PEOPLE: Final = ("_User", "_Role", "_Session", "_Installation")
"""Classes of people in the order in which they are imported: sessions belong to users."""
IMPORTED_SYSTEM_CLASSES: Final = frozenset({*PEOPLE, AUDIENCES, "_Product"})
"""The other classes of Parse itself are its own records of work: pushes sent, jobs run."""
_CLOSED: Final[Wire] = {
    action: {} for action in ("find", "get", "count", "create", "update", "delete", "addField")
}


def imported(definitions: list[ClassDefinition]) -> list[ClassDefinition]:
    """Return the classes to import, people first."""
    chosen = [
        definition
        for definition in definitions
        if not definition.name.startswith("_") or definition.name in IMPORTED_SYSTEM_CLASSES
    ]
    ranks = {name: rank for rank, name in enumerate(PEOPLE)}
    return sorted(
        chosen,
        key=lambda definition: (ranks.get(definition.name, len(PEOPLE)), definition.name),
    )


def define(definition: ClassDefinition, report: Report) -> ClassName | None:
    """Create the class, or add what it lacks; return its name, or None if that can't be done.

    Permissions that this service doesn't accept are reported, and the class is closed to clients.
    Raises the errors in ``NOT_ABOUT_THE_OBJECT``.
    """
    if not is_accepted(partial(_create_or_extend, definition), report, definition.name):
        return None
    class_name = check_class_name(definition.name)
    if definition.permissions is not None:
        _set_permissions(class_name, definition.permissions, report)
    return class_name


def _create_or_extend(definition: ClassDefinition) -> None:
    class_name = check_class_name(definition.name)
    current = _current(class_name)
    fields: dict[str, Json] = {
        name: field.wire()
        for name, field in definition.fields.items()
        if name not in (SYSTEM_FIELDS.get(class_name, {}) if current is None else current)
    }
    if current is None:
        classes.create(MASTER, class_name, {"className": class_name, "fields": fields})
    elif fields:
        classes.change(MASTER, class_name, {"className": class_name, "fields": fields})


def _current(class_name: ClassName) -> Wire | None:
    try:
        fields = classes.schema(MASTER, class_name)["fields"]
    except InvalidClassName:
        return None
    assert isinstance(fields, dict)
    return fields


def _set_permissions(class_name: ClassName, permissions: Mapping[str, Any], report: Report) -> None:
    def change(permissions: Wire) -> None:
        body: Wire = {"className": class_name, "classLevelPermissions": permissions}
        classes.change(MASTER, class_name, body)

    place, consequence = f"{class_name}, permissions", "The class is closed to clients."
    if not is_accepted(partial(change, dict(permissions)), report, place, consequence):
        change(_CLOSED)


def build_indexes(class_name: ClassName, definition: ClassDefinition, report: Report) -> int:
    """Build the indexes that the class lacks, one after the other; return how many were built.

    Raises the errors in ``NOT_ABOUT_THE_OBJECT``.
    """
    existing = classes.schema(MASTER, class_name).get("indexes") or {}
    assert isinstance(existing, dict)
    built = 0
    for name, fields in definition.indexes.items():
        if name in existing:
            continue
        body: Wire = {"className": class_name, "indexes": {name: fields}}
        change = partial(classes.change, MASTER, class_name, body)
        built += is_accepted(change, report, f"{class_name}, index {name}")
    return built

"""Plain writes: what a class's schema and permissions make of a parsed write, and its statement.

No rules and no triggers are called here. ``update_matching`` is repeated if the class has changed;
nothing else is attempted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from backend.kernel.errors import IncorrectType, InvalidKeyName, ObjectNotFound
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from objects.access.policy import check_class, check_missing_class, writable
from objects.access.scope import Scope
from objects.access.write_visibility import Visibility
from objects.core.access.acl import Acl, default_acl
from objects.core.names import (
    ClassName,
    FieldName,
    ObjectId,
    field_of,
    is_object_id,
    new_object_id,
)
from objects.core.query.tree import Everything, Query, all_of
from objects.core.schema.definition import (
    ClassSchema,
    FieldType,
    check_not_emptied,
    check_required,
    with_defaults,
)
from objects.core.update.operations import Write, apply, echo, fit
from objects.core.update.parser import parse_write
from objects.definitions import registry
from objects.service.class_growth import (
    add_fields,
    check_may_create_class,
    create_class,
    owned_fields,
)
from objects.service.stale_definitions import with_current_classes
from objects.sql.tables import ClassTable
from objects.storage import updates, writes

_NO_FIELDS: frozenset[FieldName] = frozenset()
_ALL = Everything()


@dataclass(frozen=True, slots=True)
class Created:
    """A new object: its id, its time, and the fields that the service has computed for it."""

    object_id: ObjectId
    created_at: str
    fields: dict[str, Json] = field(default_factory=dict)
    is_new: bool = True
    """Not so if the rules of the class chose to change an object that was there."""


@dataclass(frozen=True, slots=True)
class Updated:
    """A changed object: the time of the change, and the results of update operators."""

    updated_at: str
    fields: dict[str, Json] = field(default_factory=dict)


class NotTogether(Exception):
    """Objects that one statement can't store."""


def check_may_create(principal: Principal, class_name: ClassName) -> None:
    """Raise what keeps the caller from creating objects of the class, or the class itself."""
    table = registry.find(class_name)
    if table is None:
        check_may_create_class(principal, class_name)
    else:
        check_class(principal, table, "create")


def create(
    principal: Principal,
    class_name: ClassName,
    write: Write,
    object_id: ObjectId,
    trusted: frozenset[FieldName] = _NO_FIELDS,
    *,
    is_last: bool = False,
) -> Created:
    """Store a new object. Fields in ``trusted`` may be new to the class for every caller.

    ``is_last`` says that nothing follows in the outermost transaction.
    """
    table = registry.find(class_name)
    if table is None:
        check_may_create_class(principal, class_name)
        with transaction.atomic():
            create_class(class_name)
            return create(principal, class_name, write, object_id, trusted)
    check_class(principal, table, "create")
    try:
        fitted, new_fields = _fitted(table, write)
    except IncorrectType:
        # Whether the caller may add fields is decided first.
        names = {field_of(key) for key in write.operations}
        if names - table.schema.fields.keys() - trusted:
            check_class(principal, table, "addField", creating=True)
        raise
    if new_fields or _adopts(principal, table, fitted, trusted):
        if new_fields.keys() - trusted:
            check_class(principal, table, "addField", creating=True)
        with transaction.atomic():
            table, fitted, added = add_fields(principal, class_name, write, trusted)
            check_class(principal, table, "create")
            if added:
                check_class(principal, table, "addField", creating=True)
            return _insert(principal, table, fitted, object_id)
    return _insert(principal, table, fitted, object_id, is_last=is_last)


def _fitted(table: ClassTable, write: Write) -> tuple[Write, dict[FieldName, FieldType]]:
    """As ``fit``. Raises ``InvalidKeyName`` for a field that is computed."""
    for name in table.computed:
        if any(key.partition(".")[0] == name for key in write.operations):
            raise InvalidKeyName(f"{name} is computed when it is read, and can't be set.")
    return fit(write, table.schema)


def _adopts(
    principal: Principal, table: ClassTable, write: Write, trusted: frozenset[FieldName]
) -> bool:
    """Return whether the write makes client-made fields the owner's."""
    return bool(table.schema.client_fields) and bool(
        table.schema.adopted_by(owned_fields(principal, write, trusted))
    )


@dataclass(frozen=True, slots=True)
class _New:
    """An object that is ready to be stored, and what the answer will show of it."""

    object_id: ObjectId
    fields: dict[str, Json]
    acl: Acl
    shown: dict[str, Json]


def complete(
    principal: Principal, schema: ClassSchema, write: Write
) -> tuple[dict[str, Json], dict[str, Json], Acl]:
    """What a fitted write sets in a new object, all fields of that, and its access list.

    Raises ``ValidationFailed`` if a required field is missing.
    """
    set_fields = apply(write, {})
    set_fields.pop("ACL", None)
    fields = with_defaults(schema, set_fields)
    check_required(schema, fields)
    acl = write.acl
    if acl is None:
        acl = default_acl(schema.permissions, principal.user_id)
    return set_fields, fields, acl


def _new_object(principal: Principal, table: ClassTable, write: Write, object_id: ObjectId) -> _New:
    set_fields, fields, acl = complete(principal, table.schema, write)
    defaults = {name: value for name, value in fields.items() if set_fields.get(name) is not value}
    results = {**echo(write, fields), **defaults}
    if results:
        visibility = Visibility(principal, table, new_id=object_id)
        stored: dict[str, Json] = {**fields, "objectId": object_id, "ACL": acl.to_wire()}
        is_readable = visibility.is_readable(stored)
        results = visibility.without_protected(results) if is_readable else {}
    return _New(object_id, fields, acl, results)


def _insert(
    principal: Principal,
    table: ClassTable,
    write: Write,
    object_id: ObjectId,
    *,
    is_last: bool = False,
) -> Created:
    new = _new_object(principal, table, write, object_id)
    created_at = writes.create(
        table,
        object_id,
        new.fields,
        new.acl,
        write.relations,
        times=write.times,
        is_limited=not principal.is_master,
        is_last=is_last,
    )
    return Created(object_id, created_at, new.shown)


def create_together(
    principal: Principal, class_name: ClassName, together: Sequence[Write]
) -> list[Created]:
    """Store new objects by one statement. Raises ``NotTogether`` if that can't be done."""
    table = registry.find(class_name)
    if table is None:
        raise NotTogether
    check_class(principal, table, "create")
    new = []
    for write in together:
        fitted, new_fields = _fitted(table, write)
        if new_fields or fitted.relations or _adopts(principal, table, fitted, _NO_FIELDS):
            raise NotTogether
        new.append(_new_object(principal, table, fitted, new_object_id()))
    created_at = writes.create_many(
        table,
        [(obj.object_id, obj.fields, obj.acl) for obj in new],
        is_limited=not principal.is_master,
    )
    return [Created(obj.object_id, created_at, obj.shown) for obj in new]


def update(
    principal: Principal,
    class_name: ClassName,
    object_id: ObjectId,
    write: Write,
    trusted: frozenset[FieldName] = _NO_FIELDS,
    where: Query = _ALL,
) -> Updated:
    """Change an object if it satisfies a condition.

    Fields in ``trusted`` may be new to the class for every caller.
    """
    table = table_for_writing(principal, class_name, object_id)
    condition = all_of(writable(principal, table, "update", object_id), where)
    fitted, new_fields = _fitted(table, write)
    if new_fields or _adopts(principal, table, fitted, trusted):
        if new_fields.keys() - trusted:
            check_class(principal, table, "addField")
        with transaction.atomic():
            table, fitted, added = add_fields(principal, class_name, write, trusted)
            condition = all_of(writable(principal, table, "update", object_id), where)
            if added:
                condition = all_of(condition, check_class(principal, table, "addField"))
            return _change(principal, table, object_id, fitted, condition)
    return _change(principal, table, object_id, fitted, condition)


def update_matching(
    principal: Principal,
    class_name: ClassName,
    object_id: ObjectId,
    body: Mapping[str, Json],
    where: Query = _ALL,
) -> Updated:
    """Change an object if it satisfies a condition, without its class's rules and triggers.

    Raises ``ObjectNotFound`` if it doesn't satisfy it, and what ``service.update`` raises.
    """
    write = parse_write(dict(body), creating=False)
    return with_current_classes(
        lambda: update(principal, class_name, object_id, write, where=where)
    )


def _change(
    principal: Principal, table: ClassTable, object_id: ObjectId, write: Write, condition: Query
) -> Updated:
    check_not_emptied(table.schema, write.emptied)
    visibility = Visibility(principal, table)
    written = updates.update(table, object_id, write, condition, Scope(principal), visibility)
    if written is None:
        raise ObjectNotFound
    return Updated(written.timestamp, visibility.without_protected(written.results))


def delete(principal: Principal, class_name: ClassName, object_id: ObjectId) -> None:
    """Remove an object."""
    table = table_for_writing(principal, class_name, object_id)
    condition = writable(principal, table, "delete", object_id)
    if not writes.delete(table, object_id, condition, Scope(principal)):
        raise ObjectNotFound


def table_for_writing(
    principal: Principal, class_name: ClassName, object_id: ObjectId
) -> ClassTable:
    """Return the class of an object that is to be changed. Raises ``ObjectNotFound``."""
    table = registry.find(class_name)
    if table is None:
        check_missing_class(principal, class_name)
        raise ObjectNotFound
    if not is_object_id(object_id):
        raise ObjectNotFound
    return table

"""The service of classes: their schemas, permissions and indexes, and purging them.

All of it is for the master key; the read-only one may look. In maintenance mode nothing is changed
(``UnderMaintenance``), but an index whose building has begun is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from django.db import transaction

from backend.kernel.errors import (
    InvalidClassName,
    InvalidSchemaOperation,
    MasterKeyRequired,
    OperationForbidden,
    ServiceError,
)
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.changes.interest import is_wanted
from objects.core.names import ClassName, FieldName, check_class_name, invalid_class_name
from objects.core.schema.changes import SchemaChange, change_schema, new_schema
from objects.core.schema.definition import IndexDeclaration
from objects.database import maintenance
from objects.definitions import indexes, registry
from objects.learned import drops, evidence, locks
from objects.rules import rules_of
from objects.sql.tables import ClassTable
from objects.storage import contents

_NEVER_DELETED = frozenset({"_Hooks", "_GlobalConfig", "_GraphQLConfig"})


def all_schemas(principal: Principal) -> list[Wire]:
    """Return the schemas of all classes, by name."""
    check_may_manage(principal)
    return [table.schema.to_wire() for table in registry.all_classes()]


def schema(principal: Principal, class_name: ClassName) -> Wire:
    """Return the schema of a class. Raises ``InvalidClassName`` if there is none."""
    check_may_manage(principal)
    registry.forget(class_name)
    return existing(registry.find(class_name), class_name).schema.to_wire()


@maintenance.reported_first
def create(principal: Principal, class_name: ClassName, body: Json) -> Wire:
    """Make a class. Raises ``InvalidClassName`` (taken or invalid) and the errors of the body."""
    check_may_manage(principal, "create")
    schema = new_schema(
        class_name,
        body,
        service_settings.CLASS_PERMISSIONS_DEFAULT,
        custom_ids=service_settings.ALLOW_CUSTOM_OBJECT_ID,
    )
    with maintenance.writing():
        table = registry.create(schema)
        # The table is empty and no other session sees it yet: the indexes take no time.
        for index in schema.index_declarations.values():
            indexes.build(table, index)
    return table.schema.to_wire()


@maintenance.reported_first
def change(principal: Principal, class_name: ClassName, body: Json) -> Wire:
    """Change fields, permissions or indexes of a class; what isn't named stays.

    A removed field is removed from all objects. New indexes are built without holding up writes;
    if one can't be built (a unique one over values that aren't), its declaration is taken back
    and ``DuplicateValue`` raised, while the rest of the change stays, other indexes included.
    """
    check_may_manage(principal, "update")
    maintenance.check()
    current = existing(registry.current(class_name), class_name)
    with locks.stopped(current):
        return _change(current, body)


def _change(current: ClassTable, body: Json) -> Wire:
    class_name = current.class_name
    with _without_indexes(current, _changed(current, body)), maintenance.writing():
        table = existing(registry.lock(class_name), class_name)
        changed = _changed(table, body)
        _check_not_computed(table, changed)
        if changed.removed_fields:
            _remove_fields(table, changed)
        table = registry.save(table, changed.after)
        if changed.dropped_indexes or changed.added_indexes:
            evidence.forget_recent(table.class_id)
    for index in changed.dropped_indexes:
        indexes.drop(table, index)
    failures: list[ServiceError] = []
    for index in changed.added_indexes:
        try:
            indexes.build(table, index)
        except ServiceError as error:
            _remove_failed_index(class_name, index)
            failures.append(error)
    if failures:
        raise failures[0]
    if changed.added_indexes:
        drops.release_covered(table, changed.added_indexes)
    wire = table.schema.to_wire()
    if isinstance(body, dict) and body.get("indexes") and "indexes" not in wire:
        # SDKs read the indexes of the response also after deleting the last one.
        wire["indexes"] = {"_id_": {"_id": 1}}
    return wire


def _changed(table: ClassTable, body: Json) -> SchemaChange:
    return change_schema(
        table.schema,
        body,
        openness=service_settings.CLASS_PERMISSIONS_DEFAULT,
        custom_ids=service_settings.ALLOW_CUSTOM_OBJECT_ID,
    )


@maintenance.reported_first
def drop_undeclared_indexes(principal: Principal, class_name: ClassName) -> list[str]:
    """Drop the indexes in the database that the class doesn't declare; return their names."""
    check_may_manage(principal, "update")
    with maintenance.writing():
        return indexes.drop_undeclared(existing(registry.lock(class_name), class_name))


@contextmanager
def _without_indexes(table: ClassTable, change: SchemaChange) -> Iterator[None]:
    """Drop the indexes on removed fields before a change; rebuild them if the change fails.

    They would refuse values of another type as soon as clients may write some.
    """
    removed = change.removed_fields
    _check_not_columns(table, removed)
    if removed:
        drops.release_fields(table, removed)
    dropped = [
        index
        for index in change.dropped_indexes
        if any(name in removed for name, _ in index.fields)
    ]
    try:
        for index in dropped:
            indexes.drop(table, index)
        yield
    except BaseException:
        for index in dropped:
            indexes.build(table, index)
        raise


def _check_not_columns(table: ClassTable, removed: Sequence[FieldName]) -> None:
    for name in removed:
        if name in table.columns:
            raise InvalidSchemaOperation(f"Field {name} is a column and can't be deleted.")


def _check_not_computed(table: ClassTable, changed: SchemaChange) -> None:
    for index in changed.added_indexes:
        for name, _ in index.fields:
            if name in table.computed:
                raise InvalidSchemaOperation(
                    f"indexes.{index.name}.{name}: the field is computed when it is read, and can't"
                    " be indexed."
                )


def _remove_failed_index(class_name: ClassName, index: IndexDeclaration) -> None:
    # Completes a change that began before maintenance mode.
    with maintenance.own_records(), transaction.atomic():
        table = registry.lock(class_name)
        if table is None:
            return
        remaining = {
            name: spec for name, spec in table.schema.indexes.items() if name != index.name
        }
        fields = dict(table.schema.fields)
        if index.name not in table.schema.indexes:
            # The index of a field that was declared unique.
            name = index.fields[0][0]
            fields[name] = replace(fields[name], unique=False)
        registry.save(table, replace(table.schema, indexes=remaining, fields=fields))


def _remove_fields(table: ClassTable, changed: SchemaChange) -> None:
    """Delete removed fields from all objects, while writers are locked out."""
    _check_not_columns(table, changed.removed_fields)
    contents.keep_writers_out(table)
    contents.remove_fields(table, changed.removed_fields)


@maintenance.reported_first
def delete(principal: Principal, class_name: ClassName) -> None:
    """Remove an empty class. Raises ``InvalidSchemaOperation`` if it has objects.

    A class that isn't there is no error, as with Parse. Raises ``InvalidClassName`` for classes
    that aren't created like others.
    """
    check_may_manage(principal, "delete")
    if class_name in _NEVER_DELETED:
        raise invalid_class_name(class_name)
    check_class_name(class_name)
    current = registry.find(class_name)
    with locks.stopped(current) if current else nullcontext(), maintenance.writing():
        table = registry.lock(class_name)
        if table is None:
            return
        contents.keep_writers_out(table)
        count = contents.object_count(table)
        if count:
            raise InvalidSchemaOperation(
                f"Class {class_name} is not empty, contains {count} objects, cannot drop schema."
            )
        registry.drop(table)


@maintenance.reported_first
def purge(principal: Principal, class_name: ClassName) -> None:
    """Remove all objects of a class; its schema stays. A class that doesn't exist has none."""
    check_may_manage(principal, "purge")
    current = registry.find(class_name)
    if current is None:
        check_class_name(class_name)
        rules = rules_of(class_name)
        if rules is not None:  # of a class that has no objects of its own
            with maintenance.writing():
                rules.after_purge()
        return
    with locks.stopped(current), maintenance.writing():
        table = existing(registry.lock(class_name), class_name)
        contents.lock_as_writer(table)
        truncates = table.is_partition and not is_wanted(class_name)
        contents.remove_objects(table, truncates=truncates)
        rules = rules_of(class_name)
        if rules is not None:
            rules.after_purge()


def existing(table: ClassTable | None, class_name: ClassName) -> ClassTable:
    if table is None:
        check_class_name(class_name)
        raise InvalidClassName(f"Class {class_name} does not exist.")
    return table


def check_may_manage(principal: Principal, action: str | None = None) -> None:
    """Raise what keeps the caller from reading classes, or from an action on them."""
    if not principal.has_master_key:
        raise MasterKeyRequired
    if action is not None and not principal.may_write_as_master:
        raise OperationForbidden(f"read-only masterKey isn't allowed to {action} a schema.")

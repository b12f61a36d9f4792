"""The service of classes: their schemas, permissions and indexes, and purging them.

All of it is for the master key; the read-only one may look. In maintenance mode nothing is changed
(``UnderMaintenance``), but an index whose building has begun is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Final

from backend.kernel.errors import (
    InvalidClassName,
    InvalidSchemaOperation,
    MasterKeyRequired,
    OperationForbidden,
    ServiceError,
    ServiceUnavailable,
)
from backend.kernel.json_types import Json, Wire
from backend.kernel.principal import Principal
from backend.settings.conf import service_settings
from objects.changes.interest import is_wanted
from objects.core.names import ClassName, check_class_name, invalid_class_name
from objects.core.schema.changes import SchemaChange, change_schema, new_schema
from objects.core.schema.definition import IndexDeclaration
from objects.database import maintenance
from objects.definitions import class_locks, indexes, leftovers, registry
from objects.learned import drops, evidence
from objects.rules import rules_of
from objects.sql.tables import ClassTable
from objects.storage import contents

_TRUNCATE_PATIENCE: Final = 1.0  # seconds
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

    A removed field is removed from all objects. What a class declares holds at every moment: an
    index is dropped in the transaction that takes its declaration away, and declared when it is
    built, which holds up no writes. If one can't be built (a unique one over values that aren't),
    ``DuplicateValue`` is raised, while the rest of the change stays, other indexes included.

    Raises ``ClassInUse`` if others use the class for too long, or build its indexes.
    """
    check_may_manage(principal, "update")
    maintenance.check()
    while True:
        current = existing(registry.current(class_name), class_name)
        planned = _changed(current, body)
        try:
            with class_locks.building(current) if planned.added_indexes else nullcontext():
                return _change(current, planned, body)
        except _OtherIndexes:
            continue


class _OtherIndexes(Exception):
    """A class has other indexes by now than those for which a change was planned."""


def _change(current: ClassTable, planned: SchemaChange, body: Json) -> Wire:
    class_name = current.class_name
    if planned.removed_fields:
        contents.remove_fields_of_many(current, planned.removed_fields)

    def store(locked: ClassTable | None) -> tuple[ClassTable, SchemaChange]:
        table = existing(locked, class_name)
        changed = _changed(table, body)
        is_building = bool(planned.added_indexes)
        if table.class_id != current.class_id or (changed.added_indexes and not is_building):
            raise _OtherIndexes
        return _store(table, changed), changed

    table, changed = class_locks.alter(class_name, store)
    failures: list[ServiceError] = []
    for index in changed.added_indexes:
        try:
            table = _add_index(table, index)
        except ServiceError as error:
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


def _store(table: ClassTable, changed: SchemaChange) -> ClassTable:
    """Store the change of a locked class, all but the indexes to build."""
    removed = changed.removed_fields
    superfluous = drops.release_fields(table, removed) if removed else []
    if superfluous or changed.dropped_indexes:
        class_locks.lock_table(table, "ACCESS EXCLUSIVE")
    elif removed:
        class_locks.lock_table(table, "SHARE ROW EXCLUSIVE")
    if removed:
        # Writers wait for the lock before they look at the class's version, so they find the new
        # one.
        contents.remove_fields(table, removed)
        table = existing(registry.lock(table.class_name), table.class_name)
    table = registry.save(table, changed.without_added_indexes)
    if removed or changed.dropped_indexes:
        indexes.drop(table, [*superfluous, *indexes.undeclared(table)])
    if changed.dropped_indexes or changed.added_indexes:
        evidence.forget_recent(table.class_id)
    return table


def _add_index(table: ClassTable, index: IndexDeclaration) -> ClassTable:
    """Build an index of a class that is ``building``, then declare it."""
    # Completes a change that began before maintenance mode.
    with maintenance.own_records():
        try:
            indexes.build(table, index)
            return class_locks.alter(table.class_name, partial(_declare, table, index))
        except BaseException:
            with suppress(ServiceError):
                leftovers.drop_undeclared(table.class_name)
            raise


def _declare(table: ClassTable, index: IndexDeclaration, current: ClassTable | None) -> ClassTable:
    if current is None or current.class_id != table.class_id:
        raise InvalidClassName(f"Class {table.class_name} does not exist.")
    # The lock of who builds ends with its connection.
    class_locks.lock_indexes(current)
    if not indexes.is_built(current, index):
        raise ServiceUnavailable(f"The index {index.name} was dropped meanwhile. Try again.")
    return registry.save(current, current.schema.with_index(index))


def _changed(table: ClassTable, body: Json) -> SchemaChange:
    changed = change_schema(
        table.schema,
        body,
        openness=service_settings.CLASS_PERMISSIONS_DEFAULT,
        custom_ids=service_settings.ALLOW_CUSTOM_OBJECT_ID,
    )
    for name in changed.removed_fields:
        if name in table.columns:
            raise InvalidSchemaOperation(f"Field {name} is a column and can't be deleted.")
    for index in changed.added_indexes:
        for name, _ in index.fields:
            if name in table.computed:
                raise InvalidSchemaOperation(
                    f"indexes.{index.name}.{name}: the field is computed when it is read, and can't"
                    " be indexed."
                )
    return changed


def repair_indexes(
    principal: Principal, class_name: ClassName
) -> Iterator[tuple[IndexDeclaration, ServiceError | None]]:
    """Build the declared indexes of a class that are missing, and yield each with its failure."""
    check_may_manage(principal, "update")
    table = existing(registry.current(class_name), class_name)
    for index in indexes.missing(table):
        try:
            with class_locks.building(table):
                indexes.build(table, index)
        except ServiceError as error:
            yield index, error
        else:
            yield index, None


@maintenance.reported_first
def drop_undeclared_indexes(principal: Principal, class_name: ClassName) -> list[str]:
    """Drop the indexes in the database that the class doesn't declare; return their names."""
    check_may_manage(principal, "update")
    return leftovers.drop_undeclared(class_name)


@maintenance.reported_first
def delete(principal: Principal, class_name: ClassName) -> None:
    """Remove an empty class. Raises ``InvalidSchemaOperation`` if it has objects.

    A class that isn't there is no error, as with Parse. Raises ``InvalidClassName`` for classes
    that aren't created like others, and ``ClassInUse`` if writers use it for too long.
    """
    check_may_manage(principal, "delete")
    if class_name in _NEVER_DELETED:
        raise invalid_class_name(class_name)
    check_class_name(class_name)
    table = registry.current(class_name)
    if table is not None:
        _check_empty(table)  # before writers are locked out, since counting takes time
    class_locks.alter(class_name, _delete)
    leftovers.drop_tables()


def _delete(table: ClassTable | None) -> None:
    if table is None:
        return
    class_locks.lock_table(table, "SHARE ROW EXCLUSIVE")
    _check_empty(table)
    registry.drop(table)


def _check_empty(table: ClassTable) -> None:
    count = contents.object_count(table)
    if count:
        raise InvalidSchemaOperation(
            f"Class {table.class_name} is not empty, contains {count} objects, cannot drop schema."
        )


@maintenance.reported_first
def purge(principal: Principal, class_name: ClassName) -> None:
    """Remove all objects of a class; its schema stays. A class that doesn't exist has none.

    A table that nobody is using is truncated. Otherwise its objects are removed one by one, which
    waits for writers of these objects alone. Raises ``ClassInUse`` if they take too long.
    """
    check_may_manage(principal, "purge")
    current = registry.current(class_name)
    if current is None:
        check_class_name(class_name)
        rules = rules_of(class_name)
        if rules is not None:  # of a class that has no objects of its own
            with maintenance.writing():
                rules.after_purge()
        return
    is_truncated = False
    if current.is_partition:
        with suppress(class_locks.ClassInUse):
            is_truncated = class_locks.alter(
                class_name, partial(_truncate, class_name), patience=_TRUNCATE_PATIENCE
            )
    if not is_truncated:
        if rules_of(class_name) is None:  # they may refuse it
            contents.remove_many_objects(current)
        class_locks.alter(class_name, partial(_remove_objects, class_name))


def _truncate(class_name: ClassName, current: ClassTable | None) -> bool:
    """Empty the table of a class at once; return whether that was possible."""
    table = existing(current, class_name)
    if is_wanted(class_name):
        return False
    class_locks.lock_table(table, "ACCESS EXCLUSIVE")
    if is_wanted(class_name):  # by a reader that doesn't wait for this transaction
        return False
    contents.remove_objects(table, truncates=True)
    _after_purge(class_name)
    return True


def _remove_objects(class_name: ClassName, current: ClassTable | None) -> None:
    contents.remove_objects(existing(current, class_name), truncates=False)
    _after_purge(class_name)


def _after_purge(class_name: ClassName) -> None:
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

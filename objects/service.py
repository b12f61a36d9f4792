"""The door: everything that one can do to objects.

REST, batch, functions, LiveQuery, the admin and jobs come through here and nowhere else, so that
each rule holds for all of them. The order inside is fixed: access (class-level permissions,
pointer permissions, protected fields, ACL), schema, store in one transaction. Callers get plain
values and ``ServiceError``; they never see SQL, and needn't think of permissions.

Classes themselves (schemas, purge) are in ``objects.classes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import transaction
from psycopg.errors import UndefinedTable

from backend.conf import service_settings
from backend.errors import MasterKeyRequired, ObjectNotFound, ServiceError, TransactionConflict
from backend.principal import Principal
from objects import registry, store, writes
from objects.core.access import default_acl
from objects.core.names import check_class_name, check_object_id, is_object_id, new_object_id
from objects.core.operations import Write, apply, fit
from objects.core.pipeline import Aggregation
from objects.core.query import (
    Everything,
    Exists,
    FindOptions,
    OrderKey,
    Query,
    all_of,
    near_of,
)
from objects.core.schema import (
    check_not_emptied,
    check_required,
    empty_schema,
    with_defaults,
)
from objects.core.values import Json
from objects.core.write_parsing import parse_write
from objects.includes import Wire, expand, project, visible
from objects.pipeline_sql import compile_aggregation
from objects.policy import (
    Scope,
    check_class,
    check_missing_class,
    check_question,
    hidden_fields,
    hides_by_object,
    missing_class,
    readable,
    writable,
)
from objects.records import Record
from objects.tables import ClassTable
from objects.writes import Written

_T = TypeVar("_T")

# A class changes rarely; one that changes under this many attempts in a row is under repair.
_ATTEMPTS = 10

EVERYTHING = FindOptions(where=Everything(), limit=1)


@dataclass(frozen=True, slots=True)
class Found:
    """What a query found: whole records where nothing had to be looked at, else wire objects.

    ``class_name`` is set when the objects are of another class than the one asked
    (``redirectClassNameForKey``).
    """

    results: list[Record] | list[Wire]
    count: int | None = None
    class_name: str | None = None

    def objects(self) -> list[Wire]:
        """The results as wire objects, whatever they are."""
        return [item.object() if isinstance(item, Record) else item for item in self.results]


@dataclass(frozen=True, slots=True)
class Created:
    """A new object: its id, its time, and the fields that the service has computed for it."""

    object_id: str
    created_at: str
    fields: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Updated:
    """A changed object: the time of the change, and the results of update operators."""

    updated_at: str
    fields: dict[str, Json] = field(default_factory=dict)


# -- Reading --------------------------------------------------------------------------------------


def find(principal: Principal, class_name: str, options: FindOptions) -> Found:
    """The objects of a class that satisfy a query and that the caller may read.

    Raises ``OperationForbidden`` (class-level permissions, protected fields, a class that isn't
    there), ``InvalidQuery`` and the like for what the query can't mean. For the master key a class
    that isn't there is an empty one.
    """
    return _with_current_classes(lambda: _find(principal, class_name, options))


def _find(principal: Principal, class_name: str, options: FindOptions) -> Found:
    table = _table_for_reading(principal, class_name)
    if table is None:
        return Found([], 0 if options.count else None)
    redirected = None
    if options.redirect_key is not None:
        target = table.schema.fields.get(options.redirect_key)
        if target is not None and target.kind == "Relation" and target.target_class:
            # The field's own class is asked about as well: it tells where the field leads.
            check_class(principal, table, "find")
            check_question(principal, table, Exists((options.redirect_key,), True))
            redirected = target.target_class
            table = _table_for_reading(principal, redirected)
            if table is None:
                return Found([], 0 if options.count else None, redirected)
    check_question(principal, table, options.where, options.order)
    count = _count(principal, table, options.where) if options.count else None
    condition = readable(principal, table, "find")
    if options.limit == 0:
        return Found([], count, redirected)
    records = store.find(
        table,
        all_of(options.where, condition),
        Scope(principal),
        order=_order(options),
        limit=options.limit,
        skip=options.skip,
    )
    return Found(_shaped(principal, table, records, options), count, redirected)


_BY_AGE = (OrderKey(("createdAt",)),)


def _order(options: FindOptions) -> tuple[OrderKey, ...]:
    """The order asked for, by distance for a search around a point, else by age."""
    if options.order or near_of(options.where) is not None:
        return options.order
    return _BY_AGE


def get(
    principal: Principal, class_name: str, object_id: str, options: FindOptions = EVERYTHING
) -> Record | Wire:
    """One object. Of ``options`` only ``keys``, ``excludeKeys`` and ``include`` count.

    Raises ``ObjectNotFound`` also when the caller may not read it.
    """
    return _with_current_classes(lambda: _get(principal, class_name, object_id, options))


def _get(
    principal: Principal, class_name: str, object_id: str, options: FindOptions
) -> Record | Wire:
    table = _table_for_reading(principal, class_name)
    if table is None:
        raise ObjectNotFound
    condition = readable(principal, table, "get")
    record = None
    if is_object_id(object_id):
        record = store.get(table, object_id, condition, Scope(principal))
    if record is None:
        raise ObjectNotFound
    return _shaped(principal, table, [record], options)[0]


def count(principal: Principal, class_name: str, where: Query) -> int:
    """How many objects satisfy a query, of those that the caller may read."""

    def counted() -> int:
        table = _table_for_reading(principal, class_name)
        if table is None:
            return 0
        check_question(principal, table, where)
        return _count(principal, table, where)

    return _with_current_classes(counted)


def _count(principal: Principal, table: ClassTable, where: Query) -> int:
    condition = readable(principal, table, "count")
    return store.count(table, all_of(where, condition), Scope(principal))


def aggregate(principal: Principal, class_name: str, aggregation: Aggregation) -> list[str]:
    """The results of a pipeline, or the distinct values of a field, each as JSON text.

    For the master key: a pipeline sees all objects and fields.
    """
    if not principal.is_master:
        raise MasterKeyRequired

    def aggregated() -> list[str]:
        table = _table_for_reading(principal, class_name)
        if table is None:
            return []
        scope = Scope(principal)
        return store.select(table, compile_aggregation(aggregation, table, scope), scope)

    return _with_current_classes(aggregated)


def _table_for_reading(principal: Principal, class_name: str) -> ClassTable | None:
    """The class; None where a class that isn't there reads as an empty one."""
    table = registry.find(class_name)
    if table is None:
        check_missing_class(principal, class_name)
    return table


def _shaped(
    principal: Principal, table: ClassTable, records: list[Record], options: FindOptions
) -> list[Record] | list[Wire]:
    """The records as the caller gets them; untouched if nothing has to be added or left out."""
    includes = options.include or options.include_all
    projects = options.keys is not None or options.exclude_keys
    protects = hidden_fields(principal, table) or hides_by_object(principal, table)
    if not (includes or projects or protects):
        return records
    objects = [visible(principal, table, record.object()) for record in records]
    if includes:
        expand(principal, table, objects, options)
    return [project(obj, options) for obj in objects] if projects else objects


# -- Writing --------------------------------------------------------------------------------------


def create(
    principal: Principal,
    class_name: str,
    body: Mapping[str, Json],
    *,
    object_id: str | None = None,
) -> Created:
    """Store a new object with the fields of ``body``; under ``object_id`` if a command chose one.

    New fields are added to the class, and for the master key (or where clients may) the class
    itself is made. Raises ``OperationForbidden``, ``IncorrectType``, ``ValidationFailed``,
    ``DuplicateValue`` and what ``parse_write`` raises; nothing is stored then.
    """
    fields = dict(body)
    if service_settings.ALLOW_CUSTOM_OBJECT_ID and "objectId" in fields:
        object_id = check_object_id(fields.pop("objectId"))
    elif object_id is not None:
        check_object_id(object_id)
    write = parse_write(fields, creating=True)
    return _with_current_classes(
        lambda: _create(principal, class_name, write, object_id or new_object_id())
    )


def _create(principal: Principal, class_name: str, write: Write, object_id: str) -> Created:
    table = registry.find(class_name)
    if table is None:
        _check_may_create_class(principal, class_name)
        with transaction.atomic():
            _create_class(class_name)
            return _create(principal, class_name, write, object_id)
    check_class(principal, table, "create")
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        check_class(principal, table, "addField", creating=True)
        with transaction.atomic():
            table, fitted = _add_fields(class_name, write)
            return _insert(principal, table, fitted, object_id)
    return _insert(principal, table, fitted, object_id)


def _insert(principal: Principal, table: ClassTable, write: Write, object_id: str) -> Created:
    given = apply(write, {})
    given.pop("ACL", None)
    obj = with_defaults(table.schema, given)
    check_required(table.schema, obj)
    acl = write.acl
    if acl is None:
        acl = default_acl(table.schema.permissions, principal.user_id)
    written = writes.create(table, object_id, obj, acl, write)
    defaults = {name: value for name, value in obj.items() if given.get(name) is not value}
    shown = {**written.echo, **defaults}
    return Created(object_id, written.timestamp, _shown(principal, table, shown))


def update(
    principal: Principal, class_name: str, object_id: str, body: Mapping[str, Json]
) -> Updated:
    """Change the fields that ``body`` names and leave the others.

    Raises ``ObjectNotFound`` also when the caller may not write the object, and otherwise what
    ``create`` raises; nothing is changed then.
    """
    write = parse_write(dict(body), creating=False)
    return _with_current_classes(lambda: _update(principal, class_name, object_id, write))


def _update(principal: Principal, class_name: str, object_id: str, write: Write) -> Updated:
    table = _table_for_writing(principal, class_name, object_id)
    condition = writable(principal, table, "update")
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        condition = all_of(condition, check_class(principal, table, "addField"))
        with transaction.atomic():
            table, fitted = _add_fields(class_name, write)
            return _change(principal, table, object_id, fitted, condition)
    return _change(principal, table, object_id, fitted, condition)


def _change(
    principal: Principal, table: ClassTable, object_id: str, write: Write, condition: Query
) -> Updated:
    check_not_emptied(table.schema, write.emptied)
    written: Written | None = writes.update(table, object_id, write, condition, Scope(principal))
    if written is None:
        raise ObjectNotFound
    return Updated(written.timestamp, _shown(principal, table, written.echo))


def delete(principal: Principal, class_name: str, object_id: str) -> None:
    """Remove an object. Raises ``ObjectNotFound`` also when the caller may not write it."""

    def deleted() -> None:
        table = _table_for_writing(principal, class_name, object_id)
        condition = writable(principal, table, "delete")
        if not writes.delete(table, object_id, condition, Scope(principal)):
            raise ObjectNotFound

    _with_current_classes(deleted)


def _table_for_writing(principal: Principal, class_name: str, object_id: str) -> ClassTable:
    table = registry.find(class_name)
    if table is None:
        check_missing_class(principal, class_name)
        raise ObjectNotFound
    if not is_object_id(object_id):
        raise ObjectNotFound
    return table


def _shown(principal: Principal, table: ClassTable, fields: dict[str, Json]) -> dict[str, Json]:
    """The answer to a write, without what the caller may not see."""
    hidden = hidden_fields(principal, table) if fields else frozenset()
    return {name: value for name, value in fields.items() if name not in hidden}


# -- Classes that grow ----------------------------------------------------------------------------


def _check_may_create_class(principal: Principal, class_name: str) -> None:
    check_class_name(class_name)
    if not (principal.may_write_as_master or service_settings.ALLOW_CLIENT_CLASS_CREATION):
        raise missing_class(class_name)


def _create_class(class_name: str) -> None:
    try:
        registry.create(empty_schema(class_name))
    except ServiceError:
        # Somebody else made it in the meantime.
        raise store.StaleClass((class_name,)) from None


def _add_fields(class_name: str, write: Write) -> tuple[ClassTable, Write]:
    """Add the fields that a write needs to its class, under the class's lock."""
    table = registry.lock(class_name)
    if table is None:
        raise store.StaleClass((class_name,))
    fitted, new_fields = fit(write, table.schema)
    if new_fields:
        table = registry.save(table, table.schema.with_fields(new_fields))
    return table, fitted


def _with_current_classes(action: Callable[[], _T]) -> _T:
    """Run an action; again with fresh definitions if a class has changed in the meantime."""
    missing: UndefinedTable | None = None
    for _ in range(_ATTEMPTS):
        try:
            return action()
        except store.StaleClass as stale:
            for class_name in stale.class_names:
                registry.forget(class_name)
        except UndefinedTable as error:
            # A class in memory that was removed meanwhile, or whose making was rolled back.
            registry.forget_all()
            if transaction.get_connection().in_atomic_block:
                # Nothing more can be done in this transaction; the next one will do.
                raise TransactionConflict("A class has changed; try again.") from error
            missing = error
    raise missing or TransactionConflict("The class is being changed; try again.")

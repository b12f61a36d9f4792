"""Registry of the classes and their tables, by class name.

Definitions are cached in memory. They can't go stale unnoticed, because every statement of
``store`` compares the version that it was made for with the database's; ``forget`` then makes
the next ``find`` read the class again. Versions come from one sequence and are never used twice, so
definitions that a rolled-back transaction left in the cache match nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from django.core.exceptions import ImproperlyConfigured
from django.db import models, transaction
from psycopg import sql
from psycopg.errors import InFailedSqlTransaction, UniqueViolation

from backend.kernel.connections import advisory_locks
from backend.kernel.errors import InvalidClassName
from backend.settings.conf import service_settings
from objects.core.access.class_permissions import ClassPermissions
from objects.core.indexes.shapes import IndexFields
from objects.core.names import (
    ClassName,
    FieldName,
    Subject,
    check_class_name,
    check_field_name,
    is_class_name,
)
from objects.core.schema.definition import ClassSchema, FieldType, empty_schema, from_definition
from objects.database import locks
from objects.definitions import class_rows
from objects.definitions.class_rows import ClassRow
from objects.definitions.models import GENERIC_TABLE, ModelBackedObject
from objects.sql.tables import ClassTable, Column, ColumnType

_COLUMN_TYPES: dict[type[models.Field], ColumnType] = {
    models.BooleanField: "boolean",
    models.DateTimeField: "timestamptz",
    models.JSONField: "jsonb",
    models.DecimalField: "numeric",
    models.IntegerField: "bigint",
    models.CharField: "text",
    models.TextField: "text",
}

_COMPUTED_TYPES: dict[str, ColumnType] = {"String": "text", "Object": "jsonb"}


class Computed(NamedTuple):
    """A field that is computed when it is read; see ``model_class`` and ``tables.Column``."""

    type: FieldType
    sql: str
    one_of: Callable[[frozenset[str]], str | None] | None = None
    values: tuple[str, ...] = ()


_NOTHING_COMPUTED: Mapping[str, Computed] = MappingProxyType({})

_tables: dict[ClassName, ClassTable] = {}


@dataclass(frozen=True)
class ModelClass:
    """A class whose objects are the rows of a Django model."""

    class_name: ClassName
    model: type[ModelBackedObject]
    fields: Mapping[FieldName, FieldType]
    columns: Mapping[FieldName, Column]
    permissions: ClassPermissions | None
    shown_by: str | None = None
    shown_if: str | None = None
    hidden: frozenset[FieldName] = frozenset()


_model_classes: dict[ClassName, ModelClass] = {}


def model_class(
    class_name: ClassName,
    model: type[ModelBackedObject],
    fields: Mapping[str, FieldType] | Mapping[FieldName, FieldType],
    *,
    columns: Mapping[str, str] | None = None,
    permissions: ClassPermissions | None = None,
    shown_by: str | None = None,
    shown_if: str | None = None,
    hidden: Collection[str] = (),
    computed: Mapping[str, Computed] = _NOTHING_COMPUTED,
) -> None:
    """Offer a Django model as a class. Call it in ``AppConfig.ready``.

    ``fields`` are the promoted fields with their types; each is kept in the model field of the
    same name, or of the name that ``columns`` gives it. Other fields that clients save go to
    ``data``. ``permissions`` apply until others are set through ``/schemas``. ``shown_by`` is
    a view of the model's table, one that PostgreSQL can update, if not all rows are objects, and
    ``shown_if`` the boolean column that the view shows a row by. Only the master key sees the
    fields in ``hidden``, regardless of permissions. ``computed`` are read-only fields:
    their types (a String, or an Object) and the SQL of their values, in which ``{row}.`` stands
    before a column of the table, and conditions on them that indexes serve. Live queries see their
    values as of the moment of sending, and send nothing when they change. Raises
    ``ImproperlyConfigured`` for a class that is registered already, for a view without its column,
    and for a model field that can't hold a promoted field, by its type or its collation, and
    ``InvalidKeyName`` for a name that no field may have.
    """
    if (shown_by is None) != (shown_if is None):
        raise ImproperlyConfigured(
            f"The class {class_name} needs both, shown_by and shown_if, or neither."
        )
    if class_name in _model_classes:
        other = _model_classes[class_name].model
        raise ImproperlyConfigured(
            f"The class {class_name} is offered by two models: {other.__module__}.{other.__name__}"
            f" and {model.__module__}.{model.__name__}."
        )
    checked = {check_field_name(name): type_ for name, type_ in fields.items()}
    names = {name: (columns or {}).get(name, name) for name in checked}
    computed_fields = {check_field_name(name): field for name, field in computed.items()}
    _model_classes[class_name] = ModelClass(
        class_name,
        model,
        checked | {name: field.type for name, field in computed_fields.items()},
        {name: _column(model, attribute) for name, attribute in names.items()}
        | {name: _computed(name, field) for name, field in computed_fields.items()},
        permissions,
        shown_by,
        shown_if,
        frozenset(map(check_field_name, hidden)),
    )
    forget(class_name)


def model_of(class_name: ClassName) -> type[ModelBackedObject] | None:
    """Return the model whose rows are the objects of the class; None for a generic class."""
    backing = _model_classes.get(class_name)
    return backing.model if backing is not None else None


def offered_models() -> list[type[ModelBackedObject]]:
    """Return the models that are offered as classes."""
    return [backing.model for backing in _model_classes.values()]


def model_tables() -> dict[ClassName, str]:
    """Return the tables of the model-backed classes, by class."""
    return {name: backing.model._meta.db_table for name, backing in _model_classes.items()}


def model_storage() -> dict[ClassName, tuple[str, str | None]]:
    """Return the table of each model-backed class, and the column that marks objects.

    The table name is quoted, the column name is not. The column is set only where some rows are not
    objects.
    """
    return {
        name: (_quoted(backing.model._meta.db_table), backing.shown_if)
        for name, backing in _model_classes.items()
    }


def _column(model: type[ModelBackedObject], attribute: str) -> Column:
    field = model._meta.get_field(attribute)
    if getattr(field, "db_collation", "C") != "C":
        # Indexes and comparisons are those of code points, as everywhere.
        raise ImproperlyConfigured(
            f'{model.__name__}.{attribute} needs db_collation="C" to hold a promoted field.'
        )
    for field_type, column_type in _COLUMN_TYPES.items():
        if isinstance(field, field_type):
            return Column(_quoted(field.column), column_type)
    raise ImproperlyConfigured(
        f"{model.__name__}.{attribute} can't hold a promoted field: it is a {type(field).__name__}."
    )


def _computed(name: FieldName, computed: Computed) -> Column:
    return Column(
        _quoted(name),
        _COMPUTED_TYPES[computed.type.kind],
        computed.sql,
        computed.one_of,
        computed.values,
    )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


# -- Reading ------------------------------------------------------------------------------------


def find(class_name: ClassName) -> ClassTable | None:
    """Return the class of this name, or None if there is none. Raises ``InvalidClassName``.

    The name of the class is the name that was looked up, character for character: what is chosen
    by either (rules, triggers, limits, permissions) is the same.
    """
    table = _tables.get(class_name)
    return table if table is not None else _load(class_name)


def _load(class_name: ClassName) -> ClassTable | None:
    row = _row(class_name)
    if row is None:
        backing = _model_classes.get(class_name)
        return create(_initial_schema(class_name)) if backing is not None else None
    return _remember(row)


def _row(class_name: ClassName, *, is_locked: bool = False) -> ClassRow | None:
    """Return the row of the class of this name, or None. Raises ``InvalidClassName``."""
    check_class_name(class_name)
    row = class_rows.by_name(class_name, is_locked=is_locked)
    if row is not None and row.name != class_name:
        raise InvalidClassName(f"Class {class_name} is not the class {row.name}.")
    return row


def current(class_name: ClassName) -> ClassTable | None:
    """Return the class as it is in the database now, if no statement on it follows."""
    row = _row(class_name)
    if row is not None:
        return _remember(row)
    forget(class_name)
    return find(class_name)


def lock(class_name: ClassName) -> ClassTable | None:
    """Return the class as the database has it now, locked until the transaction ends."""
    for _ in range(2):
        if find(class_name) is None:
            return None
        row = _row(class_name, is_locked=True)
        if row is not None:
            return _remember(row)
        # It was there when it was read; a class that a model is behind is made again.
        forget(class_name)
    return None


def all_classes() -> Iterator[ClassTable]:
    """Yield all classes, ordered by name."""
    for class_name in _model_classes:
        find(class_name)
    for row in class_rows.ordered_by_name():
        yield _remember(row)


def forget(class_name: ClassName) -> None:
    """Remove a class from the cache, so that the next ``find`` reads it."""
    _tables.pop(class_name, None)


def forget_outdated() -> bool:
    """Forget classes that differ from the database, and return whether there were any.

    Nothing is found outdated in a transaction that has failed.
    """
    try:
        rows = class_rows.versions()
    except InFailedSqlTransaction:
        return False
    current = {row.name: (row.id, row.version) for row in rows}
    outdated = [
        name
        for name, table in [*_tables.items()]
        if current.get(name) != (table.class_id, table.version)
    ]
    for name in outdated:
        forget(name)
    return bool(outdated)


def forget_all() -> None:
    """Clear the cache of classes."""
    _tables.clear()


def _remember(row: ClassRow) -> ClassTable:
    class_name = ClassName(Subject(row.name))
    cached = _tables.get(class_name)
    if cached is not None and (cached.class_id, cached.version) == (row.id, row.version):
        return cached
    schema = from_definition(class_name, msgspec.json.decode(row.definition))
    table = _table(row.id, row.version, schema, row.index_version, _learned(row.learned, schema))
    _tables[class_name] = table
    return table


def _learned(wire: str | None, schema: ClassSchema) -> tuple[IndexFields, ...]:
    if wire is None:
        return ()
    fields = [
        tuple((FieldName(n), way) for n, way in columns) for columns in msgspec.json.decode(wire)
    ]
    return _of_schema(fields, schema)


def _of_schema(learned: Iterable[IndexFields], schema: ClassSchema) -> tuple[IndexFields, ...]:
    return tuple(
        index_fields
        for index_fields in learned
        if all(schema.field_type(name) for name, _ in index_fields)
    )


def _table(
    class_id: int,
    version: int,
    schema: ClassSchema,
    index_version: int,
    learned: tuple[IndexFields, ...] = (),
) -> ClassTable:
    indexed = class_rows.INDEXED[index_version]
    backing = _model_classes.get(schema.class_name)
    if backing is None:
        relation = _quoted(f"{GENERIC_TABLE}_{class_id}")
        return ClassTable(
            schema.class_name,
            class_id,
            version,
            relation,
            schema,
            learned=learned,
            indexed=indexed,
        )
    stored_in = backing.model._meta.db_table
    return ClassTable(
        schema.class_name,
        class_id,
        version,
        _quoted(backing.shown_by or stored_in),
        schema.with_fields(backing.fields),
        backing.columns,
        is_partition=False,
        hidden=backing.hidden,
        stored_in=_quoted(stored_in),
        indexed=indexed,
    )


def new_class(class_name: ClassName) -> ClassSchema:
    """Return the schema of a new class without fields, with the permissions of the settings."""
    return empty_schema(class_name, service_settings.CLASS_PERMISSIONS_DEFAULT)


def _initial_schema(class_name: ClassName) -> ClassSchema:
    schema = new_class(class_name)
    backing = _model_classes.get(class_name)
    if backing is None:
        return schema
    return ClassSchema(
        class_name, {**schema.fields, **backing.fields}, backing.permissions or schema.permissions
    )


# -- Changing -----------------------------------------------------------------------------------


def create(schema: ClassSchema) -> ClassTable:
    """Make a class and its table. Raises ``InvalidClassName`` if the name is taken."""
    try:
        with transaction.atomic():
            _hold_name(schema.class_name)
            backing = _model_classes.get(schema.class_name)
            index_version = class_rows.INDEX_VERSION
            if backing is not None:
                index_version = class_rows.index_version_of(backing.model._meta.db_table)
            row = class_rows.insert(schema.class_name, _encode(schema), index_version)
            table = _table(row.id, row.version, schema, index_version)
            if table.is_partition:
                class_rows.create_partition(table.relation, table.class_id)
    except UniqueViolation:
        forget(schema.class_name)
        backing = _model_classes.get(schema.class_name)
        existing = find(schema.class_name) if backing is not None else None
        if existing is not None:
            return existing
        raise InvalidClassName(f"Class {schema.class_name} already exists.") from None
    _tables[schema.class_name] = table
    return table


def save(table: ClassTable, schema: ClassSchema) -> ClassTable:
    """Store a new definition, and with it a new version, of a locked class."""
    version = class_rows.update(table.class_id, _encode(schema))
    saved = _table(
        table.class_id,
        version,
        schema,
        class_rows.INDEXED.index(table.indexed),
        _of_schema(table.learned, schema),
    )
    _tables[table.class_name] = saved
    return saved


def renew(class_name: Subject) -> None:
    """Make every process reload the class and its attachments when the transaction commits.

    Call it before changing an attachment.

    A class that isn't there is kept from being made until then.
    """
    _hold_name(class_name)
    class_rows.renew_by_name(class_name)
    if is_class_name(class_name):
        forget(class_name)


def renew_locked(table: ClassTable) -> int:
    """Give a locked class a new version, so that every process reads its indexes again."""
    version = class_rows.renew(table.class_id)
    forget(table.class_name)
    return version


def use_index_of_all(table: ClassTable) -> None:
    """Let every process use the current version of the index of all fields of a locked class."""
    class_rows.set_index_version(table.class_id, class_rows.INDEX_VERSION)
    forget(table.class_name)


def _hold_name(class_name: Subject) -> None:
    locks.lock_transaction(advisory_locks.class_name(class_name))


def drop(table: ClassTable) -> None:
    """Remove a locked class and the members of its relations; ``leftovers`` drops its table."""
    forget(table.class_name)
    class_rows.delete(table.class_id)
    if table.is_partition:
        class_rows.mark_removed(table.relation)


def _encode(schema: ClassSchema) -> str:
    return msgspec.json.encode(schema.definition()).decode()

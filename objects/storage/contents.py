"""The whole contents of a class: counted, rid of fields, emptied.

The transaction of a change locks the class. In a large class most of the work is done before, in
batches, so that the class is locked only for what is left then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection
from psycopg.errors import UndefinedTable

from objects.core.names import FieldName
from objects.database import catalog, maintenance
from objects.database.orm import orm_queries
from objects.database.statements import fetch, fetch_value
from objects.definitions.models import RelationMember
from objects.sql.tables import ClassTable

_FEW: Final = 5_000
"""Objects of a class that is changed without batches: at once or not at all."""
_BATCH: Final = 1_000

_REMOVE_FIELDS: Final = "UPDATE {relation} t SET data = t.data - %(names)s::text[] WHERE {rows}"
_HAS_FIELDS: Final = "t.data ?| %(names)s::text[]"
_REMOVE_OBJECTS: Final = "DELETE FROM {relation} t WHERE {rows}"


def object_count(table: ClassTable) -> int:
    """Return the number of objects of the class, counted."""
    return fetch_value(int, f"SELECT count(*) FROM {table.relation}", {}, prepare=False) or 0


def remove_fields(table: ClassTable, names: Sequence[FieldName]) -> None:
    """Remove fields from all objects, members of relations included, while writers are kept out."""
    statement = _REMOVE_FIELDS.format(relation=table.relation, rows=_HAS_FIELDS)
    fetch(statement, {"names": list(names)}, prepare=False)
    with orm_queries():
        RelationMember.objects.filter(class_id=table.class_id, key__in=names).delete()


def remove_fields_of_many(table: ClassTable, names: Sequence[FieldName]) -> None:
    """Remove fields from the objects of a large class while others write them.

    Objects that others have locked, and small classes, are left to ``remove_fields``. Raises
    ``UnderMaintenance``.
    """
    _in_batches(table, _REMOVE_FIELDS, _HAS_FIELDS, {"names": list(names)})


def remove_objects(table: ClassTable, *, truncates: bool) -> None:
    """Remove all objects of the class, and the members of their relations.

    ``truncates`` is for a locked table that no other rows refer to, while no reader wants the
    changes of the class: TRUNCATE captures none.
    """
    remove = "TRUNCATE" if truncates else "DELETE FROM"
    fetch(f"{remove} {table.relation}", {}, prepare=False)
    with orm_queries():
        RelationMember.objects.filter(class_id=table.class_id).delete()


def remove_many_objects(table: ClassTable) -> None:
    """Remove the objects of a large class while others read and write it.

    Objects that others have locked, and small classes, are left to ``remove_objects``. Raises
    ``UnderMaintenance``.
    """
    _in_batches(table, _REMOVE_OBJECTS, "true", {})


def _in_batches(table: ClassTable, change: str, condition: str, params: dict[str, Any]) -> None:
    """Change the objects that fulfil a condition, about ``_BATCH`` in a transaction."""
    if connection.in_atomic_block or catalog.table_size(table.storage).rows < _FEW:
        return
    relation = table.relation
    statement = f"""
        WITH batch AS MATERIALIZED (
            SELECT object_id FROM {relation} WHERE object_id > %(after)s
            ORDER BY object_id LIMIT {_BATCH}
        ), chosen AS MATERIALIZED (
            SELECT t.object_id FROM {relation} t JOIN batch USING (object_id) WHERE {condition}
            FOR UPDATE OF t SKIP LOCKED
        ), changed AS (
            {change.format(relation=relation, rows="t.object_id IN (TABLE chosen)")}
        )
        SELECT max(object_id) FROM batch"""
    after: str | None = ""
    while after is not None:
        try:
            with maintenance.writing():
                after = fetch_value(str, statement, {**params, "after": after}, prepare=False)
        except UndefinedTable:
            return  # the class was removed meanwhile, as the change will notice

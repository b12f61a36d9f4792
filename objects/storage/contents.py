"""The whole contents of a class: its table locked, counted, rid of fields, emptied.

For changes of a class, in the transaction that has locked it.
"""

from __future__ import annotations

from collections.abc import Sequence

from objects.core.names import FieldName
from objects.database.orm import orm_queries
from objects.database.statements import fetch, fetch_value
from objects.definitions.models import RelationMember
from objects.sql.tables import ClassTable


def keep_writers_out(table: ClassTable) -> None:
    """Wait for writers of the class, and let none in until the transaction ends.

    They wait for the lock before they look at the class's version, so they find the new one.
    """
    fetch(f"LOCK TABLE {table.storage} IN SHARE ROW EXCLUSIVE MODE", {}, prepare=False)


def object_count(table: ClassTable) -> int:
    """Return the number of objects of the class, counted."""
    return fetch_value(int, f"SELECT count(*) FROM {table.relation}", {}, prepare=False) or 0


def remove_fields(table: ClassTable, names: Sequence[FieldName]) -> None:
    """Remove fields from all objects, members of relations included, while writers are kept out."""
    fetch(
        f"UPDATE {table.relation} SET data = data - %(names)s::text[]"
        " WHERE data ?| %(names)s::text[]",
        {"names": list(names)},
        prepare=False,
    )
    with orm_queries():
        RelationMember.objects.filter(class_id=table.class_id, key__in=names).delete()


def lock_as_writer(table: ClassTable) -> None:
    """Lock the class as writers do: a reader that starts to want its changes waits for them."""
    fetch(f"LOCK TABLE {table.storage} IN ROW EXCLUSIVE MODE", {}, prepare=False)


def remove_objects(table: ClassTable, *, truncates: bool) -> None:
    """Remove all objects of the class, and the members of their relations.

    ``truncates`` is for tables that no other rows refer to, while no reader wants the changes of
    the class: TRUNCATE captures none.
    """
    remove = "TRUNCATE" if truncates else "DELETE FROM"
    fetch(f"{remove} {table.relation}", {}, prepare=False)
    with orm_queries():
        RelationMember.objects.filter(class_id=table.class_id).delete()

"""The rows of ``objects_class``, and the tables of generic classes.

A class is read with its learned indexes, and written with a new version.

SQL, since a statement that reads a class may follow a failed one in its transaction, and one that
writes returns the version that it has drawn.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from objects.database import catalog
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value
from objects.definitions.models import GENERIC_TABLE, VERSION_SEQUENCE


class ClassRow(NamedTuple):
    """A class as it is stored. ``definition`` and ``learned`` are JSON.

    ``index_version`` is a position in ``INDEXED``.
    ``learned`` has the fields of the valid learned indexes, None if there are none.
    """

    id: int
    name: str
    version: int
    definition: Annotated[str, "{row}.definition::text"]
    index_version: int
    learned: Annotated[
        str | None,
        "(SELECT json_agg(l.fields ORDER BY l.id)::text FROM objects_learned_index l"
        " WHERE l.class_id = {row}.id AND l.state = 'valid')",
    ]


class ClassVersion(NamedTuple):
    """The version of a class, by which a process knows whether it has the class as it is."""

    name: str
    id: int
    version: int


INDEXED: Final = ("", "objects_indexed_1")
"""What the index of all fields is on, by ``index_version``: a function of ``data``, or ``data``.

A function that has served an index is never changed: another one gets another number.
"""
INDEX_VERSION: Final = len(INDEXED) - 1
"""That of new classes."""
INDEX_OF_ALL: Final = f"USING gin ({INDEXED[-1]}(data) jsonb_path_ops)"
"""The part of ``CREATE INDEX`` after the table's name."""

_ALL: Final = f"SELECT {select_list(ClassRow, 'c')} FROM objects_class c"
_BY_NAME: Final = f"{_ALL} WHERE c.name = %(name)s"
_NEXT_VERSION: Final = f"nextval('{VERSION_SEQUENCE}')"
_INSERT: Final = f"""
INSERT INTO objects_class (name, definition, index_version, version, created_at, updated_at)
VALUES (
    %(name)s, %(definition)s::jsonb, %(index_version)s, {_NEXT_VERSION}, now(), now()
)
RETURNING name, id, version
"""
_UPDATE: Final = f"""
UPDATE objects_class
SET definition = %(definition)s::jsonb, updated_at = now(), version = {_NEXT_VERSION}
WHERE id = %(id)s RETURNING version
"""
_SET_INDEX_VERSION: Final = f"""
UPDATE objects_class SET index_version = %(index_version)s, version = {_NEXT_VERSION}
WHERE id = %(id)s RETURNING version
"""
_RENEW: Final = f"""
UPDATE objects_class SET version = {_NEXT_VERSION} WHERE id = %(id)s RETURNING version
"""
_RENEW_BY_NAME: Final = f"""
UPDATE objects_class SET updated_at = now(), version = {_NEXT_VERSION} WHERE name = %(name)s
"""
# Of a room above this one. Their rows have no foreign key to the class.
_DELETE_SHAPES: Final = "DELETE FROM objects_query_shape WHERE class_id = %(id)s"
_DELETE_LEARNED: Final = "DELETE FROM objects_learned_index WHERE class_id = %(id)s"


def by_name(name: str, *, is_locked: bool = False) -> ClassRow | None:
    """Return the class that the database finds by this name, which may be another spelling.

    ``is_locked`` locks the row until the transaction ends.
    """
    statement = f"{_BY_NAME} FOR UPDATE" if is_locked else _BY_NAME
    rows = fetch_rows(ClassRow, statement, {"name": name}, prepare=True)
    return rows[0] if rows else None


def ordered_by_name() -> list[ClassRow]:
    """Return all classes."""
    return fetch_rows(ClassRow, f"{_ALL} ORDER BY c.name", {}, prepare=True)


def versions() -> list[ClassVersion]:
    """Return the versions of all classes."""
    statement = f"SELECT {select_list(ClassVersion, 'c')} FROM objects_class c"
    return fetch_rows(ClassVersion, statement, {}, prepare=True)


def insert(name: str, definition: str, index_version: int) -> ClassVersion:
    """Insert a class. A taken name violates the unique constraint."""
    params = {"name": name, "definition": definition, "index_version": index_version}
    return fetch_rows(ClassVersion, _INSERT, params, prepare=True)[0]


def update(class_id: int, definition: str) -> int:
    """Store another definition of a locked class; return its new version."""
    return _version(_UPDATE, {"id": class_id, "definition": definition})


def set_index_version(class_id: int, index_version: int) -> int:
    """Set what the index of all fields of a locked class is on; return the class's new version."""
    return _version(_SET_INDEX_VERSION, {"id": class_id, "index_version": index_version})


def renew(class_id: int) -> int:
    """Give a locked class a new version, and return it."""
    return _version(_RENEW, {"id": class_id})


def renew_by_name(name: str) -> None:
    """Give a class a new version, if there is one of this name."""
    fetch(_RENEW_BY_NAME, {"name": name}, prepare=True)


def delete(class_id: int) -> None:
    """Delete a class, the members of its relations, and what is stored of its queries."""
    params = {"id": class_id}
    fetch("DELETE FROM objects_relation WHERE class_id = %(id)s", params, prepare=True)
    fetch(_DELETE_SHAPES, params, prepare=False)
    fetch(_DELETE_LEARNED, params, prepare=False)
    fetch("DELETE FROM objects_class WHERE id = %(id)s", params, prepare=True)


def _version(statement: str, params: dict[str, int | str]) -> int:
    version = fetch_value(int, statement, params, prepare=True)
    assert version is not None, "the class is locked"
    return version


# -- Partitions -----------------------------------------------------------------------------------


def create_partition(relation: str, class_id: int) -> None:
    """Create the table of a generic class. ``relation`` is its quoted name."""
    # The parent's lock is a weak one this way; CREATE TABLE … PARTITION OF would wait for, and
    # hold up, everybody who reads the parent. The CHECK saves the scan when attaching.
    for statement in (
        f"CREATE TABLE {relation} (LIKE {GENERIC_TABLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS,"
        f" PRIMARY KEY (object_id), CHECK (class_id = {class_id}))",
        f"CREATE INDEX {index_of_all(relation)} ON {relation} {INDEX_OF_ALL}",
        f"CREATE INDEX ON {relation} (created_at, object_id)",
        f"ALTER TABLE {GENERIC_TABLE} ATTACH PARTITION {relation} FOR VALUES IN ({class_id})",
    ):
        fetch(statement, {}, prepare=False)


_REMOVED: Final = "of a class that was removed"
"""The comment of a table that is to be dropped."""


def mark_removed(relation: str) -> None:
    """Mark the locked table of a class that is deleted: ``drop_partition`` may drop it."""
    # Dropping a partition locks the table of all classes, which others are reading.
    fetch(f"COMMENT ON TABLE {relation} IS '{_REMOVED}'", {}, prepare=False)


def removed_partitions() -> list[str]:
    """Return the tables of deleted classes, as quoted names."""
    return catalog.partitions_with_comment(GENERIC_TABLE, _REMOVED)


def index_of_all(relation: str) -> str:
    """Return the quoted name of the index of all fields of a table, whose quoted name is given."""
    return f'"{relation[1:-1]}_fields_{INDEX_VERSION}"'


def index_version_of(table: str) -> int:
    """Return the version of the index of all fields that a model's table has, or 0."""
    name = index_of_all(f'"{table}"')[1:-1]
    is_current = any(state.is_valid for state in catalog.index_states([name]).values())
    return INDEX_VERSION if is_current else 0


def drop_partition(relation: str) -> None:
    """Drop the table of a deleted class, if it is there."""
    fetch(f"DROP TABLE IF EXISTS {relation}", {}, prepare=False)

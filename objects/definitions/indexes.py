"""Declared indexes of classes: building and dropping them.

An index is built first and declared afterwards, and dropped in the transaction that takes its
declaration away, so that what a class declares is there, and nothing else is. A process that is
killed while it builds leaves an index that no class declares; ``leftovers`` drops it.

Outside a transaction an index is built CONCURRENTLY, so that the class stays writable meanwhile.
Its name in the database follows from its declaration.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2s
from typing import Final

from django.db import connection
from psycopg import sql
from psycopg.errors import ProgramLimitExceeded, UniqueViolation

from backend.kernel.errors import DuplicateValue, InvalidSchemaOperation
from objects.core.names import CREATED_AT, OBJECT_ID
from objects.core.schema.definition import IndexDeclaration
from objects.database import catalog
from objects.database.statements import fetch
from objects.database.time_limits import time_limits
from objects.definitions import class_locks
from objects.sql.fields import column_expression, index_column
from objects.sql.full_text_search import document_expression
from objects.sql.tables import ClassTable

NAMES: Final = "^objects_declared_([0-9]+)_"
"""What names of declared indexes in the database look like, with the id of the class."""


def index_name(table: ClassTable, index: IndexDeclaration) -> str:
    """Return the name of the index in the database."""
    declaration = f"{index.name} {index.fields} {index.unique}"
    digest = blake2s(declaration.encode(), digest_size=8).hexdigest()
    return f"{_prefix(table)}{digest}"


def _prefix(table: ClassTable) -> str:
    return f"objects_declared_{table.class_id}_"


def is_ordered_by_index(table: ClassTable, path: tuple[str, ...]) -> bool:
    """Return whether an index gives the objects in the order of this field."""
    if len(path) != 1:
        return False
    if path[0] in (CREATED_AT, OBJECT_ID):
        return True
    declared = (index.fields[0] for index in table.schema.index_declarations.values())
    learned = (fields[0] for fields in table.learned)
    return any(
        name == path[0] and isinstance(direction, int) for name, direction in (*declared, *learned)
    )


def build(table: ClassTable, index: IndexDeclaration) -> None:
    """Build an index that isn't there, or isn't whole, while the class is ``building``.

    Raises ``DuplicateValue`` if it is unique and the stored objects aren't,
    ``InvalidSchemaOperation`` if a stored value is too long; call ``drop_undeclared`` then.
    """
    name = quoted(index_name(table, index))
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    unique = "UNIQUE" if index.unique else ""
    with time_limits(statement=0, lock=0):
        try:
            # What a process has left that was killed.
            fetch(f"DROP INDEX {concurrently} IF EXISTS {name}", (), prepare=False)
            fetch(
                f"CREATE {unique} INDEX {concurrently} {name}"
                f" ON {table.storage} {_definition(table, index)}",
                (),
                prepare=False,
            )
        except UniqueViolation:
            raise DuplicateValue(
                f"The index {index.name} can't be unique:"
                f" there are objects with the same {_fields(index)}."
            ) from None
        except ProgramLimitExceeded:
            raise InvalidSchemaOperation(
                f"The index {index.name} can't be built: there are values of {_fields(index)} too"
                " long for it."
            ) from None


def _fields(index: IndexDeclaration) -> str:
    return ", ".join(field for field, _ in index.fields)


def _definition(table: ClassTable, index: IndexDeclaration) -> str:
    directions = {direction for _, direction in index.fields}
    if "text" in directions:
        names = tuple(name for name, direction in index.fields if direction == "text")
        return f"USING gin ({document_expression(table, names)})"
    if "2dsphere" in directions:
        names = tuple(name for name, direction in index.fields if direction == "2dsphere")
        points = ", ".join(f"({column_expression(table, name)})" for name in names)
        return f"USING gist ({points})"
    columns = ", ".join(
        index_column(table, name, descending=direction != 1) for name, direction in index.fields
    )
    if not index.unique:
        # The order of ties, so that a field with few values can be paged through as well.
        columns += f", object_id {'ASC' if index.fields[-1][1] == 1 else 'DESC'}"
    return f"({columns})"


def is_built(table: ClassTable, index: IndexDeclaration) -> bool:
    """Return whether the database has an index, whole."""
    return not _missing(table, [index])


def missing(table: ClassTable) -> list[IndexDeclaration]:
    """Return the declared indexes that are missing from the database, or invalid."""
    return _missing(
        table,
        [
            index
            for index in table.schema.index_declarations.values()
            # A model has the constraints of its unique columns itself.
            if index.name in table.schema.indexes or index.fields[0][0] not in table.columns
        ],
    )


def _missing(table: ClassTable, indexes: Collection[IndexDeclaration]) -> list[IndexDeclaration]:
    names = [index_name(table, index) for index in indexes]
    states = catalog.index_states(names)
    return [
        index
        for index, name in zip(indexes, names, strict=True)
        if name not in states or not states[name].is_valid or states[name].is_unique != index.unique
    ]


def undeclared(table: ClassTable) -> list[str]:
    """Return the names of indexes in the database that the class doesn't declare.

    They take space and time, and unique ones refuse values. One that is being built is among them.
    """
    names = catalog.index_names(table.storage, _prefix(table))
    declared = {index_name(table, index) for index in table.schema.index_declarations.values()}
    return [name for name in names if name not in declared]


def drop_undeclared(table: ClassTable) -> list[str]:
    """Drop these indexes, for an action of ``class_locks.alter``; return their names."""
    names = undeclared(table)
    drop(table, names)
    return names


def drop(table: ClassTable, names: Collection[str]) -> None:
    """Drop indexes of a class, for an action of ``class_locks.alter``: it locks the table."""
    if not names:
        return
    class_locks.lock_table(table, "ACCESS EXCLUSIVE")
    for name in names:
        fetch(f"DROP INDEX IF EXISTS {quoted(name)}", (), prepare=False)


def quoted(name: str) -> str:
    """A name as an identifier of SQL."""
    return sql.Identifier(name).as_string(None)

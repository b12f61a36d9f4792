"""Declared indexes of classes: building and dropping them.

Outside a transaction an index is built CONCURRENTLY, so that the class stays writable meanwhile.
Its name in the database follows from its declaration, so building one that is there already does
nothing.
"""

from __future__ import annotations

from hashlib import blake2s

from django.db import connection
from psycopg import sql
from psycopg.errors import ProgramLimitExceeded, UniqueViolation

from backend.kernel.errors import DuplicateValue, InvalidSchemaOperation
from objects.core.names import CREATED_AT, OBJECT_ID
from objects.core.schema.definition import IndexDeclaration
from objects.database import catalog
from objects.database.statements import fetch
from objects.database.time_limits import time_limits
from objects.sql.fields import column_expression, index_column
from objects.sql.full_text_search import document_expression
from objects.sql.tables import ClassTable


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
    """Build a declared index.

    Raises ``DuplicateValue`` if it is unique and the stored objects aren't,
    ``InvalidSchemaOperation`` if a stored value is too long; nothing is left then.
    """
    name = sql.Identifier(index_name(table, index)).as_string(None)
    in_transaction = connection.in_atomic_block
    concurrently = "" if in_transaction else "CONCURRENTLY"
    unique = "UNIQUE" if index.unique else ""
    with time_limits(statement=0, lock=0):
        if not in_transaction and _is_invalid(table, index):
            fetch(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", (), prepare=False)
        try:
            fetch(
                f"CREATE {unique} INDEX {concurrently} IF NOT EXISTS {name}"
                f" ON {table.storage} {_definition(table, index)}",
                (),
                prepare=False,
            )
        except (UniqueViolation, ProgramLimitExceeded) as error:
            if not in_transaction:
                fetch(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", (), prepare=False)
            fields = ", ".join(field for field, _ in index.fields)
            if isinstance(error, UniqueViolation):
                raise DuplicateValue(
                    f"The index {index.name} can't be unique:"
                    f" there are objects with the same {fields}."
                ) from None
            raise InvalidSchemaOperation(
                f"The index {index.name} can't be built: there are values of {fields} too long for"
                " it."
            ) from None


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


def drop(table: ClassTable, index: IndexDeclaration) -> None:
    """Drop a declared index; one that isn't there is no error."""
    name = sql.Identifier(index_name(table, index)).as_string(None)
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    with time_limits(statement=0, lock=0):
        fetch(f"DROP INDEX {concurrently} IF EXISTS {name}", (), prepare=False)


def _is_invalid(table: ClassTable, index: IndexDeclaration) -> bool:
    """Return whether an earlier build was interrupted."""
    states = catalog.index_states([index_name(table, index)]).values()
    return any(not state.is_valid for state in states)


def missing(table: ClassTable) -> list[IndexDeclaration]:
    """Return the declared indexes that are missing from the database, or invalid."""
    declared = {
        index_name(table, index): index
        for index in table.schema.index_declarations.values()
        # A model has the constraints of its unique columns itself.
        if index.name in table.schema.indexes or index.fields[0][0] not in table.columns
    }
    states = catalog.index_states(declared.keys()).values()
    valid = {state.name for state in states if state.is_valid}
    return [index for name, index in declared.items() if name not in valid]


def undeclared(table: ClassTable) -> list[str]:
    """Return the names of indexes in the database that the class doesn't declare.

    They take space and time, and unique ones refuse values.
    """
    names = catalog.index_names(table.storage, _prefix(table))
    declared = {index_name(table, index) for index in table.schema.index_declarations.values()}
    return [name for name in names if name not in declared]


def drop_undeclared(table: ClassTable) -> list[str]:
    """Drop these indexes and return their names.

    Call it in a transaction that has locked the class, so that no declaration is added meanwhile.
    """
    names = undeclared(table)
    for name in names:
        fetch(f"DROP INDEX {sql.Identifier(name).as_string(None)}", (), prepare=False)
    return names

"""What PostgreSQL's refusal of a write means to a client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import errors as pg
from psycopg.errors import DatabaseError

from backend.kernel.errors import (
    DuplicateValue,
    IncorrectType,
    ObjectTooLarge,
    ServiceError,
    ValidationFailed,
)
from backend.kernel.memory_pool import LARGEST_OBJECT, MEBIBYTE
from objects.definitions.indexes import index_name
from objects.rules import rules_of
from objects.sql.tables import ClassTable

# "Key (isbn, pages)=(1, 2) already exists.", in any language of the server.
_COLUMNS = re.compile(r"\(([^()]*)\)=\(")


def duplicate(*fields: str) -> DuplicateValue:
    """Return the error for values of these fields that another object has already."""
    named = f": {', '.join(fields)}" if fields else ""
    return DuplicateValue(f"A duplicate value for a field with unique values was provided{named}")


def refusal(table: ClassTable, error: DatabaseError) -> ServiceError | None:
    """Return the error for a client; None if the refusal is not about what was to be written."""
    rules = rules_of(table.class_name)
    if rules is not None and isinstance(error, pg.IntegrityError):
        refused = rules.error_for(error.diag.constraint_name or "")
        if refused is not None:
            return refused
    if isinstance(error, pg.UniqueViolation):
        return duplicate(*_unique_fields(table, error))
    if isinstance(error, pg.CheckViolation) and error.diag.constraint_name == "object_size":
        return ObjectTooLarge(f"An object has at most {LARGEST_OBJECT // MEBIBYTE} MiB.")
    if isinstance(error, pg.ProgramLimitExceeded):
        return ObjectTooLarge("A value is too long for an index of the class.")
    # Of generic classes only the above can be violated; what follows is about models' columns.
    if isinstance(error, pg.NotNullViolation):
        (field,) = _fields(table, [error.diag.column_name or ""]) or ("A field",)
        return ValidationFailed(f"{field} is required")
    if isinstance(error, pg.IntegrityError):
        return ValidationFailed("The object violates a rule of its class.")
    if isinstance(error, pg.DataError):
        return IncorrectType("A value does not fit the column of its field.")
    return None


@contextmanager
def refusals(table: ClassTable) -> Iterator[None]:
    """Raise ``refusal`` for what a statement of the class's rules violates."""
    try:
        yield
    except DatabaseError as error:
        refused = refusal(table, error)
        if refused is None:
            raise
        raise refused from None


def _unique_fields(table: ClassTable, error: pg.UniqueViolation) -> tuple[str, ...]:
    constraint = error.diag.constraint_name or ""
    for index in table.schema.index_declarations.values():
        if index_name(table, index) == constraint:
            return tuple(name for name, _ in index.fields)
    match = _COLUMNS.search(error.diag.message_detail or "")
    return _fields(table, match[1].split(", ")) if match else ()


def _fields(table: ClassTable, columns: list[str]) -> tuple[str, ...]:
    """Return the fields that are stored in these columns."""
    unquoted = {column.strip('"') for column in columns}
    fields = {"objectId": "object_id"} | {
        name: column.name.strip('"') for name, column in table.columns.items()
    }
    return tuple(name for name, column in fields.items() if column in unquoted)

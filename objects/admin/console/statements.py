"""Read-only SQL over classes: each class is a table by its name, with its fields as columns.

A statement runs as a role that can read the tables of these classes and nothing else, in a
read-only transaction of a connection of its own, as a part of a query: what isn't a query is no
SQL there. So neither sessions and passwords nor the service's settings of a connection are within
its reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import Error as DjangoError
from django.db import connection
from psycopg import errors, sql

from backend.http.bodies.parsers import decode_object
from backend.kernel.connections import postgres
from backend.kernel.errors import InvalidQuery, ServiceUnavailable
from backend.logs.setup import get_logger
from objects.core.names import (
    CREATED_AT,
    INSTALLATION,
    OBJECT_ID,
    ROLE,
    UPDATED_AT,
    USER,
    FieldName,
)
from objects.definitions import registry
from objects.sql.fields import field_expression
from objects.sql.tables import ClassTable

READER: Final = "console_reader"
MOST_ROWS: Final = 1_000
_LONGEST_ROW: Final = 20_000  # characters, as JSON
_PATIENCE: Final = 10  # seconds
_MOST_CLASSES: Final = 50
_PEOPLE: Final = frozenset({USER, ROLE, INSTALLATION})
_FIXED: Final = {OBJECT_ID: "object_id", CREATED_AT: "created_at", UPDATED_AT: "updated_at"}
_CASTS: Final = {"Boolean": "::boolean", "Date": "::timestamptz"}
_HIDDEN: Final = frozenset({"authData"})
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SESSION: Final = {
    "default_transaction_read_only": "on",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "30s",
    "work_mem": "32MB",
    "max_parallel_workers_per_gather": "0",
}

log = get_logger("admin")


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement returned: the first rows, by column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool


def is_available() -> bool:
    """Whether there is a role to read as: the embedded PostgreSQL's, or that of a setting."""
    return bool(settings.EMBEDDED_POSTGRES or settings.SQL_CONSOLE_URL)


def readable_classes() -> dict[str, ClassTable]:
    """The classes that statements can name."""
    return {
        table.class_name: table
        for table in registry.all_classes()
        if table.is_partition or table.class_name in _PEOPLE
    }


def run(text: str) -> Rows:
    """Run a query. Raises ``InvalidQuery``, which names the place, and ``ServiceUnavailable``."""
    text = text.strip().rstrip(";").rstrip()
    tables = _named_in(text, readable_classes())
    head = f"{_tables(tables)}SELECT left(row_to_json(q)::text, {_LONGEST_ROW + 1}) FROM (\n"
    try:
        with _reader(tables) as reader:
            # As a prepared one: the protocol takes a single statement then.
            statement = f"{head}{text}\n) q LIMIT {MOST_ROWS + 1}".encode()
            texts = [row[0] for row in reader.execute(statement, prepare=True)]
    except (errors.QueryCanceled, errors.LockNotAvailable):
        raise InvalidQuery(f"It took longer than {_PATIENCE} seconds.") from None
    except (psycopg.OperationalError, psycopg.InterfaceError, DjangoError) as error:
        log.warning("the console can't read", exc_info=error)
        raise ServiceUnavailable(
            "The role that reads can't connect, or can't be given the right to read."
        ) from error
    except psycopg.Error as error:
        raise InvalidQuery(_place(error, text, len(head)) + _said(error)) from None
    return _rows(texts)


def _rows(texts: list[str | None]) -> Rows:
    shown = texts[:MOST_ROWS]
    if any(len(row or "") > _LONGEST_ROW for row in shown):
        raise InvalidQuery(
            f"A row is longer than {_LONGEST_ROW:,} characters: select fewer columns."
        )
    records = [decode_object(row or "{}") for row in shown]
    columns = tuple(records[0]) if records else ()
    rows = tuple(tuple(record.get(name) for name in columns) for record in records)
    return Rows(columns, rows, len(texts) > MOST_ROWS)


def _named_in(text: str, classes: Mapping[str, ClassTable]) -> list[ClassTable]:
    """The classes whose names occur in a statement."""
    words = set(_WORD.findall(text))
    lower = {word.lower() for word in words}
    named = [t for name, t in classes.items() if name in words or name.lower() in lower]
    return sorted(named, key=lambda table: table.class_name not in words)[:_MOST_CLASSES]


def _tables(tables: Iterable[ClassTable]) -> str:
    """The classes as tables in front of a query, also by their names in lower case, to which
    PostgreSQL changes names without quotation marks."""
    names: dict[str, str] = {}
    for table in tables:
        source = f"SELECT {_columns(table)} FROM {table.storage} t"
        names.setdefault(table.class_name, source)
        names.setdefault(table.class_name.lower(), source)
    parts = [f'"{name}" AS NOT MATERIALIZED ({source})' for name, source in names.items()]
    return f"WITH {', '.join(parts)} " if parts else ""


def column_names(table: ClassTable) -> list[str]:
    """The columns that a class has as a table, sorted, those of all classes first."""
    return [*_FIXED, *_fields(table)]


def _fields(table: ClassTable) -> list[FieldName]:
    return [
        name
        for name, field in sorted(table.schema.fields.items())
        if name not in _HIDDEN and field.kind != "Relation" and name not in table.computed
    ]


def _columns(table: ClassTable) -> str:
    columns = [f't.{column} AS "{name}"' for name, column in _FIXED.items()]
    for name in _fields(table):
        kind = table.schema.fields[name].kind
        column = table.stored_columns.get(name)
        if column is None:
            value = f"({field_expression(name, kind, 't.data')}){_CASTS.get(kind, '')}"
        else:
            value = column.sql("t")
        columns.append(f'{value} AS "{name}"')
    return ", ".join(columns)


def _reader(tables: Iterable[ClassTable]) -> psycopg.Connection[Any]:
    """Return a connection of the role that reads, which may read these classes."""
    url = settings.SQL_CONSOLE_URL
    if url:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
        role = str(parameters.get("user", ""))
    else:
        parameters, role = {"user": READER}, READER
        _make_role()
    for table in tables:
        _grant(table, role)
    return postgres.connect(_PATIENCE, _SESSION, **parameters)


def _make_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER])
        if cursor.fetchone() is None:
            options = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 4"
            name = sql.Identifier(READER).as_string()
            # Another process may have been faster.
            cursor.execute(
                f"DO $$ BEGIN CREATE ROLE {name} {options};"
                " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            )


def _grant(table: ClassTable, role: str) -> None:
    """Let the role read the columns of a class's table."""
    fields = [column.name for name, column in table.stored_columns.items() if name not in _HIDDEN]
    columns = [*_FIXED.values(), "data", *fields]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(has_column_privilege(%s, %s, name, 'SELECT'))"
            " FROM unnest(%s::text[]) name",
            [role, table.storage, [column.strip('"') for column in columns]],
        )
        if cursor.fetchone() != (True,):
            name = sql.Identifier(role).as_string()
            cursor.execute(f"GRANT SELECT ({', '.join(columns)}) ON {table.storage} TO {name}")


def _said(error: psycopg.Error) -> str:
    hint = error.diag.message_hint
    text = error.diag.message_primary or str(error).strip()
    return f"{text}. {hint}" if hint else f"{text}."


def _place(error: psycopg.Error, text: str, before: int) -> str:
    """The line and column of an error within the text, if the server names it."""
    position = error.diag.statement_position
    at = int(position) - 1 - before if position else -1
    if not 0 <= at <= len(text):
        return ""
    line = text.count("\n", 0, at) + 1
    return f"Line {line}, column {at - text.rfind(chr(10), 0, at)}: "

"""A Parse Server's PostgreSQL database, read in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from backend.kernel.json_types import Wire
from backend.operations.parse_import.formats import table_rows
from backend.operations.parse_import.formats.definitions import (
    UNDECLARED,
    ClassDefinition,
    of_table_row,
)
from backend.operations.parse_import.formats.stored_objects import (
    NESTED_TOO_DEEPLY,
    Member,
    UnreadableValue,
)
from backend.operations.parse_import.sources.base import (
    BATCH,
    AppSettings,
    Batch,
    Members,
    SourceFailed,
    definition_of,
    read_batch,
)
from objects.rules import TransferredObject

_CONNECT_TIMEOUT: Final = 10  # seconds


class Database:
    """The database at ``url`` (``postgres://user:password@host/database``).

    Everything is read in one read-only transaction, so it is what was stored at one moment,
    although the Parse Server goes on writing.
    """

    has_password_hashes = True

    def __init__(self, url: str) -> None:
        try:
            self._connection = psycopg.connect(
                url, connect_timeout=_CONNECT_TIMEOUT, row_factory=tuple_row
            )
        except psycopg.Error as error:
            # libpq's messages name host and user, never the password.
            raise SourceFailed(f"the database can't be reached: {str(error).strip()}") from None
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        info = self._connection.info
        self.name = f"postgres://{info.host}:{info.port}/{info.dbname}"
        self._tables = {
            name
            for (name,) in self._rows(
                sql.SQL(
                    "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
                    " WHERE nspname = ANY(current_schemas(false)) AND relkind IN ('r', 'p')"
                )
            )
        }
        if "_SCHEMA" not in self._tables:
            self.close()
            raise SourceFailed(f"{self.name}: no table _SCHEMA, so no Parse Server's database")

    # -- Source -----------------------------------------------------------------------------------

    def classes(self) -> list[ClassDefinition]:
        rows = self._json_rows(sql.SQL('SELECT row_to_json(t)::text FROM "_SCHEMA" t'))
        undeclared = [UNDECLARED[name] for name in UNDECLARED.keys() & self._tables]
        place = f"{self.name}, _SCHEMA"
        return [*(definition_of(of_table_row, row, place) for row in rows), *undeclared]

    def foreign(self) -> list[str]:
        return []  # tables that _SCHEMA doesn't name are never read

    def count(self, definition: ClassDefinition) -> int:
        if definition.name not in self._tables:
            return 0
        ((count,),) = self._rows(
            sql.SQL("SELECT count(*) FROM {table}").format(table=sql.Identifier(definition.name))
        )
        return int(count)

    def objects(self, definition: ClassDefinition, position: str) -> Iterator[Batch]:
        if definition.name not in self._tables:
            return
        statement = sql.SQL(
            'SELECT t."objectId", row_to_json(t)::text FROM {table} t'
            ' WHERE t."objectId" COLLATE "C" > %(after)s'
            ' ORDER BY t."objectId" COLLATE "C" LIMIT %(limit)s'
        ).format(table=sql.Identifier(definition.name))
        while rows := self._rows(statement, {"after": position, "limit": BATCH}):
            position = str(rows[-1][0])
            yield read_batch(position, rows, lambda text: _object(text, definition))

    def members(self, definition: ClassDefinition, key: str, position: str) -> Iterator[Members]:
        table = f"_Join:{key}:{definition.name}"
        if table not in self._tables:
            return
        statement = sql.SQL(
            'SELECT t."owningId", t."relatedId" FROM {table} t'
            ' WHERE (t."owningId" COLLATE "C", t."relatedId" COLLATE "C")'
            " > (%(owning_id)s, %(related_id)s)"
            ' ORDER BY t."owningId" COLLATE "C", t."relatedId" COLLATE "C" LIMIT %(limit)s'
        ).format(table=sql.Identifier(table))
        while True:
            owning_id, _, related_id = position.partition(" ")
            params = {"owning_id": owning_id, "related_id": related_id, "limit": BATCH}
            members = [Member(*row) for row in self._rows(statement, params)]
            if not members:
                return
            position = " ".join(members[-1])
            yield Members(position, members)

    def settings(self) -> AppSettings:
        config: Wire = {"params": {}, "masterKeyOnly": {}}
        for row in self._all("_GlobalConfig"):
            config = {name: row.get(name) or {} for name in config}
        hooks = [
            {name: value for name, value in row.items() if value is not None and name != "objectId"}
            for row in self._all("_Hooks")
        ]
        return AppSettings(config, hooks)

    def close(self) -> None:
        self._connection.close()

    # -- Statements -------------------------------------------------------------------------------

    def _all(self, table: str) -> list[dict[str, Any]]:
        if table not in self._tables:
            return []
        statement = sql.SQL("SELECT row_to_json(t)::text FROM {table} t")
        return self._json_rows(statement.format(table=sql.Identifier(table)))

    def _json_rows(
        self, statement: sql.SQL | sql.Composed, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        return [json.loads(text) for (text,) in self._rows(statement, params)]

    def _rows(
        self, statement: sql.SQL | sql.Composed, params: dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, params).fetchall()
        except psycopg.Error as error:
            raise SourceFailed(f"{self.name}: {str(error).strip()}") from None


def _object(text: str, definition: ClassDefinition) -> TransferredObject:
    try:
        row = json.loads(text)
    except RecursionError:
        raise UnreadableValue(NESTED_TOO_DEEPLY) from None
    return table_rows.read(row, definition)

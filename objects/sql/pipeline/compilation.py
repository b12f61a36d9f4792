"""The compilation of one pipeline, and the registry of the stages' SQL.

The SQL of a stage is one class in ``objects.sql.pipeline.stages``, derived from ``StageSql`` and
registered for its node class by ``sql_of``. Each stage is a SELECT over the one before
(``objects.sql.pipeline.rows``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final, Generic, TypeVar

from objects.core.pipeline.costs import Limits
from objects.core.pipeline.stage import Stage, Stages
from objects.core.query.tree import Query
from objects.sql.compiler import Scope, compile_query
from objects.sql.fragments import Sql
from objects.sql.pipeline.rows import (
    BY_AGE,
    DocumentSource,
    ObjectSource,
    Rows,
    documents_of,
    from_rows,
    order_clause,
)
from objects.sql.pipeline.sizes import document_guard, object_guard
from objects.sql.registration import register
from objects.sql.tables import ClassTable

S = TypeVar("S", bound=Stage)


class StageSql(Generic[S]):
    """The SQL of one class of stages. Instances have no state."""

    def rows(self, stage: S, rows: Rows, compilation: Compilation) -> Rows:
        """Return the rows that come out of the stage."""
        raise NotImplementedError


READINGS: Final[dict[type[Stage], StageSql[Stage]]] = {}
"""The SQL of each class of stages; filled by ``sql_of``."""

R = TypeVar("R", bound=StageSql)


def sql_of(*stages: type[Stage]) -> Callable[[type[R]], type[R]]:
    """Register the SQL of classes of stages. Raises ``TypeError`` for one that has its SQL."""
    return register(READINGS, stages)


class Compilation:
    """What stages are compiled with: the classes of a request, and unused names.

    ``limits`` are the sizes at which the statement stops.
    """

    def __init__(self, scope: Scope, limits: Limits) -> None:
        self.scope = scope
        self.limits = limits
        self._numbers = count(1)

    def alias(self) -> str:
        """Return an alias that the statement doesn't have yet."""
        return f"r{next(self._numbers)}"

    def new_column(self) -> str:
        """Return a column's name that the statement doesn't have yet."""
        return f"o{next(self._numbers)}"

    def source(self, rows: Rows, alias: str) -> ObjectSource | DocumentSource:
        """Return how expressions read rows that stand in FROM under the alias."""
        return DocumentSource(alias) if rows.table is None else ObjectSource(rows.table, alias)

    def guarded(self, value: Sql, rows: Rows, alias: str, kind: str = "jsonb") -> Sql:
        """Return a value of a row under the alias; it is an error for rows that are too large."""
        if rows.table is None:
            return document_guard(value, alias, self.limits.document, kind)
        return object_guard(value, rows.table, alias, self.limits.document, kind)

    def objects(
        self, table: ClassTable, where: Query, alias: str | None = None, extra: Sql | None = None
    ) -> Rows:
        """Return the objects of a class that fulfil a query, and an additional condition."""
        alias = alias or self.alias()
        matches = compile_query(where, table, alias, self.scope)
        if extra is not None:
            matches = matches + " AND " + extra
        select = f"SELECT {alias}.* FROM {table.relation} AS {alias} WHERE " + matches
        return Rows(select, table, BY_AGE)

    def documents(self, rows: Rows) -> Rows:
        """Return the rows as documents."""
        if rows.table is None:
            return rows
        alias = self.alias()
        data = ObjectSource(rows.table, alias).document("_id", "_created_at", "_updated_at")
        return documents_of(self.guarded(data, rows, alias) + " AS data", rows, alias)

    def part(self, rows: Rows, word: str, number: int) -> Rows:
        """Return the rows with LIMIT or OFFSET."""
        alias = self.alias()
        limit = Sql(f"{order_clause(rows, alias)} {word} %s::bigint", (number,))
        select = f"SELECT {alias}.*" + from_rows(rows, alias) + limit
        return Rows(select, rows.table, rows.order)

    def run(self, rows: Rows, stages: Stages) -> Rows:
        """Return the rows that come out of the stages."""
        for stage in stages:
            rows = READINGS[type(stage)].rows(stage, rows, self)
        return rows

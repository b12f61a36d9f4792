"""Objects in PostgreSQL: the statements, one round trip each.

Nothing is decided here about who may do what: the caller hands in a constraint tree that holds
the client's ``where`` and the policy's conditions, and gets what satisfies it. Every statement
compares the version of the class that it was made for with the database's, in its own snapshot;
``StaleClass`` tells the caller to reload the class and retry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, Final

import msgspec
from psycopg.errors import ProgramLimitExceeded

from backend.kernel.errors import ObjectTooLarge, ServiceError
from backend.kernel.json_types import Json
from backend.kernel.memory_pool import ResultMemory
from objects.access.scope import Scope
from objects.core.indexes.shapes import served_equality
from objects.core.names import ClassName, FieldName, ObjectId
from objects.core.query.tree import (
    AllOf,
    Compare,
    Everything,
    OneOfIds,
    OrderKey,
    Query,
    ReadableBy,
    all_of,
)
from objects.database.statements import fetch
from objects.definitions.indexes import is_ordered_by_index
from objects.learned import shape_counts
from objects.sql.compiler import Sql, compile_query, order_by, score_expression
from objects.sql.rows import Selection, object_columns
from objects.sql.tables import ClassTable
from objects.storage import large_classes
from objects.storage.records import Record

_NO_FIELDS: Final[frozenset[FieldName]] = frozenset()
_STOPPED: Final = 0.1
"""Seconds after which a statement that fails was stopped for taking long."""
_LIMITS: Final = {
    limit: f" LIMIT {limit}"
    for limit in (*range(1, 51), 60, 75, 80, 90, 100, 120, 150, 200, 250, 300, 400, 500, 1000)
}
"""Limits that stand in the text of prepared statements. For a limit that is a parameter, PostgreSQL
estimates a tenth of all rows, finds a plan for all values too expensive, and plans each call. They
are a fixed set, so clients can't make statements without end."""


class StaleClass(Exception):
    """A class in memory is not the class in the database any more."""

    def __init__(self, class_names: Iterable[ClassName]) -> None:
        super().__init__()
        self.class_names = tuple(class_names)


def get(
    table: ClassTable,
    object_id: ObjectId,
    where: Query,
    scope: Scope,
    memory: ResultMemory | None = None,
) -> Record | None:
    """Return the object with this id if it satisfies the constraint.

    ``memory`` counts it.
    """
    condition = compile_query(where, table, "t", scope)
    guard, guard_params = _guard(table, scope)
    rows = fetch(
        f"SELECT {guard}, {object_columns(table, 't')} FROM objects_class c"
        f" LEFT JOIN {table.relation} t ON t.object_id = %s AND {condition.text}"
        " WHERE c.id = %s",
        (*guard_params, object_id, *condition.params, table.class_id),
        prepare=True,
        is_limited=scope.is_limited,
        is_read=True,
    )
    record = next(iter(_records(table, scope, rows)), None)
    if record is not None and memory is not None:
        record.count(memory)
    return record


def find(
    table: ClassTable,
    where: Query,
    scope: Scope,
    *,
    order: Sequence[OrderKey],
    limit: int,
    skip: int = 0,
    with_score: bool = False,
    selection: Selection | None = None,
    memory: ResultMemory,
) -> list[Record]:
    """Return the matching objects, sorted; ties are sorted by object id, for stable paging.

    ``with_score`` adds the rank of the text search to each as ``score``, if there is a search.
    ``selection`` reads some fields of each object alone.
    """
    has_one_plan = _has_one_plan(table, where, order)
    score = score_expression(where, table, "t") if with_score else None
    page = _page(table, where, scope, order, limit, skip, is_prepared=has_one_plan, score=score)
    guard, guard_params = _guard(table, scope)
    # One row of the class joined to the objects: without objects the version still comes back,
    # and a nested loop over one row keeps the order of the inner select. Rows become text outside
    # of it, for PostgreSQL would do that before it sorts, to all that are left out in the end too.
    columns = object_columns(table, "t", None if score is None else _SCORE, selection)
    begin = perf_counter()
    try:
        rows = fetch(
            f"SELECT {guard}, {columns}"
            f" FROM objects_class c LEFT JOIN LATERAL ({page.text}) t ON true WHERE c.id = %s",
            (*guard_params, *page.params, table.class_id),
            prepare=has_one_plan,
            is_limited=scope.is_limited,
            is_read=True,
            memory=memory,
        )
    except ServiceError:
        _note_stopped(table, where, order, begin)
        raise
    seconds = perf_counter() - begin
    records = _records(table, scope, rows)
    shape_counts.note(table, where, order, seconds, len(records))
    return records


_SCORE: Final = '"$score"'
"""The column of a page that has the rank of a text search."""


def _page(
    table: ClassTable,
    where: Query,
    scope: Scope,
    order: Sequence[OrderKey],
    limit: int,
    skip: int,
    *,
    is_prepared: bool,
    score: Sql | None = None,
) -> Sql:
    """Return the statement that selects the rows of a page."""
    led = served_equality(table.learned, where, order) if table.learned else _NO_FIELDS
    condition = compile_query(where, table, "t", scope, led)
    sorting = order_by(order, table, "t", where)
    paging = _paging(limit, skip, is_prepared=is_prepared)
    if score is None:
        first = large_classes.read_first(table, where, order, skip + limit, len(condition.params))
        if first is not None:
            return large_classes.selection(table, condition, sorting, paging, first)
    columns = Sql("*") if score is None else "t.*, " + score + f" AS {_SCORE}"
    return (
        "SELECT "
        + columns
        + f" FROM {table.relation} t WHERE "
        + condition
        + " "
        + sorting
        + paging
    )


def explain(
    table: ClassTable,
    where: Query,
    scope: Scope,
    *,
    order: Sequence[OrderKey],
    limit: int,
    skip: int = 0,
) -> Json:
    """Return PostgreSQL's plan of a ``find``, which isn't executed."""
    return plan(table, _page(table, where, scope, order, limit, skip, is_prepared=False), scope)


def plan(table: ClassTable, statement: Sql, scope: Scope) -> Json:
    """Return PostgreSQL's plan of a statement about the class, which isn't executed."""
    guard, guard_params = _guard(table, scope)
    versions = fetch(
        f"SELECT {guard} FROM objects_class c WHERE c.id = %s",
        (*guard_params, table.class_id),
        prepare=False,
        is_limited=scope.is_limited,
        is_read=True,
    )
    _check_guard(table, scope, versions)
    rows = fetch(
        f"EXPLAIN (FORMAT JSON) {statement.text}",
        statement.params,
        prepare=False,
        is_limited=scope.is_limited,
        is_read=True,
    )
    (result,) = msgspec.json.decode(rows[0][0]) if isinstance(rows[0][0], str) else rows[0][0]
    return result


def _note_stopped(table: ClassTable, where: Query, order: Sequence[OrderKey], begin: float) -> None:
    """Count a statement that failed: the slowest are stopped by a time limit.

    Refused statements took no time.
    """
    seconds = perf_counter() - begin
    if seconds >= _STOPPED:
        shape_counts.note(table, where, order, seconds)


def by_ids(
    table: ClassTable, ids: Iterable[str], where: Query, scope: Scope, memory: ResultMemory
) -> list[Record]:
    """Return the objects with these ids that satisfy the constraint, in no order."""
    condition = compile_query(all_of(OneOfIds(frozenset(ids)), where), table, "t", scope)
    guard, guard_params = _guard(table, scope)
    rows = fetch(
        f"SELECT {guard}, {object_columns(table, 't')} FROM objects_class c"
        f" LEFT JOIN {table.relation} t ON {condition.text} WHERE c.id = %s",
        (*guard_params, *condition.params, table.class_id),
        prepare=True,
        is_limited=scope.is_limited,
        is_read=True,
        memory=memory,
    )
    return _records(table, scope, rows)


def count(table: ClassTable, where: Query, scope: Scope) -> int:
    """Return how many objects satisfy the constraint, exactly."""
    led = served_equality(table.learned, where, ()) if table.learned else _NO_FIELDS
    condition = compile_query(where, table, "t", scope, led)
    guard, guard_params = _guard(table, scope)
    begin = perf_counter()
    try:
        rows = fetch(
            f"SELECT {guard}, (SELECT count(*) FROM {table.relation} t WHERE {condition.text})"
            " FROM objects_class c WHERE c.id = %s",
            (*guard_params, *condition.params, table.class_id),
            prepare=False,
            is_limited=scope.is_limited,
            is_read=True,
        )
    except ServiceError:
        _note_stopped(table, where, (), begin)
        raise
    seconds = perf_counter() - begin
    _check_guard(table, scope, rows)
    number = int(rows[0][1] or 0)
    shape_counts.note(table, where, (), seconds, number)
    return number


def select(table: ClassTable, statement: Sql, scope: Scope, memory: ResultMemory) -> list[str]:
    """Run a statement that gives one jsonb column ``value``; the values as JSON text, in order.

    For aggregation, whose statements ``objects.sql.pipeline`` makes.
    """
    guard, guard_params = _guard(table, scope)
    try:
        rows = fetch(
            f"SELECT {guard}, s.found, s.value FROM objects_class c LEFT JOIN LATERAL"
            f" (SELECT true AS found, a.value::text AS value FROM ({statement.text}) a) s ON true"
            " WHERE c.id = %s",
            (*guard_params, *statement.params, table.class_id),
            prepare=False,
            is_limited=scope.is_limited,
            is_read=True,
            memory=memory,
        )
    except ProgramLimitExceeded:
        raise ObjectTooLarge(
            "The aggregation makes a document or an array that is too large:"
            " use fewer objects or copy fewer values."
        ) from None
    _check_guard(table, scope, rows)
    return [value for _, exists, value in rows if exists is not None and value is not None]


def _has_one_plan(table: ClassTable, where: Query, order: Sequence[OrderKey]) -> bool:
    """Return whether one plan is the best for all values of a query of this shape.

    It is without a client's constraints, and for ranges of the field that the result is sorted
    by, if that has an index: PostgreSQL walks along it from the first value on.
    """
    parts = where.parts if isinstance(where, AllOf) else (where,)
    ranges = {part.path for part in parts if isinstance(part, Compare)}
    if not all(isinstance(part, Everything | OneOfIds | ReadableBy | Compare) for part in parts):
        return False
    if not ranges:
        return True
    return bool(order) and ranges == {order[0].path} and is_ordered_by_index(table, order[0].path)


def _paging(limit: int, skip: int, *, is_prepared: bool) -> Sql:
    """Return the clause. In a prepared statement, a usual limit stands in the text."""
    if skip:
        return Sql(" LIMIT %s OFFSET %s", (limit, skip))
    text = _LIMITS.get(limit) if is_prepared else None
    return Sql(" LIMIT %s", (limit,)) if text is None else Sql(text)


def _guard(table: ClassTable, scope: Scope) -> tuple[str, tuple[Any, ...]]:
    """Return the expression that reads the versions of all classes of a compiled statement.

    ``compile_query`` adds the classes of subqueries to the scope.
    """
    other_tables = scope.others(table)
    if not other_tables:
        return "c.version", ()
    return (
        "(SELECT string_agg(g.version::text, ',' ORDER BY g.id) FROM objects_class g"
        " WHERE g.id = ANY(%s))",
        ([table.class_id, *(other.class_id for other in other_tables)],),
    )


def _check_guard(table: ClassTable, scope: Scope, rows: Sequence[Sequence[Any]]) -> None:
    other_tables = scope.others(table)
    expected = str(table.version)
    if other_tables:
        tables = sorted({table.class_id: table, **{o.class_id: o for o in other_tables}}.items())
        expected = ",".join(str(read_table.version) for _, read_table in tables)
    if not rows or rows[0][0] != expected:
        raise StaleClass((table.class_name, *(other.class_name for other in other_tables)))


def _records(table: ClassTable, scope: Scope, rows: Sequence[Sequence[Any]]) -> list[Record]:
    _check_guard(table, scope, rows)
    return [Record(table, row[1:]) for row in rows if row[1] is not None]  # type: ignore[arg-type]

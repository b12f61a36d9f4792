"""Finds in large classes: a statement that doesn't depend on an estimate of how many objects match.

PostgreSQL either reads all matches from an index and sorts them, or reads the objects in order
until enough of them match. It estimates which takes less, but for values in JSON and words of texts
its estimates are defaults: a value is taken for one that at least one in 10,000 objects has, a
value in one of its 100 samples for one in 100, an unknown word for up to one in 200. If fewer
objects match, reading in order reads the whole class.

So the statement reads up to ``FEW`` matches first. If there are fewer, it sorts them. Otherwise
reading in order ends soon. Measured in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final

from objects.core.names import OBJECT_ID, UPDATED_AT
from objects.core.query import AllOf, ContainsAll, Equals, In, OrderKey, Query, Text
from objects.database import fetch
from objects.indexes import is_ordered_by_index
from objects.sql import Sql
from objects.tables import ClassTable

LARGE: Final = 200_000
"""Objects; PostgreSQL reads so many in about 0.1 s."""
FEW: Final = 150
_LOOK_EVERY: Final = 60.0
"""Seconds for which the size of a class is remembered."""
_MOST_REMEMBERED: Final = 10_000

_sizes: dict[int, tuple[float, float]] = {}  # objects, and when that was read, by class


def is_guessed(table: ClassTable, where: Query, order: Sequence[OrderKey]) -> bool:
    """Whether the best plan depends on a number of matches that PostgreSQL has no statistics of."""
    if not order or not table.is_partition:
        return False
    if order[0].path != (OBJECT_ID,) and not is_ordered_by_index(table, order[0].path):
        return False
    parts = where.parts if isinstance(where, AllOf) else (where,)
    return any(_is_guessed(table, part) for part in parts)


def _is_guessed(table: ClassTable, part: Query) -> bool:
    if isinstance(part, Text):
        declared = table.schema.indexes.values()
        return any(direction == "text" for index in declared for _, direction in index.fields)
    if isinstance(part, Equals):
        has_values = part.value is not None
    elif isinstance(part, In | ContainsAll):
        has_values = None not in part.values
    else:
        return False
    # Of columns, and of what an index begins with, there are statistics.
    is_known = part.path == (UPDATED_AT,) or is_ordered_by_index(table, part.path)
    return has_values and not is_known


def is_large(table: ClassTable) -> bool:
    """Whether the class has about ``LARGE`` objects or more; asks the database once a minute."""
    now = monotonic()
    known = _sizes.get(table.class_id)
    if known is None or now - known[1] > _LOOK_EVERY:
        rows = fetch(
            "SELECT greatest(c.reltuples, pg_stat_get_live_tuples(c.oid)) FROM pg_class c"
            " WHERE c.oid = to_regclass(%s)",
            (table.storage,),
            prepare=True,
            is_read=True,
        )
        if len(_sizes) >= _MOST_REMEMBERED:
            _sizes.clear()
        known = _sizes[table.class_id] = (float(rows[0][0] or 0) if rows else 0, now)
    return known[0] >= LARGE


def forget_sizes() -> None:
    """Read the sizes of classes again."""
    _sizes.clear()


def selection(table: ClassTable, condition: Sql, sorting: Sql, paging: Sql) -> Sql:
    """Return the ``SELECT`` of one page of the rows ``t`` that satisfy the condition, sorted."""
    # PostgreSQL plans what is inside of OFFSET 0 without the limit: by an index of the condition.
    matches = f"SELECT * FROM {table.relation} t WHERE " + condition
    number = "(SELECT count(*) FROM few)"
    page = " " + sorting + paging
    return (
        "WITH few AS MATERIALIZED (SELECT * FROM ("
        + matches
        + f" OFFSET 0) t LIMIT {FEW}) (SELECT * FROM few t WHERE {number} < {FEW}"
        + page
        + ") UNION ALL ("
        + matches
        + f" AND {number} >= {FEW}"
        + page
        + ")"
    )

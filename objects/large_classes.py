"""Finds in large classes: a statement whose cost depends less on PostgreSQL's estimates.

PostgreSQL either reads all matches from an index and sorts them, or reads the objects in order
until enough of them match. It estimates which takes less, but for values in JSON and for words it
has defaults: it assumes that at least 1 in 10,000 objects has a value, 1 in 100 if one of its 100
samples has it, and up to 1 in 200 an unknown word. If fewer objects match, reading in order reads
the whole class.

Here the statement first reads a limited number of matches from an index. If there are no more, it
sorts them; otherwise it continues as PostgreSQL estimates. The measurements, and what this doesn't
cover, are in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final

from objects.core.names import UPDATED_AT
from objects.core.query import AllOf, ContainsAll, Equals, In, OrderKey, Query, Text
from objects.core.text import DEFAULT_LANGUAGE
from objects.database import fetch
from objects.indexes import is_ordered_by_index
from objects.sql import Sql
from objects.tables import ClassTable

LARGE: Final = 200_000
"""Objects; PostgreSQL reads so many in about 0.1 s."""
VALUE_MATCHES: Final = 150
"""Matches of values that are sorted, at least."""
WORD_MATCHES: Final = 5000
"""Matches of text searches that are sorted, at least: comparing an object in order means parsing
its text."""
_TIMES: Final = 3
"""At least so many times as many matches are sorted as a page ends at."""
_LAST: Final = 1000
"""Pages that end behind this are left to PostgreSQL."""
_MOST_VALUES: Final = 100
"""Longer lists of values aren't always served by an index."""
_SIZE_TTL: Final = 60.0  # seconds
_MOST_SIZES: Final = 10_000

_sizes: dict[int, tuple[float, float]] = {}  # objects, and when that was read, by class


def sorted_matches(
    table: ClassTable, where: Query, order: Sequence[OrderKey], last: int
) -> int | None:
    """How many matches to read before objects are read in order, for a page that ends at ``last``.

    None for finds that are left to PostgreSQL: those in an order that no index gives, those whose
    conditions it has statistics of, and those in classes that aren't large.
    """
    if last > _LAST or not table.is_partition:
        return None
    if not order or not is_ordered_by_index(table, order[0].path):
        return None
    parts = where.parts if isinstance(where, AllOf) else (where,)
    if any(_has_statistics(table, part) for part in parts):
        return None
    if any(_is_in_text_index(table, part) for part in parts):
        least = WORD_MATCHES
    elif any(_is_in_index_of_all(part) for part in parts):
        least = VALUE_MATCHES
    else:
        return None
    return max(least, _TIMES * last) if is_large(table) else None


def _has_statistics(table: ClassTable, part: Query) -> bool:
    return isinstance(part, Equals | In) and (
        part.path == (UPDATED_AT,) or is_ordered_by_index(table, part.path)
    )


def _is_in_text_index(table: ClassTable, part: Query) -> bool:
    """Whether the index of texts serves a condition (``text_sql.document_expression``)."""
    if not isinstance(part, Text) or part.diacritic_sensitive or part.language != DEFAULT_LANGUAGE:
        return False
    for index in table.schema.indexes.values():
        names = [name for name, direction in index.fields if direction == "text"]
        if names:
            return part.path is None or [*part.path] == names
    return False


def _is_in_index_of_all(part: Query) -> bool:
    """Whether the index of all fields serves a condition."""
    if isinstance(part, Equals):
        return part.value is not None
    if isinstance(part, In | ContainsAll):
        return None not in part.values and 0 < len(part.values) <= _MOST_VALUES
    return False


def is_large(table: ClassTable) -> bool:
    """Whether the class has about ``LARGE`` objects or more.

    Asks the database once a minute for each class and process.
    """
    now = monotonic()
    size = _sizes.get(table.class_id)
    if size is None or now - size[1] > _SIZE_TTL:
        rows = fetch(
            "SELECT greatest(c.reltuples, pg_stat_get_live_tuples(c.oid)) FROM pg_class c"
            " WHERE c.oid = to_regclass(%s)",
            (table.storage,),
            prepare=True,
            is_read=True,
        )
        if len(_sizes) >= _MOST_SIZES:
            _sizes.clear()
        size = _sizes[table.class_id] = (float(rows[0][0] or 0) if rows else 0, now)
    return size[0] >= LARGE


def forget_sizes() -> None:
    """Discard the cached sizes of classes. For tests."""
    _sizes.clear()


def selection(table: ClassTable, condition: Sql, sorting: Sql, paging: Sql, most: int) -> Sql:
    """Return the ``SELECT`` of one page of the rows ``t`` that satisfy the condition, sorted.

    Up to ``most`` matches are read and sorted.
    """
    # A materialized CTE is planned as if it was read whole, so by an index of the condition, and is
    # read only as far as needed. PostgreSQL would plan a subquery for the limit outside of it.
    matches = f"SELECT * FROM {table.relation} t WHERE " + condition
    count = "(SELECT count(*) FROM few)"
    page = " " + sorting + paging
    return (
        "WITH matches AS MATERIALIZED ("
        + matches
        + f"), few AS MATERIALIZED (SELECT * FROM matches LIMIT {most + 1})"
        + f" (SELECT * FROM few t WHERE {count} <= {most}"
        + page
        + ") UNION ALL ("
        + matches
        + f" AND {count} > {most}"
        + page
        + ")"
    )

"""Finds in large classes: a statement whose cost depends less on PostgreSQL's estimates.

PostgreSQL either reads all matches from an index and sorts them, or reads the objects in order
until enough of them match. It estimates which takes less, but for values in JSON and for words it
has defaults: it assumes that at least 1 in 10,000 objects has a value, 1 in 100 if one of its 100
samples has it, and up to 1 in 200 an unknown word. If fewer objects match, reading in order reads
the whole class.

Here the statement first reads a limited number of objects that an index finds by those conditions
alone. If there are no more, it filters and sorts them; otherwise it continues as PostgreSQL
estimates. The measurements, and what this doesn't cover, are in docs/decisions/objects.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from objects.core.names import UPDATED_AT
from objects.core.query.text import DEFAULT_LANGUAGE
from objects.core.query.tree import AllOf, ContainsAll, Equals, In, OrderKey, Query, Text
from objects.definitions.indexes import is_ordered_by_index
from objects.learned import evidence
from objects.sql import index_of_all
from objects.sql.compiler import compile_query
from objects.sql.fragments import Sql, both
from objects.sql.tables import ClassTable

LARGE: Final = 200_000
"""Objects; PostgreSQL reads so many in about 0.1 s."""
VALUE_MATCHES: Final = 150
"""Matches of values that are sorted, at least."""
WORD_MATCHES: Final = 1000
"""Matches of text searches that are sorted, at least: to compare an object in order, its text is
parsed."""
_TIMES: Final = 3
"""At least so many times as many matches are sorted as a page ends at."""
_LAST: Final = 1000
"""Pages that end behind this are left to PostgreSQL."""
_MOST_PARAMS: Final = 1000
"""Parameters of a condition: they are sent twice."""
_MAY_BE_SERVED: Final = (Equals, In, ContainsAll, Text)
_SIZE_TTL: Final = 60.0  # seconds
_MOST_SIZES: Final = 10_000

_sizes: dict[int, tuple[float, float]] = {}  # objects, and when that was read, by class


@dataclass(frozen=True, slots=True)
class First:
    """What is read first: up to ``most`` objects that an index finds by ``condition``."""

    condition: Sql
    most: int


def read_first(
    table: ClassTable, where: Query, order: Sequence[OrderKey], last: int, params: int
) -> First | None:
    """What to read first for a page that ends at ``last``; ``params`` has the whole condition.

    None for finds that are left to PostgreSQL: those in an order that no index gives, those whose
    conditions it has statistics of or no index serves, and those in classes that aren't large.
    """
    parts = where.parts if isinstance(where, AllOf) else (where,)
    if not any(isinstance(part, _MAY_BE_SERVED) for part in parts):
        return None
    if last > _LAST or params > _MOST_PARAMS or not table.is_partition:
        return None
    if not order or not is_ordered_by_index(table, order[0].path):
        return None
    if any(_has_statistics(table, part) for part in parts):
        return None
    words = [part for part in parts if _is_in_text_index(table, part)]
    values = [part for part in parts if isinstance(part, Equals | In | ContainsAll)]
    if not (words or values) or not is_large(table):
        return None
    served = [compile_query(part, table) for part in words]
    conditions = [compile_query(part, table) for part in values]
    served += [
        condition
        for condition in conditions
        if index_of_all.is_served(condition, "t.data", table.indexed)
    ]
    if not served:
        return None
    least = WORD_MATCHES if words else VALUE_MATCHES
    return First(both(served), max(least, _TIMES * last))


def _has_statistics(table: ClassTable, part: Query) -> bool:
    return isinstance(part, Equals | In) and (
        part.path == (UPDATED_AT,) or is_ordered_by_index(table, part.path)
    )


def _is_in_text_index(table: ClassTable, part: Query) -> bool:
    """Return whether the index of texts serves a condition (``full_text_search``)."""
    if not isinstance(part, Text) or part.diacritic_sensitive or part.language != DEFAULT_LANGUAGE:
        return False
    for index in table.schema.indexes.values():
        names = [name for name, direction in index.fields if direction == "text"]
        if names:
            return part.path is None or [*part.path] == names
    return False


def is_large(table: ClassTable) -> bool:
    """Return whether the class has about ``LARGE`` objects or more.

    Asks the database once a minute for each class and process.
    """
    now = monotonic()
    size = _sizes.get(table.class_id)
    if size is None or now - size[1] > _SIZE_TTL:
        if len(_sizes) >= _MOST_SIZES:
            _sizes.clear()
        size = _sizes[table.class_id] = (evidence.size_of(table).rows, now)
    return size[0] >= LARGE


def forget_sizes() -> None:
    """Discard the cached sizes of classes. For tests."""
    _sizes.clear()


def selection(table: ClassTable, condition: Sql, sorting: Sql, paging: Sql, first: First) -> Sql:
    """Return the ``SELECT`` of one page of the rows ``t`` that satisfy the condition, sorted."""
    # A materialized CTE is planned as if it was read whole, so by an index of the condition, and is
    # read only as far as needed. PostgreSQL would plan a subquery for the limit outside of it.
    rows = f"SELECT * FROM {table.relation} t WHERE "
    count = "(SELECT count(*) FROM few)"
    page = " " + sorting + paging
    return (
        ("WITH matches AS MATERIALIZED (" + rows + first.condition)
        + f"), few AS MATERIALIZED (SELECT * FROM matches LIMIT {first.most + 1})"
        + f" (SELECT * FROM few t WHERE {count} <= {first.most} AND "
        + condition
        + page
        + f") UNION ALL ({rows}{count} > {first.most} AND "
        + condition
        + page
        + ")"
    )

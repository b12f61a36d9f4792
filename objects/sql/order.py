"""The order of a class's rows in SQL: the same as ``predicate.sorted_objects`` in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from objects.core.names import OBJECT_ID
from objects.core.query import tree
from objects.core.query.tree import OrderKey, Query
from objects.sql import full_text_search as text_sql
from objects.sql import geo_formulas
from objects.sql.fields import NULLS, TEXT_KEYS, read
from objects.sql.fragments import Sql
from objects.sql.tables import ClassTable

_LAST_KEY: Final = OrderKey((OBJECT_ID,))


def order_by(
    order: Sequence[OrderKey], table: ClassTable, alias: str = "t", where: Query | None = None
) -> Sql:
    """Return the ``ORDER BY`` clause: missing first when ascending, last when descending.

    Without keys, a top-level Near of ``where`` sorts by distance. objectId is the last key, in
    the direction of the key before it, so the order is total and one index can serve it.
    """
    keys: list[tuple[Sql, bool]] = []
    near = tree.near_of(where) if where else None
    if not order and near is not None:
        keys.append((geo_formulas.near_distance(near, read(table, near.path, alias)), False))
    for key in order:
        if key.is_score:
            score = score_expression(where, table, alias)
            if score is not None:
                # The best score first, regardless of the sign: SDKs send this key without one.
                keys.append((score, True))
        else:
            keys.extend((part, key.descending) for part in sort_expressions(table, key, alias))
    if not any(key.path == (OBJECT_ID,) for key in order):
        last = order[-1].descending if order else False
        keys += [(part, last) for part in sort_expressions(table, _LAST_KEY, alias)]
    text: list[str] = []
    params: list[Any] = []
    for part, descending in keys:
        # Of columns that are never null an index is in PostgreSQL's own order.
        nulls = "" if part.text in never_null(alias) else NULLS[descending]
        text.append(part.text + (" DESC" if descending else " ASC") + nulls)
        params.extend(part.params)
    return Sql("ORDER BY " + ", ".join(text), tuple(params))


def score_expression(where: Query | None, table: ClassTable, alias: str = "t") -> Sql | None:
    """Return the rank of a row in the top-level text search; None if the query has none."""
    text = tree.text_of(where) if where else None
    if text is None:
        return None
    return text_sql.score(text, text_sql.documents(text, table, alias))


@lru_cache(maxsize=64)
def never_null(alias: str) -> frozenset[str]:
    """Return the sort expressions of the columns that every row has a value in."""
    return frozenset(
        (f'({alias}.object_id COLLATE "C")', f"{alias}.created_at", f"{alias}.updated_at")
    )


def sort_expressions(table: ClassTable, key: OrderKey, alias: str) -> list[Sql]:
    """What to sort by for one key, each ascending with NULLs first; none for an unknown field."""
    reading = read(table, key.path, alias)
    if reading.is_whole:
        if reading.kind is None:
            return []
        if reading.typed is not None and reading.kind != "GeoPoint":
            if reading.sorts_by_short and reading.short is not None:
                # In the order of the learned index, and in full where beginnings are the same.
                return [Sql(reading.short), Sql(reading.typed)]
            return [Sql(reading.typed)]
        if reading.kind == "Relation":
            return []
        # Lists and objects have no order but that of being there.
        return [Sql(f"(NULLIF({reading.json}, 'null'::jsonb) IS NOT NULL)")]
    value = Sql(f"({reading.base}#>%s::text[])", (list(reading.steps),))
    return _sort_any(value)


def _sort_any(value: Sql) -> list[Sql]:
    """A value of unknown kind, in MongoDB's order of kinds (see ``predicate.sort_value``)."""
    v, params = value.text, value.params
    rank = (
        f"(CASE jsonb_typeof({v}) WHEN 'number' THEN 1 WHEN 'string' THEN 2 WHEN 'object' THEN"
        f" CASE WHEN ({v}->>'__type') = 'Date' THEN 6 ELSE 3 END WHEN 'array' THEN 4"
        f" WHEN 'boolean' THEN 5 ELSE 0 END)"
    )
    number = f"(CASE WHEN jsonb_typeof({v}) = 'number' THEN ({v})::numeric END)"
    typed = " ".join(f"WHEN '{name}' THEN {v}->>'{key}'" for name, key in TEXT_KEYS.items())
    text = (
        f"((CASE jsonb_typeof({v}) WHEN 'string' THEN {v}#>>'{{}}' WHEN 'boolean' THEN"
        f" {v}#>>'{{}}' WHEN 'object' THEN CASE {v}->>'__type' {typed} END END) COLLATE \"C\")"
    )
    return [Sql(part, params * part.count("%s")) for part in (rank, number, text)]

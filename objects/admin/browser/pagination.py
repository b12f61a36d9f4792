"""Pages of a table by where the last one ended, so that the millionth row is as near as the first.

A page is the rows after (or before) an *edge*: the sort value and the id of a row. Rows without a
value come first when ascending and last when descending, as the store sorts them; they are a
segment of their own, since no range of values holds them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from backend.kernel.errors import InvalidQuery
from backend.kernel.json_types import Json
from backend.kernel.limits.result_memory import largest_fitting
from objects.core.names import CREATED_AT, OBJECT_ID, FieldName, is_field_name, is_object_id
from objects.core.query.tree import AnyOf, Compare, Exists, Query, all_of
from objects.core.query.tree import OrderKey as Key
from objects.core.schema.definition import ClassSchema
from objects.core.values import date, kind, normalise

SORTABLE: Final = frozenset({"String", "Number", "Boolean", "Date"})
_NEVER_NULL: Final = frozenset({"objectId", "createdAt", "updatedAt"})
_TIMES: Final = frozenset({"createdAt", "updatedAt"})

Row = dict[str, Json]
Find = Callable[[Query, tuple[Key, ...], int], list[Row]]


@dataclass(frozen=True, slots=True)
class Edge:
    """A row by what a page is cut at."""

    value: Json
    object_id: str

    def encode(self) -> str:
        text = msgspec.json.encode([self.value, self.object_id])
        return base64.urlsafe_b64encode(text).decode().rstrip("=")


def decode_edge(text: str) -> Edge:
    """Return the edge in a link. Raises ``InvalidQuery`` for an invalid one."""
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidQuery("page: there is no such page") from None
    if not isinstance(decoded, list) or len(decoded) != 2 or not isinstance(decoded[1], str):
        raise InvalidQuery("page: there is no such page")
    value = normalise(decoded[0], "page")
    if (value is not None and kind(value) not in SORTABLE) or not is_object_id(decoded[1]):
        raise InvalidQuery("page: there is no such page")
    return Edge(value, decoded[1])


@dataclass(frozen=True, slots=True)
class Sorting:
    """One field to sort by."""

    name: FieldName
    descending: bool = False

    def __str__(self) -> str:
        return f"-{self.name}" if self.descending else self.name

    def reversed(self) -> Sorting:
        return Sorting(self.name, not self.descending)

    def edge(self, row: Row) -> Edge:
        value = row.get(self.name)
        if self.name in _TIMES:
            value = date(str(value))
        return Edge(value, str(row["objectId"]))


NEWEST_FIRST: Final = Sorting(CREATED_AT, descending=True)


def read_sorting(text: str, schema: ClassSchema) -> Sorting:
    """``name`` or ``-name``; newest first if empty. Raises ``InvalidQuery``."""
    if not text:
        return NEWEST_FIRST
    name = text.removeprefix("-")
    if (
        not is_field_name(name)
        or (field := schema.field_type(name)) is None
        or field.kind not in SORTABLE
    ):
        raise InvalidQuery(f"order: {schema.class_name} can't be sorted by this")
    return Sorting(name, text.startswith("-"))


@dataclass(frozen=True, slots=True)
class PageOfRows:
    """Some rows in their order, and whether there are others around them."""

    rows: list[Row]
    before: Edge | None
    after: Edge | None


def read_page(
    find: Find,
    where: Query,
    sorting: Sorting,
    size: int,
    *,
    after: Edge | None = None,
    before: Edge | None = None,
) -> PageOfRows:
    """The first rows, those after an edge, or those before one.

    ``find(query, order, limit)`` gives the first objects of an order. The page has fewer than
    ``size`` rows if they would be too large (``result_memory``).
    """
    page, _ = largest_fitting(
        lambda rows: _read_page(find, where, sorting, rows, after, before), size
    )
    return page


def _read_page(
    find: Find,
    where: Query,
    sorting: Sorting,
    size: int,
    after: Edge | None,
    before: Edge | None,
) -> PageOfRows:
    if before is not None:
        rows = _rows_after(find, where, sorting.reversed(), size + 1, before)
        more, shown = len(rows) > size, rows[:size][::-1]
        first = sorting.edge(shown[0]) if shown and more else None
        return PageOfRows(shown, first, sorting.edge(shown[-1]) if shown else None)
    rows = _rows_after(find, where, sorting, size + 1, after)
    more, shown = len(rows) > size, rows[:size]
    first = sorting.edge(shown[0]) if shown and after is not None else None
    return PageOfRows(shown, first, sorting.edge(shown[-1]) if shown and more else None)


def _rows_after(
    find: Find, where: Query, sorting: Sorting, limit: int, edge: Edge | None
) -> list[Row]:
    order = (Key((sorting.name,), sorting.descending),)
    if edge is None:
        return find(where, order, limit)
    path = (sorting.name,)
    beyond = Compare((OBJECT_ID,), "lt" if sorting.descending else "gt", edge.object_id)
    if sorting.name == "objectId":
        return find(all_of(where, beyond), order, limit)
    # Those without a value are all alike, so their ids alone say which comes first.
    by_id = (Key((OBJECT_ID,), sorting.descending),)
    if edge.value is None:
        rows = find(all_of(where, Exists(path, False), beyond), by_id, limit)
        if sorting.descending or len(rows) == limit:
            return rows
        return rows + find(all_of(where, Exists(path, True)), order, limit - len(rows))
    strictly, from_on = ("lt", "lte") if sorting.descending else ("gt", "gte")
    # The first part is a range that an index begins at; the second leaves out what was shown.
    condition = all_of(
        Compare(path, from_on, edge.value),  # type: ignore[arg-type]
        AnyOf((Compare(path, strictly, edge.value), beyond)),  # type: ignore[arg-type]
    )
    rows = find(all_of(where, condition), order, limit)
    if not sorting.descending or len(rows) == limit or sorting.name in _NEVER_NULL:
        return rows
    return rows + find(all_of(where, Exists(path, False)), by_id, limit - len(rows))

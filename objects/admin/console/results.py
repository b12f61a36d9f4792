"""The objects in a response as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from objects.admin.browser.cells import Cell, object_address, value_cell
from objects.core.names import CREATED_AT, OBJECT_ID, UPDATED_AT, is_class_name, is_object_id

_MOST_ROWS: Final = 100
_MOST_COLUMNS: Final = 30
_PLACES: Final = {OBJECT_ID: -1, CREATED_AT: 1, UPDATED_AT: 1, "ACL": 1}
"""Columns that stand before or behind those of the class's own fields."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a response, or the first ones, by the fields that they have."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | None, ...], ...]
    total: int

    @property
    def is_cut(self) -> bool:
        return self.total > len(self.rows)


def table_of(value: Any, class_name: str = "") -> Table | None:
    """Return the table for a response with ``results``, or None if these are no objects.

    Those of ``class_name`` lead to their pages.
    """
    results = value.get("results") if isinstance(value, dict) else None
    if not isinstance(results, list) or not results:
        return None
    shown = results[:_MOST_ROWS]
    if not all(isinstance(item, dict) for item in shown):
        return None
    names = dict.fromkeys(name for item in shown for name in item)
    columns = sorted(names, key=lambda name: _PLACES.get(name, 0))[:_MOST_COLUMNS]
    rows = tuple(
        tuple(_cell(class_name, name, item[name]) if name in item else None for name in columns)
        for item in shown
    )
    return Table(tuple(columns), rows, len(results))


def _cell(class_name: str, name: str, value: Any) -> Cell:
    if name == OBJECT_ID and is_class_name(class_name) and is_object_id(value):
        return Cell("id", value, href=object_address(class_name, value))
    return value_cell(value)

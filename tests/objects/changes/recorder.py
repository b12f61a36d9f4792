"""What a reader of committed changes reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from objects.changes import Change, Reader
from objects.storage.records import Record

Watch = Callable[..., Reader]


def everything(reader: Reader, *, gap: Collection[str] = ()) -> list[Change]:
    """All that there is to read; with a gap of these classes, and of no others."""
    observed: list[Change] = []
    gaps: set[str] = set()
    while True:
        batch = reader.read()
        gaps |= batch.gap
        observed += batch.changes
        if not batch.changes:
            assert gaps == set(gap)
            return observed


def kind(change: Change) -> str:
    if change.before is None:
        return "create"
    return "delete" if change.after is None else "update"


def kinds(reader: Reader) -> list[tuple[str, str]]:
    """Class and kind of all that there is to read."""
    return [(change.table.class_name, kind(change)) for change in everything(reader)]


def fields(record: Record | None) -> dict[str, Any] | None:
    """An object's own fields: without what is in every object."""
    if record is None:
        return None
    obj = record.object()
    return {name: obj[name] for name in obj if name not in ("objectId", "createdAt", "updatedAt")}


def recorded(reader: Reader) -> list[tuple[Any, Any]]:
    """The own fields of all objects before and after."""
    return [(fields(change.before), fields(change.after)) for change in everything(reader)]

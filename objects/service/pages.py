"""Walks through all objects of a query, page by page, which triggers can't end or prolong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from backend.kernel.json_types import Wire
from backend.kernel.limits import result_memory
from backend.kernel.principal import Principal
from objects import triggers
from objects.access.scope import Scope
from objects.core.names import OBJECT_ID, ClassName, FieldName
from objects.core.query.parser import parse_where
from objects.core.query.predicate import predicate
from objects.core.query.tree import Everything, FindOptions, OrderKey, Query, all_of
from objects.service.reads import run_after_find, shape, table_for_reading
from objects.service.stale_definitions import with_current_classes
from objects.sql.rows import Selection
from objects.storage import reads
from objects.storage.records import Record, wire_object

_NOTHING_ELSE: Final = Everything()
_BY_ID: Final = (OrderKey((OBJECT_ID,)),)


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the objects that a query finds, by id. ``last_id`` is where the next page begins
    after, or None if there is none."""

    objects: list[Wire]
    last_id: str | None


def find_page(
    principal: Principal,
    class_name: ClassName,
    options: FindOptions,
    *,
    after: str,
    largest_field: int,
    also: Query = _NOTHING_ELSE,
) -> Page:
    """Return the objects with the next ``limit`` ids after ``after``; ``also`` is as for ``find``.

    For the master key. Only the fields in ``options.keys`` are read, without values of more than
    ``largest_field`` bytes as JSON: clients decide how large an object is, and one of them mustn't
    make a page too large.

    Handlers can't end or prolong a walk through all pages. Conditions that they add before a find
    apply, but not their order, limit, skip and keys. What they drop after a find is missing in the
    page, and what they add is in it if its id lies between those of the page. If they supply the
    objects, those that satisfy ``also`` are split into pages.

    Raises what ``find`` raises.
    """
    assert principal.is_master, "fields that aren't read would be needed to hide others"
    names = frozenset(FieldName(path[0]) for path in options.keys or ())
    selection = Selection(names, largest_field)
    return with_current_classes(
        lambda: _find_page(principal, class_name, options, after, selection, also)
    )


def _find_page(
    principal: Principal,
    class_name: ClassName,
    options: FindOptions,
    after: str,
    selection: Selection,
    also: Query,
) -> Page:
    table = table_for_reading(principal, class_name)
    if table is None:
        return Page([], None)
    narrowed, supplied = triggers.before_find(principal, table.class_name, options)
    options = replace(
        options, where=narrowed.where, raw_where=narrowed.raw_where, order=_BY_ID, skip=0
    )
    results: list[Record] | list[Wire]
    if supplied is not None:
        satisfies = predicate(also)
        remaining = [obj for obj in _by_id(supplied, after, None) if satisfies(obj)]
        page = remaining[: options.limit]
        last_id = str(page[-1][OBJECT_ID]) if len(remaining) > options.limit else None
        results = page
    else:
        memory = result_memory.of_query()
        where = all_of(options.where, also)
        if after:
            where = all_of(where, parse_where({OBJECT_ID: {"$gt": after}}))
        records = reads.find(
            table,
            where,
            Scope(principal),
            order=_BY_ID,
            limit=options.limit,
            selection=selection,
            memory=memory,
        )
        last_id = records[-1].object_id if len(records) == options.limit else None
        results = shape(principal, table, records, options, memory)
    objects = run_after_find(principal, table, results, options)
    return Page(_by_id(map(wire_object, objects), after, last_id), last_id)


def _by_id(objects: Iterable[Wire], after: str, last_id: str | None) -> list[Wire]:
    """Return the objects with ids between these, each once, in the order of their ids."""
    by_id = {str(obj[OBJECT_ID]): obj for obj in objects if obj.get(OBJECT_ID)}
    return [
        by_id[object_id]
        for object_id in sorted(by_id)
        if object_id > after and (last_id is None or object_id <= last_id)
    ]

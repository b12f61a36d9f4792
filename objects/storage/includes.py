"""Pointers to objects: ``include``.

One query for each class that a level of pointers leads to, however many objects point there,
under the caller's rights. A pointer whose target doesn't exist or may not be read is left out, in a
list of pointers too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backend.kernel.errors import ServiceError, ServiceUnavailable, Timeout
from backend.kernel.json_types import Json, Wire
from backend.kernel.memory_pool import ResultMemory
from backend.kernel.principal import Principal
from objects import triggers
from objects.access.policy import readable
from objects.access.protection import hidden_fields, hides_by_object
from objects.access.scope import Scope
from objects.core.names import ClassName, Subject, check_class_name
from objects.core.query.tree import FindOptions, Path, all_of
from objects.core.values import is_pointer
from objects.definitions import registry
from objects.sql.tables import ClassTable
from objects.storage import reads
from objects.storage.records import decoded

# Field → the fields to include of the objects that it leads to.
_Tree = dict[str, Any]


def expand(
    principal: Principal,
    table: ClassTable,
    objects: list[Wire],
    options: FindOptions,
    memory: ResultMemory,
) -> None:
    """Replace pointers in these objects by the objects that they lead to, in place.

    ``memory`` counts an object once for each pointer to it, as it is sent.
    """
    tree = _tree(options.include)
    if options.include_all:
        for name, type_ in table.schema.fields.items():
            if type_.kind in ("Pointer", "Array"):
                tree.setdefault(name, {})
    if tree and objects:
        _expand_levels(principal, [(objects, tree)], memory)


def _tree(paths: Iterable[Path]) -> _Tree:
    tree: _Tree = {}
    for path in paths:
        level = tree
        for step in path:
            level = level.setdefault(step, {})
    return tree


def _expand_levels(
    principal: Principal, level: list[tuple[list[Wire], _Tree]], memory: ResultMemory
) -> None:
    """Expand the fields of each tree in its objects, then what the trees name below them."""
    while level:
        places = [
            (holder, name, below)
            for holders, tree in level
            for name, below in tree.items()
            for holder in holders
        ]
        ids_by_class: dict[ClassName, set[str]] = {}
        for holder, name, _ in places:
            for target in _pointers(holder.get(name)):
                ids_by_class.setdefault(check_class_name(str(target["className"])), set()).add(
                    str(target["objectId"])
                )
        targets = {name: _fetch(principal, name, ids, memory) for name, ids in ids_by_class.items()}
        next_level: list[tuple[list[Wire], _Tree]] = []
        for holder, name, below in places:
            included = _replace(holder, name, targets, memory)
            if below and included:
                next_level.append((included, below))
        level = next_level


def _pointers(value: Json) -> list[Wire]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, dict) and is_pointer(item)]


class _Target:
    """An object that pointers lead to. Reading it has counted its first copy."""

    def __init__(self, obj: Wire, size: int) -> None:
        self._obj = obj
        self._size = size
        self._is_copied = False

    def copy(self, memory: ResultMemory) -> Wire:
        """Return the object for one pointer. Each path of ``include`` expands its own copy."""
        if self._is_copied:
            memory.add(self._size)
        self._is_copied = True
        return dict(self._obj)


def _fetch(
    principal: Principal, class_name: ClassName, ids: set[str], memory: ResultMemory
) -> Mapping[str, _Target]:
    """Return the objects with these ids that the caller may see, ready to be sent."""
    has_triggers = triggers.has(class_name, "before_find", "after_find")
    table = registry.find(class_name)
    if table is None:
        return {}
    try:
        condition = readable(principal, table, "get")
    except (Timeout, ServiceUnavailable):
        raise
    except ServiceError:
        # To a caller without rights on the class its objects are just not there.
        return {}
    query, is_get = None, len(ids) == 1
    if has_triggers:
        query = triggers.of_pointers(ids)
        narrowing = triggers.including(principal, class_name, query, is_get=is_get)
        if narrowing is None:
            return {}
        condition = all_of(condition, narrowing)
    records = reads.by_ids(table, ids, condition, Scope(principal), memory)
    sizes: dict[Json, int] = {record.object_id: record.size for record in records}
    objects = visible(principal, table, decoded(records, memory))
    if query is not None:
        objects = triggers.after_find(principal, class_name, objects, query, is_get=is_get)
    return {
        str(obj.get("objectId")): _Target(
            {"__type": "Object", "className": class_name, **obj}, sizes.get(obj.get("objectId"), 0)
        )
        for obj in objects
    }


def _replace(
    holder: Wire,
    name: str,
    targets: Mapping[ClassName, Mapping[str, _Target]],
    memory: ResultMemory,
) -> list[Wire]:
    """Put the included objects where the pointers were; return what a deeper level goes into."""
    value = holder.get(name)
    if isinstance(value, list):
        items: list[Json] = []
        deeper: list[Wire] = []
        for item in value:
            if isinstance(item, dict) and is_pointer(item):
                target = _target(item, targets, memory)
                if target is not None:
                    items.append(target)
                    deeper.append(target)
            else:
                items.append(item)
                if isinstance(item, dict):
                    deeper.append(item)
        holder[name] = items
        return deeper
    if not isinstance(value, dict):
        return []
    if not is_pointer(value):
        return [value]
    target = _target(value, targets, memory)
    if target is None:
        del holder[name]
        return []
    holder[name] = target
    return [target]


def _target(
    pointer: Wire, targets: Mapping[ClassName, Mapping[str, _Target]], memory: ResultMemory
) -> Wire | None:
    target = targets.get(ClassName(Subject(str(pointer["className"]))), {}).get(
        str(pointer["objectId"])
    )
    return None if target is None else target.copy(memory)


def visible(principal: Principal, table: ClassTable, objects: list[Wire]) -> list[Wire]:
    """Return the objects without the fields that are hidden from the caller."""
    if hides_by_object(principal, table):
        return [_without_fields(obj, hidden_fields(principal, table, obj)) for obj in objects]
    hidden = hidden_fields(principal, table)
    return [_without_fields(obj, hidden) for obj in objects] if hidden else objects


def _without_fields(obj: Wire, hidden: frozenset[str]) -> Wire:
    return {name: value for name, value in obj.items() if name not in hidden}

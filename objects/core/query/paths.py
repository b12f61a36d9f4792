"""Values at a path of an object; ``objects.core.query.tree`` defines the terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from backend.kernel.json_types import Json
from objects.core.names import FieldPath
from objects.core.values import date

Path: TypeAlias = FieldPath
Steps: TypeAlias = tuple[str, ...]
"""Keys inside a value."""

Object: TypeAlias = Mapping[str, Any]
"""An object in its wire form."""

Members: TypeAlias = Callable[[str | None, str, str], Collection[Json]]
"""The members of a relation, of (class or None for the object's own, objectId, key)."""

_TIMESTAMPS: Final = frozenset({"createdAt", "updatedAt"})
_MISSING: Final = object()


def no_members(class_name: str | None, object_id: str, key: str) -> Collection[Json]:
    """Return no members, for queries without relations."""
    return ()


def is_index(step: str) -> bool:
    """Return whether a step of a path can be the index of a list."""
    return step.isascii() and step.isdigit()


def candidates(obj: Object, path: Path, members: Members = no_members) -> list[Json]:
    """Return the values at the path."""
    value = _field(obj, path[0])
    if value is _MISSING:
        return []
    if _is_relation(value):
        related = list(members(None, obj["objectId"], path[0])) if len(path) == 1 else []
        return [related] if related else []
    if len(path) == 1:
        return [value]
    if any(map(is_index, path[1:])):
        end = _descend_exactly(value, path[1:])
        return [] if end is _MISSING else [end]
    values = [value]
    for step in path[1:]:
        values = [item for value in values for item in _descend(value, step)]
    return values


def elements(obj: Object, path: Path, members: Members = no_members) -> Iterator[Json]:
    """Yield the candidates, and the elements of those that are lists."""
    values = candidates(obj, path, members)
    for value in values:
        if isinstance(value, list):
            # The list of a relation's members isn't a stored value.
            if not _is_relation(obj.get(path[0])):
                yield value
            yield from value
        else:
            yield value


def comparables(obj: Object, path: Path, members: Members = no_members) -> Iterator[Json]:
    """Yield what values are equal to: the elements, and the object id of a pointer field."""
    yield from elements(obj, path, members)
    if len(path) == 1:
        value = obj.get(path[0])
        if isinstance(value, dict) and value.get("__type") == "Pointer":
            yield value["objectId"]


def is_relation(obj: Object, path: Path) -> bool:
    """Return whether the path is a Relation field, which ``null`` never equals."""
    return len(path) == 1 and _is_relation(_field(obj, path[0]))


def exact_value(obj: Object, path: Path) -> Json:
    """Return the value at a path where nothing is implicit; None if there is none."""
    value = _field(obj, path[0])
    if _is_relation(value):
        return None
    end = _descend_exactly(value, path[1:])
    return None if end is _MISSING else end


def _field(obj: Object, name: str) -> Any:
    value = obj.get(name, _MISSING)
    return date(value) if name in _TIMESTAMPS and isinstance(value, str) else value


def _is_relation(value: Any) -> bool:
    return isinstance(value, dict) and value.get("__type") == "Relation"


def _descend(value: Json, step: str) -> Iterator[Json]:
    if isinstance(value, dict):
        if step in value:
            yield value[step]
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict) and step in item:
                yield item[step]


def _descend_exactly(value: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and is_index(step) and len(step.lstrip("0")) < 10:
            index = int(step.lstrip("0") or "0")
            value = value[index] if index < len(value) else _MISSING
        else:
            return _MISSING
    return value

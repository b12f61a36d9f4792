"""``keys`` and ``excludeKeys``: the fields of found and of included objects that are sent.

They select fields of objects, of the found one and of those that ``include`` put in its place of a
pointer, as Parse Server does. A key that leads into a value that isn't an included object selects
the whole field, and excludes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from backend.kernel.json_types import Json, Wire
from objects.core.query.tree import FindOptions, Path, text_of
from objects.sql.tables import ClassTable

_ALWAYS: Final = frozenset({"objectId", "createdAt", "updatedAt", "ACL", "__type", "className"})
_INCLUDED_KINDS: Final = ("Pointer", "Array")
"""The kinds of fields that ``includeAll`` includes, and adds to ``keys``."""


@dataclass(frozen=True, slots=True)
class _Level:
    """What is sent of the objects at one path: some fields or all, without some."""

    keys: frozenset[str] | None
    excluded: frozenset[str]
    below: Mapping[str, _Level]

    def of_object(self, obj: Wire) -> Wire:
        """Return the selected fields of an object."""
        return {
            name: self.below[name].of_value(value) if name in self.below else value
            for name, value in obj.items()
            if name in _ALWAYS
            or (
                name not in self.excluded
                and (self.keys is None or name in self.keys or _is_relation(value))
            )
        }

    def of_value(self, value: Json) -> Json:
        """Return a value with the selected fields of the objects included in it."""
        if isinstance(value, list):
            return [self.of_value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get("__type") == "Object":
            return self.of_object(value)
        if not self.below or "__type" in value:
            return value
        return {
            name: self.below[name].of_value(item) if name in self.below else item
            for name, item in value.items()
        }


def _is_relation(value: Json) -> bool:
    # As with Parse Server, objects always have their relations.
    return isinstance(value, dict) and value.get("__type") == "Relation"


def projection(table: ClassTable, options: FindOptions) -> Callable[[Wire], Wire] | None:
    """Return the function that selects the fields of a found object, or None to send them all."""
    keys, excluded = options.keys, options.exclude_keys
    if keys is None and not excluded:
        return None
    if keys is None:
        names: set[str] | None = None
        hidden = {path[0] for path in excluded if len(path) == 1}
    else:
        # A key is excluded by the very same key only: "a.b" is sent without "a", in "a".
        names = {path[0] for path in keys - excluded}
        hidden = set()
        if options.include_all:
            names |= {
                name
                for name, type_ in table.schema.fields.items()
                if type_.kind in _INCLUDED_KINDS and (name,) not in excluded
            }
        if options.score and text_of(options.where) is not None:
            names.add("score")
    return _Level(
        None if names is None else frozenset(names),
        frozenset(hidden),
        _below(keys or (), excluded),
    ).of_object


def _below(keys: Collection[Path], excluded: Collection[Path]) -> dict[str, _Level]:
    return {
        name: _level(_inside(keys, name), _inside(excluded, name))
        for name in {path[0] for path in (*keys, *excluded) if len(path) > 1}
    }


def _inside(paths: Collection[Path], name: str) -> list[Path]:
    return [path[1:] for path in paths if path[0] == name and len(path) > 1]  # type: ignore[misc]


def _level(keys: list[Path], excluded: list[Path]) -> _Level:
    return _Level(
        frozenset(path[0] for path in keys) if keys else None,
        frozenset(path[0] for path in excluded if len(path) == 1),
        _below(keys, excluded),
    )

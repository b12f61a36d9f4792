"""Times without a zone in the parameters of functions: they are in UTC, as in Date fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec


def may_lack_zone(type_: Any) -> bool:
    """Whether a value of this type may hold a ``datetime`` without a time zone.

    One that a ``Meta(tz=…)`` restricts to either kind doesn't count.
    """
    return any(
        isinstance(part, msgspec.inspect.DateTimeType) and part.tz is None
        for part in _parts(msgspec.inspect.type_info(type_), set())
    )


def _parts(node: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the parts of a described type, each once: a type may be within itself."""
    if isinstance(node, tuple | list):
        for item in node:
            yield from _parts(item, seen)
    elif isinstance(node, msgspec.inspect.Type | msgspec.inspect.Field) and id(node) not in seen:
        seen.add(id(node))
        yield node
        for name in node.__struct_fields__:
            yield from _parts(getattr(node, name), seen)


def with_zones(value: Any) -> Any:
    """Return a converted value whose times are aware, at any depth.

    Objects with fields (dataclasses, structs) are changed: conversion has just made them.
    """
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return {with_zones(key): with_zones(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(with_zones, value))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(map(with_zones, value))
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            msgspec.structs.force_setattr(value, name, with_zones(getattr(value, name)))
    elif is_dataclass(value):
        for field in fields(value):
            object.__setattr__(value, field.name, with_zones(getattr(value, field.name)))
    return value

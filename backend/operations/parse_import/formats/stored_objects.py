"""Objects as a Parse Server has stored them, in one form for all sources."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from backend.kernel.errors import IncorrectType
from backend.kernel.json_types import Json, Wire
from objects.core.values import normalise_date
from objects.rules import TransferredObject

_encode: Final = msgspec.json.Encoder(order="sorted", decimal_format="number").encode


class UnreadableValue(ValueError):
    """A stored value that isn't of its field's type. The text names the field."""


class Member(NamedTuple):
    """One object in a relation of another."""

    owning_id: str
    related_id: str


def digest(obj: TransferredObject) -> bytes:
    """Return 16 bytes that differ for objects that differ, secrets not included."""
    state = [
        obj.object_id,
        obj.created_at,
        obj.updated_at,
        None if obj.acl is None else canonical(obj.acl),
        {name: canonical(value) for name, value in obj.fields.items() if value is not None},
    ]
    return hashlib.sha256(_encode(state)).digest()[:16]


def canonical(value: Json) -> Json:
    """Return the value in the one form that equal values have.

    Whole numbers are integers, keys with null stay, and a File is its name: each server computes
    its own URL.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        if value.get("__type") == "File":
            return {"__type": "File", "name": value.get("name")}
        return {key: canonical(item) for key, item in value.items()}
    return value


def acl_of_lists(readers: Sequence[str] | None, writers: Sequence[str] | None) -> Wire | None:
    """Return the access list of an object stored with ``_rperm`` and ``_wperm``.

    A missing list means everybody, as Parse reads it.
    """
    if readers is None and writers is None:
        return None
    acl: dict[str, dict[str, Json]] = {}
    for permission, ids in (("read", readers), ("write", writers)):
        for entity in ("*",) if ids is None else ids:
            acl.setdefault(entity, {})[permission] = True
    return dict(acl)


def without_denials(acl: Mapping[str, Any]) -> Wire:
    """Return the access list without entries that grant nothing."""
    granted: dict[str, dict[str, Json]] = {
        entity: {permission: True for permission in ("read", "write") if entry.get(permission)}
        for entity, entry in acl.items()
        if isinstance(entry, dict)
    }
    return {entity: entry for entity, entry in granted.items() if entry}


def time_of(text: str, place: str) -> str:
    """Return a time in wire form: UTC, milliseconds. Raises ``UnreadableValue``."""
    try:
        return normalise_date(text)
    except IncorrectType:
        raise UnreadableValue(f"{place}: not a time") from None

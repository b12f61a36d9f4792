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

MOST_LEVELS: Final = 200
"""BSON has at most 100; objects here have fewer."""
NESTED_TOO_DEEPLY: Final = "nested too deeply"
_encode: Final = msgspec.json.Encoder(order="sorted", decimal_format="number").encode


class UnreadableValue(ValueError):
    """A stored value that isn't of its field's type. The text names the field."""


def check_depth(value: Json, levels: int = MOST_LEVELS) -> None:
    """Raise ``UnreadableValue`` for a value with more levels: reading it could end the process."""
    if not isinstance(value, list | dict):
        return
    if not levels:
        raise UnreadableValue(NESTED_TOO_DEEPLY)
    for item in value.values() if isinstance(value, dict) else value:
        check_depth(item, levels - 1)


class Member(NamedTuple):
    """One object in a relation of another."""

    owning_id: str
    related_id: str


def member_of(row: Mapping[str, Any]) -> Member:
    """Return the member that a row of a relation's table is; ids that are missing are empty."""
    return Member(str(row.get("owningId") or ""), str(row.get("relatedId") or ""))


def digest(obj: TransferredObject) -> bytes:
    """Return 16 bytes that differ for objects that differ, secrets not included.

    Raises ``UnreadableValue`` for text that isn't Unicode.
    """
    state = [
        obj.object_id,
        obj.created_at,
        obj.updated_at,
        None if obj.acl is None else canonical(obj.acl),
        {name: canonical(value) for name, value in obj.fields.items() if value is not None},
    ]
    try:
        return hashlib.sha256(_encode(state)).digest()[:16]
    except UnicodeEncodeError:
        raise UnreadableValue("text with half of a surrogate pair") from None


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


def acl_of_lists(readers: object, writers: object) -> Wire | None:
    """Return the access list of an object stored with ``_rperm`` and ``_wperm``.

    A missing list means everybody, as Parse reads it. Raises ``UnreadableValue``.
    """
    if readers is None and writers is None:
        return None
    acl: dict[str, dict[str, Json]] = {}
    for permission, ids in (("read", readers), ("write", writers)):
        for entity in _entities(ids):
            acl.setdefault(entity, {})[permission] = True
    return dict(acl)


def _entities(ids: object) -> Sequence[str]:
    if ids is None:
        return ("*",)
    if not isinstance(ids, list) or not all(isinstance(entity, str) for entity in ids):
        raise UnreadableValue("_rperm, _wperm: not lists of ids")
    return ids


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

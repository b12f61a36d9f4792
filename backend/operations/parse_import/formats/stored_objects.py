"""Objects as a Parse Server has stored them, in one form for all sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from backend.kernel.json_types import Json, Wire

_encode: Final = msgspec.json.Encoder(order="sorted", decimal_format="number").encode
_DIGITS: Final = re.compile(r"(\.\d{1,9})(?=Z|[+-]|$)", re.ASCII)


class UnreadableValue(ValueError):
    """A stored value that isn't of its field's type. The text names the field."""


class Member(NamedTuple):
    """One object in a relation of another."""

    owning_id: str
    related_id: str


@dataclass(frozen=True, slots=True)
class Secrets:
    """What an account or a session has that no object shows.

    ``password_hash`` is bcrypt's text (``$2y$…``).
    """

    password_hash: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


NO_SECRETS: Final = Secrets()


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: its fields in wire form without those of relations, and its times.

    ``acl`` is the access list in wire form, None for an object without one.
    """

    object_id: str
    created_at: str
    updated_at: str
    acl: Wire | None
    fields: Wire
    secrets: Secrets = NO_SECRETS

    def digest(self) -> bytes:
        """Return 16 bytes that differ for objects that differ, secrets not included."""
        state = [
            self.object_id,
            self.created_at,
            self.updated_at,
            None if self.acl is None else canonical(self.acl),
            {name: canonical(value) for name, value in self.fields.items() if value is not None},
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


def wire_time(text: str, place: str) -> str:
    """Return a time in wire form: UTC, milliseconds. Raises ``UnreadableValue``."""
    try:
        # Python reads three or six digits of a second.
        moment = datetime.fromisoformat(_DIGITS.sub(lambda match: f"{match[1]:0<7}"[:7], text))
    except ValueError:
        raise UnreadableValue(f"{place}: not a time") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")


def wire_date(iso: str) -> Wire:
    """Return a Date value."""
    return {"__type": "Date", "iso": iso}


def wire_pointer(class_name: str, object_id: str) -> Wire:
    """Return a Pointer value."""
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}

"""Objects as Parse's API and its JSON exports have them: the wire form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    time_of,
    without_denials,
)
from objects.core.values import kind
from objects.rules import TransferredObject

_NOT_FIELDS: Final = frozenset(
    {"objectId", "createdAt", "updatedAt", "ACL", "__type", "className", "sessionToken"}
)
_HASHES: Final = ("_hashed_password", "bcryptPassword")


def read(row: Mapping[str, Any]) -> TransferredObject:
    """Return the object that a row of a response or an export is. Raises ``UnreadableValue``.

    Exports of Parse.com hold ``bcryptPassword`` and ``sessionToken`` as well.
    """
    object_id = row.get("objectId")
    if not isinstance(object_id, str):
        raise UnreadableValue("objectId: missing")
    acl, token = row.get("ACL"), row.get("sessionToken")
    hashes = [row[name] for name in _HASHES if isinstance(row.get(name), str)]
    return TransferredObject(
        object_id=object_id,
        created_at=time_of(_text(row, "createdAt"), "createdAt"),
        updated_at=time_of(_text(row, "updatedAt"), "updatedAt"),
        acl=without_denials(acl) if isinstance(acl, dict) else None,
        fields={
            name: value
            for name, value in row.items()
            if name not in _NOT_FIELDS and not _is_internal(name) and kind(value) != "Relation"
        },
        password_hash=hashes[0] if hashes else None,
        session_token=token if isinstance(token, str) else None,
    )


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, dict):
        value = value.get("iso")
    if not isinstance(value, str):
        raise UnreadableValue(f"{name}: missing")
    return value


def _is_internal(name: str) -> bool:
    return name.startswith("_") or name in _HASHES

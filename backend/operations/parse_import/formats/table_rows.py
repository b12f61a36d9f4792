"""Objects as Parse Server's PostgreSQL tables have them, each row as JSON (``row_to_json``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from backend.kernel.json_types import Json, Wire
from backend.operations.parse_import.formats.definitions import ClassDefinition, FieldDefinition
from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    acl_of_lists,
    time_of,
)
from objects.core.values import date, pointer
from objects.rules import TransferredObject

_NUMBER: Final = r"([-+0-9.eE]+)"
_PAIR: Final = re.compile(rf"\({_NUMBER},{_NUMBER}\)")
_OUTSIDE_FIELDS: Final = frozenset({"objectId", "createdAt", "updatedAt", "sessionToken"})


def read(row: Mapping[str, Any], definition: ClassDefinition) -> TransferredObject:
    """Return the object that a row of the class's table is. Raises ``UnreadableValue``."""
    fields: Wire = {}
    for name, value in row.items():
        if value is None or name in _OUTSIDE_FIELDS or name.startswith("_"):
            continue
        fields[name] = _value(name, value, definition.fields.get(name))
    token, password_hash = row.get("sessionToken"), row.get("_hashed_password")
    return TransferredObject(
        object_id=_object_id(row),
        created_at=time_of(str(row.get("createdAt")), "createdAt"),
        updated_at=time_of(str(row.get("updatedAt")), "updatedAt"),
        acl=acl_of_lists(row.get("_rperm"), row.get("_wperm")),
        fields=fields,
        password_hash=password_hash if isinstance(password_hash, str) else None,
        session_token=token if isinstance(token, str) else None,
    )


def _object_id(row: Mapping[str, Any]) -> str:
    object_id = row.get("objectId")
    if not isinstance(object_id, str):
        raise UnreadableValue("objectId: missing")
    return object_id


def _value(name: str, value: Any, definition: FieldDefinition | None) -> Json:
    if definition is None:
        return value
    try:
        if definition.kind == "Pointer":
            return pointer(str(definition.target_class), _text(value))
        reader = _READERS.get(definition.kind)
        return value if reader is None else reader(value)
    except (ValueError, TypeError) as error:
        raise UnreadableValue(f"{name}: not a {definition.kind}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _date(value: Any) -> Json:
    return date(time_of(_text(value), ""))


def _geopoint(value: Any) -> Json:
    pair = _PAIR.fullmatch(_text(value))
    if pair is None:
        raise ValueError
    # PostgreSQL has x first, which is the longitude.
    return {"__type": "GeoPoint", "latitude": float(pair[2]), "longitude": float(pair[1])}


def _polygon(value: Any) -> Json:
    corners: list[Json] = [
        [float(latitude), float(longitude)] for longitude, latitude in _PAIR.findall(_text(value))
    ]
    if not corners:
        raise ValueError
    return {"__type": "Polygon", "coordinates": corners}


def _file(value: Any) -> Json:
    return {"__type": "File", "name": _text(value)}


_READERS: Final[Mapping[str, Callable[[Any], Json]]] = {
    "Date": _date,
    "GeoPoint": _geopoint,
    "Polygon": _polygon,
    "File": _file,
}

"""Objects as Parse Server's MongoDB collections have them, in ``mongoexport``'s JSON.

MongoDB's Extended JSON writes what JSON has no type for as an object (``{"$date": …}``), in the
canonical or the relaxed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from backend.kernel.json_types import Json, Wire
from backend.operations.parse_import.formats.definitions import AUDIENCES, ClassDefinition
from backend.operations.parse_import.formats.stored_objects import (
    UnreadableValue,
    acl_of_lists,
    check_depth,
    time_of,
    without_denials,
)
from objects.core.values import date, pointer
from objects.rules import TransferredObject

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_POINTER_PREFIX: Final = "_p_"
_AUTH_PREFIX: Final = "_auth_data_"
_INTERNAL_DATES: Final = {"_created_at": "createdAt", "_updated_at": "updatedAt"}
_OF_AUDIENCES: Final = {"_last_used": "lastUsed", "times_used": "timesUsed"}
_SESSION_DATES: Final = {"_expiresAt": "expiresAt", "expiresAt": "expiresAt"}


def read(document: Mapping[str, Any], definition: ClassDefinition) -> TransferredObject:
    """Return the object that a document of the class's collection is.

    Raises ``UnreadableValue``.
    """
    fields: Wire = {}
    auth_data: Wire = {}
    renamed = _OF_AUDIENCES if definition.name == AUDIENCES else {}
    for stored_name, value in document.items():
        name = renamed.get(stored_name, stored_name)
        if name.startswith(_POINTER_PREFIX):
            if value is not None:
                fields[name[len(_POINTER_PREFIX) :]] = _pointer(name, value)
        elif name.startswith(_AUTH_PREFIX):
            if value is not None:
                auth_data[name[len(_AUTH_PREFIX) :]] = _field(name, value, definition)
        elif name in _SESSION_DATES and definition.name == "_Session":
            fields[_SESSION_DATES[name]] = date(_moment(value, name))
        elif not name.startswith("_") and name != "sessionToken":
            fields[name] = _field(name, value, definition)
    if auth_data:
        fields["authData"] = auth_data
    created, updated = (_moment(document.get(name), name) for name in _INTERNAL_DATES)
    return TransferredObject(
        object_id=object_id_of(document),
        created_at=created,
        updated_at=updated,
        acl=_acl(document),
        fields=fields,
        password_hash=_text(document, "_hashed_password"),
        session_token=_text(document, "_session_token"),
    )


def object_id_of(document: Mapping[str, Any]) -> str:
    """Return the id of a document. Raises ``UnreadableValue``."""
    object_id = plain(document.get("_id"))
    if not isinstance(object_id, str):
        raise UnreadableValue("_id: not an object's id")
    return object_id


def plain(value: Any) -> Json:
    """Return a value of Extended JSON in wire form. Raises ``UnreadableValue``."""
    check_depth(value)
    return _plain(value)


def _plain(value: Any) -> Json:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$date" in value:
        return date(_moment(value, "$date"))
    for key in ("$numberLong", "$numberInt"):
        if key in value:
            return _whole_number(value[key])
    for key in ("$numberDouble", "$numberDecimal"):
        if key in value:
            return _number(value[key])
    if "$oid" in value:
        return str(value["$oid"])
    if "$binary" in value:
        return _bytes(value)
    if "$undefined" in value:
        return None
    return {key: _plain(item) for key, item in value.items()}


def _field(name: str, value: Any, definition: ClassDefinition) -> Json:
    kind = definition.kind(name)
    try:
        if kind == "GeoPoint" and isinstance(value, list):
            longitude, latitude = map(plain, value)
            return {"__type": "GeoPoint", "latitude": latitude, "longitude": longitude}
        if kind == "Polygon" and isinstance(value, dict) and value.get("type") == "Polygon":
            corners: list[Json] = [
                [plain(latitude), plain(longitude)]
                for longitude, latitude in value["coordinates"][0]
            ]
            return {"__type": "Polygon", "coordinates": corners}
    except (ValueError, TypeError, LookupError) as error:
        raise UnreadableValue(f"{name}: not a {kind}") from error
    if kind == "File" and isinstance(value, str):
        return {"__type": "File", "name": value}
    if kind == "Bytes" and isinstance(value, str):
        return {"__type": "Bytes", "base64": value}
    try:
        return plain(value)
    except UnreadableValue as error:
        raise UnreadableValue(f"{name}: {error}") from error


def _pointer(name: str, value: Any) -> Json:
    class_name, separator, object_id = value.partition("$") if isinstance(value, str) else ("",) * 3
    if not separator:
        raise UnreadableValue(f"{name}: not a Pointer")
    return pointer(class_name, object_id)


def _moment(value: Any, place: str) -> str:
    if isinstance(value, dict):
        value = value.get("$date", value.get("iso"))
    if isinstance(value, dict) and "$numberLong" in value:
        value = _whole_number(value["$numberLong"])
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            value = (_EPOCH + timedelta(milliseconds=value)).isoformat()
        except OverflowError:
            raise UnreadableValue(f"{place}: a time outside of the years 1 to 9999") from None
    if not isinstance(value, str):
        raise UnreadableValue(f"{place}: not a time")
    return time_of(value, place)


def _whole_number(text: Any) -> int:
    try:
        return int(text)
    except (ValueError, TypeError, OverflowError):
        raise UnreadableValue("not a whole number") from None


def _number(text: Any) -> Json:
    try:
        number = float(text)
    except (ValueError, TypeError, OverflowError):
        raise UnreadableValue("not a number") from None
    if not math.isfinite(number):
        raise UnreadableValue("a number that is not finite")
    return number


def _bytes(value: Mapping[str, Any]) -> Json:
    binary = value["$binary"]
    content = binary.get("base64") if isinstance(binary, dict) else binary
    if not isinstance(content, str):
        raise UnreadableValue("binary data without its base64")
    return {"__type": "Bytes", "base64": content}


def _acl(document: Mapping[str, Any]) -> Wire | None:
    if "_rperm" in document or "_wperm" in document:
        return acl_of_lists(document.get("_rperm"), document.get("_wperm"))
    short = document.get("_acl")
    if not isinstance(short, dict):
        return None
    return without_denials(
        {
            entity: {"read": entry.get("r"), "write": entry.get("w")}
            for entity, entry in short.items()
            if isinstance(entry, dict)
        }
    )


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    return value if isinstance(value, str) else None

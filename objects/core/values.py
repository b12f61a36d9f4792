"""The values that objects are made of: JSON, and Parse's typed values inside of it.

Everything in the service keeps values in their wire form, so an object is a plain ``dict``.
``normalise`` is the only gate for what clients send: what has passed it can be stored and
compared without further checks.

A typed value is a dict with ``__type``. Its canonical forms:

=========  ==========================================================================
Date       ``{"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}``, UTC, milliseconds
Pointer    ``{"__type": "Pointer", "className": …, "objectId": …}``
GeoPoint   ``{"__type": "GeoPoint", "latitude": …, "longitude": …}``
Polygon    ``{"__type": "Polygon", "coordinates": [[latitude, longitude], …]}``, closed
Bytes      ``{"__type": "Bytes", "base64": …}``
File       ``{"__type": "File", "name": …, "url": …}``
Relation   ``{"__type": "Relation", "className": …}``, only as the value of a field
=========  ==========================================================================

Numbers: JSON has one type of number, so 1.0 and 1 are the same value. The canonical form of a
whole number is ``int`` (of any size up to ``MAX_INTEGER_DIGITS``), of any other a finite
``float``; a float stands for the decimal number that its shortest spelling names. That is
what PostgreSQL's jsonb keeps, so reading a stored value gives the same one back.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from backend.kernel.errors import IncorrectType, InvalidJSON, InvalidNestedKey
from backend.kernel.json_types import Json
from backend.kernel.texts.shown import shown
from objects.core.names import (
    PROHIBITED_KEYS,
    is_class_name,
    is_object_id,
    is_storable_text,
    prohibited,
)

FieldKind: TypeAlias = Literal[
    "String",
    "Number",
    "Boolean",
    "Object",
    "Array",
    "Date",
    "Pointer",
    "GeoPoint",
    "Bytes",
    "File",
    "Polygon",
    "Relation",
]

# A place is text, or a place with a key or an index: it is put into words only for an error.
Place: TypeAlias = "str | tuple[Place, str | int]"

MAX_DEPTH: Final = 50
MAX_INTEGER_DIGITS: Final = 1000

_INTEGER_LIMIT = 10**MAX_INTEGER_DIGITS
_SMALL_INTEGER = 1 << 63
# From here on every float is whole, and JSON encoders write it with an exponent.
_EXPONENT_FROM = 1e16
_TINY_ANGLE = 1e-12

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9}))?"
    r"(Z|z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)

# Short keys that have passed, since the same ones come again and again. Bounded in number and
# size: it is clients who fill it.
_known_keys: set[object] = set()
_MAX_KNOWN_KEYS: Final = 4096
_MAX_KNOWN_KEY_LENGTH: Final = 40

_CANONICAL_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

_KINDS: dict[type, FieldKind] = {
    str: "String",
    int: "Number",
    float: "Number",
    bool: "Boolean",
    list: "Array",
}
_TYPED_KINDS: dict[str, FieldKind] = {
    "Date": "Date",
    "Pointer": "Pointer",
    "Object": "Pointer",
    "GeoPoint": "GeoPoint",
    "Polygon": "Polygon",
    "Bytes": "Bytes",
    "File": "File",
    "Relation": "Relation",
}


def kind(value: Json) -> FieldKind | None:
    """Return the kind of field that holds this value; None for null."""
    if value is None:
        return None
    if isinstance(value, dict):
        type_name = value.get("__type")
        return _TYPED_KINDS.get(type_name, "Object") if isinstance(type_name, str) else "Object"
    return _KINDS[type(value)]


def render_place(place: Place) -> str:
    """``("where", "a")`` in words: ``where.a``; an index too: ``where.a.0``."""
    steps: list[str] = []
    while isinstance(place, tuple):
        steps.append(shown(place[1]))
        place = place[0]
    if place:
        steps.append(place)
    return ".".join(reversed(steps))


def normalise(value: Any, place: Place = "", depth: int = 0) -> Json:
    """Check a value that a client sent, all the way down, and return its canonical form.

    The value is as a JSON decoder gives it, ``depth`` levels inside of a field. Raises
    ``IncorrectType`` (a typed value that isn't one, text or numbers that can't be stored),
    ``InvalidKeyName`` (a prohibited key), ``InvalidNestedKey`` (``$`` or ``.`` in a key) or
    ``InvalidJSON`` (too deep, not JSON); the message names the place.
    """
    value_type = type(value)
    if value_type is str:
        text: str = value
        if (text.isascii() and "\x00" not in text) or is_storable_text(text):
            return text
        raise IncorrectType(
            f"{render_place(place)}: text must not hold NUL or half of a surrogate pair"
        )
    if value_type is int:
        integer: int = value
        if -_SMALL_INTEGER < integer < _SMALL_INTEGER or abs(integer) < _INTEGER_LIMIT:
            return integer
        raise IncorrectType(
            f"{render_place(place)}: a number has at most {MAX_INTEGER_DIGITS} digits"
        )
    if value is None or value is True or value is False:
        return value
    if value_type is float:
        return canonical_number(value, place)
    if value_type is dict:
        return _normalise_dict(value, place, depth)
    if value_type is list:
        if depth >= MAX_DEPTH:
            raise _too_deep(place)
        return [normalise(item, (place, index), depth + 1) for index, item in enumerate(value)]
    raise InvalidJSON(f"{render_place(place)}: {value_type.__name__} is not a JSON value")


def _normalise_dict(value: dict[Any, object], place: Place, depth: int) -> Json:
    if depth >= MAX_DEPTH:
        raise _too_deep(place)
    if "__type" in value:
        return _normalise_typed(value, place, depth)
    result: dict[str, Json] = {}
    for key, item in value.items():
        if key not in _known_keys:
            check_nested_key(key, place)
        result[key] = normalise(item, (place, key), depth + 1)
    return result


def _too_deep(place: Place) -> InvalidJSON:
    return InvalidJSON(f"{render_place(place)}: nested more than {MAX_DEPTH} levels deep")


def check_nested_key(key: object, place: Place) -> str:
    """Return a key that may stand inside a value, or raise an error that names the place."""
    if type(key) is not str:
        raise InvalidJSON(f"{render_place(place)}: a key must be a string")
    if key in PROHIBITED_KEYS:
        raise prohibited(key)
    if "$" in key or "." in key:
        raise InvalidNestedKey(
            "Nested keys should not contain the '$' or '.' characters:"
            f" {render_place((place, key))}"
        )
    if key == "__op":
        raise InvalidJSON(
            f"{render_place(place)}: an operator must be the whole value of a field or of a"
            " dotted key"
        )
    if not is_storable_text(key):
        raise IncorrectType(
            f"{render_place(place)}: a key must not hold NUL or half of a surrogate pair"
        )
    if len(key) <= _MAX_KNOWN_KEY_LENGTH and len(_known_keys) < _MAX_KNOWN_KEYS:
        _known_keys.add(key)
    return key


def canonical_number(number: int | float, place: Place = "") -> int | float:
    """Return the canonical number: integers are ``int``; NaN and infinities are refused."""
    if isinstance(number, int):
        return number
    if not math.isfinite(number):
        raise IncorrectType(f"{render_place(place)}: expected a finite number")
    if not number.is_integer():
        return number
    if -_EXPONENT_FROM < number < _EXPONENT_FROM:
        return int(number)
    return int(Decimal(repr(number)))


def _normalise_typed(value: dict[Any, object], place: Place, depth: int) -> Json:
    type_name = value["__type"]
    if type_name == "Date":
        return {"__type": "Date", "iso": normalise_date(value.get("iso"), (place, "iso"))}
    if type_name == "Pointer" or type_name == "Object":
        # An object that came from an include is stored as the pointer that it was.
        return _normalise_pointer(value, place)
    if type_name == "GeoPoint":
        latitude, longitude = geo_coordinates(value.get("latitude"), value.get("longitude"), place)
        return {"__type": "GeoPoint", "latitude": latitude, "longitude": longitude}
    if type_name == "File":
        return _normalise_file(value, place)
    if type_name == "Bytes":
        return _normalise_bytes(value, place)
    if type_name == "Polygon":
        return {"__type": "Polygon", "coordinates": _ring(value.get("coordinates"), place)}
    if type_name == "Relation":
        class_name = value.get("className")
        if depth > 0 or not isinstance(class_name, str) or not is_class_name(class_name):
            raise _invalid("Relation", place, "expected a className, as the value of a field")
        return {"__type": "Relation", "className": class_name}
    raise _invalid(shown(type_name), place, "unknown __type")


def _invalid(type_name: str, place: Place, reason: str) -> IncorrectType:
    return IncorrectType(f"This is not a valid {type_name} ({render_place(place)}: {reason})")


def _normalise_pointer(value: dict[Any, object], place: Place) -> Json:
    class_name, object_id = value.get("className"), value.get("objectId")
    if not isinstance(class_name, str) or not is_class_name(class_name):
        raise _invalid("Pointer", place, "expected the name of a class in className")
    if not isinstance(object_id, str) or not is_object_id(object_id):
        raise _invalid("Pointer", place, "expected an object id in objectId")
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def _normalise_file(value: dict[Any, object], place: Place) -> Json:
    name, url = value.get("name"), value.get("url")
    if not isinstance(name, str) or not name or not is_storable_text(name):
        raise _invalid("File", place, "expected the file's name in name")
    if url is not None and (not isinstance(url, str) or not is_storable_text(url)):
        raise _invalid("File", place, "expected text in url")
    file: dict[str, Json] = {"__type": "File", "name": name}
    url = _file_address(name, url)
    if url is not None:
        file["url"] = url
    return file


def set_file_address(address: Callable[[str, str | None], str | None]) -> None:
    """Let ``address(name, url)`` decide the url of a File, overriding the client's.

    Without such a function the client's url is kept.
    """
    global _file_address
    _file_address = address


def _said_address(name: str, url: str | None) -> str | None:
    return url


_file_address: Callable[[str, str | None], str | None] = _said_address


def _normalise_bytes(value: dict[Any, object], place: Place) -> Json:
    text = value.get("base64")
    if not isinstance(text, str):
        raise _invalid("Bytes", place, "expected text in base64")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _invalid("Bytes", place, "expected base64") from None
    return {"__type": "Bytes", "base64": base64.b64encode(content).decode("ascii")}


def geo_coordinates(
    latitude: object, longitude: object, place: Place, type_name: str = "GeoPoint"
) -> tuple[int | float, int | float]:
    """A checked latitude and longitude in degrees, or ``IncorrectType``."""
    checked: list[int | float] = []
    for name, number, bound in (("latitude", latitude, 90), ("longitude", longitude, 180)):
        if type(number) is not int and type(number) is not float:
            raise _invalid(type_name, place, f"expected a number as {name}")
        if not -bound <= number <= bound:
            raise _invalid(type_name, place, f"{name} must be from -{bound} to {bound}")
        # Far below an atom's width, and squares of it can't be computed.
        checked.append(0 if abs(number) < _TINY_ANGLE else canonical_number(number, place))
    return checked[0], checked[1]


def _ring(coordinates: object, place: Place) -> Json:
    if not isinstance(coordinates, list):
        raise _invalid("Polygon", place, "expected a list of [latitude, longitude]")
    ring: list[Json] = []
    corners = set()
    for index, corner in enumerate(coordinates):
        if not isinstance(corner, list) or len(corner) != 2:
            raise _invalid("Polygon", (place, index), "expected [latitude, longitude]")
        point = geo_coordinates(corner[0], corner[1], (place, index), "Polygon")
        corners.add(point)
        ring.append([*point])
    if len(corners) < 3:
        raise _invalid("Polygon", place, "expected at least 3 different points")
    if ring[0] != ring[-1]:
        ring.append(ring[0])
    return ring


def normalise_date(iso: object, place: Place = "") -> str:
    """A point in time as ``YYYY-MM-DDTHH:MM:SS.mmmZ``, from any ISO 8601 text.

    Text without an offset is taken as UTC; what is finer than a millisecond is cut off.
    """
    if isinstance(iso, str) and _CANONICAL_ISO.fullmatch(iso):
        try:
            datetime.fromisoformat(iso)
        except ValueError:
            raise _invalid("Date", place, "there is no such time") from None
        return iso
    parts = _ISO.fullmatch(iso) if isinstance(iso, str) else None
    if parts is None:
        raise _invalid("Date", place, "expected ISO 8601, like 2020-01-31T12:00:00.000Z")
    day, time, fraction, offset = parts.groups()
    offset = "+00:00" if offset in (None, "Z", "z") else offset
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise _invalid("Date", place, "there is no such time") from None
    milliseconds = (fraction or "")[:3].ljust(3, "0")
    return f"{moment.year:04d}{moment.strftime('-%m-%dT%H:%M:%S')}.{milliseconds}Z"


def wire_time(moment: datetime) -> str:
    """A moment with a time zone as objects spell it: ISO 8601 in UTC, milliseconds."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def date(iso: str) -> dict[str, Json]:
    """A Date value of an ISO text in canonical form."""
    return {"__type": "Date", "iso": iso}


def pointer(class_name: str, object_id: str) -> dict[str, Json]:
    """A Pointer value."""
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def is_pointer(value: Json) -> bool:
    """Return whether the value is a Pointer."""
    return isinstance(value, dict) and value.get("__type") == "Pointer"


def number_key(number: int | float) -> int | Decimal:
    """Return the exact sort key of a number; a float counts as its shortest decimal spelling."""
    if isinstance(number, int):
        return number
    return Decimal(repr(number))


_CONTAINERS: Final = frozenset({dict, list})


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value, five times as fast as ``copy.deepcopy``."""
    value_type = type(value)
    if value_type is dict:
        return {
            name: copied(item) if type(item) in _CONTAINERS else item
            for name, item in value.items()
        }
    if value_type is list:
        return [copied(item) if type(item) in _CONTAINERS else item for item in value]
    return value


_SCALARS: Final = frozenset({str, int, float, bool})


def equal(a: Json, b: Json) -> bool:
    """Equality of JSON values: the order of keys is no matter, 1 is 1.0 but not true."""
    if type(a) is type(b) and type(a) in _SCALARS:
        return a == b
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and len(a) == len(b)
            and all(key in b and equal(item, b[key]) for key, item in a.items())
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float):
        return isinstance(b, int | float) and (
            number_key(a) == number_key(b) if type(a) is not type(b) else a == b
        )
    return a == b


def is_typed(value: Json) -> bool:
    """Return whether the value is one of the typed values, not JSON's own."""
    return isinstance(value, dict) and "__type" in value


def frozen(value: Json) -> Any:
    """A hashable key, equal for values that are ``equal``: for sets and groups."""
    if isinstance(value, Mapping):
        return ("{}", frozenset((key, frozen(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("[]", tuple(frozen(item) for item in value))
    if isinstance(value, bool) or value is None:
        return ("b", value)
    if isinstance(value, int | float):
        return ("n", number_key(value))
    return value

"""Python types for the values of fields, and update operators.

========  ===========================================================
Date      an aware ``datetime``, in UTC
Bytes     ``bytes``
Pointer   ``Pointer("Project", "xWMyZ4YEGZ")``
GeoPoint  ``GeoPoint(latitude, longitude)``
Polygon   ``Polygon([(latitude, longitude), …])``
File      ``File(name, url)``
Relation  ``Relation("_User")``: says only which class its members are of
an object that a pointer led to: ``Object``
========  ===========================================================

``decode`` converts wire JSON to them, ``encode`` converts them to wire JSON. Numbers, strings,
booleans, lists and dicts are the same on both sides. Plain Python, without Django.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

import msgspec

from backend.kernel.errors import InvalidJSON
from functions.runtime.time_zones import with_zones
from objects.core.values import wire_time

_MAX_DEPTH: Final = 200
# What is the same on both sides.
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


class NoResult(Enum):
    """The type of ``NO_RESULT``."""

    NO_RESULT = "no result"


NO_RESULT: Final = NoResult.NO_RESULT
"""The result of a function whose response has no ``result``: JavaScript's ``undefined``."""


class _Typed:
    """A value that is identified by its parts."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Typed)
            and type(self) is type(other)
            and self._parts() == other._parts()
        )

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._parts()))})"


class Pointer(_Typed):
    """A reference to an object of a class."""

    __slots__ = ("class_name", "id")

    def __init__(self, class_name: str, id: str) -> None:
        self.class_name = class_name
        self.id = id


class GeoPoint(_Typed):
    """A point on earth, in degrees."""

    __slots__ = ("latitude", "longitude")

    def __init__(self, latitude: float, longitude: float) -> None:
        self.latitude = latitude
        self.longitude = longitude


class Polygon(_Typed):
    """An area: its corners as (latitude, longitude)."""

    __slots__ = ("coordinates",)

    def __init__(self, coordinates: Iterable[tuple[float, float]]) -> None:
        self.coordinates = tuple((latitude, longitude) for latitude, longitude in coordinates)


class File(_Typed):
    """A stored file."""

    __slots__ = ("name", "url")

    def __init__(self, name: str, url: str = "") -> None:
        self.name = name
        self.url = url


class Relation(_Typed):
    """A field with members of a class; a query for ``related_to`` finds them."""

    __slots__ = ("class_name",)

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name


class Object(dict[str, Any]):
    """An object: a dict of its fields, with the class that it belongs to.

    ``objectId``, ``createdAt`` and ``updatedAt`` are among the keys, the last two as ``datetime``;
    ``ACL`` is there if the object has one.
    """

    def __init__(self, class_name: str, fields: Mapping[str, Any] | None = None) -> None:
        super().__init__(fields or {})
        self.class_name = class_name

    @property
    def id(self) -> str:
        """The objectId; empty for an object that isn't stored yet."""
        return str(self.get("objectId") or "")

    @property
    def created_at(self) -> datetime | None:
        return self.get("createdAt")

    @property
    def updated_at(self) -> datetime | None:
        return self.get("updatedAt")

    @property
    def acl(self) -> Any:
        """The ACL in wire form; None means that all clients may read and write."""
        return self.get("ACL")

    def pointer(self) -> Pointer:
        """A pointer to this object."""
        if not self.id:
            raise ValueError(f"This {self.class_name} isn't stored yet: nothing can point to it.")
        return Pointer(self.class_name, self.id)

    def __repr__(self) -> str:
        return f"Object({self.class_name!r}, {dict(self)!r})"


# -- Operators -------------------------------------------------------------------------------------


class Operator:
    """An update operator as the value of a field: ``increment()``, ``add(…)``."""

    __slots__ = ("wire",)

    def __init__(self, **wire: Any) -> None:
        self.wire = wire

    def __repr__(self) -> str:
        return f"Operator({self.wire!r})"


def increment(amount: int | float = 1) -> Operator:
    """Increment a number; a missing value counts as 0."""
    return Operator(__op="Increment", amount=amount)


def add(*values: Any) -> Operator:
    """Append values to a list."""
    return Operator(__op="Add", objects=list(values))


def add_unique(*values: Any) -> Operator:
    """Append those values to a list that it doesn't contain."""
    return Operator(__op="AddUnique", objects=list(values))


def remove(*values: Any) -> Operator:
    """Remove values from a list."""
    return Operator(__op="Remove", objects=list(values))


def add_relation(*members: Pointer | Object) -> Operator:
    """Add objects to a relation."""
    return Operator(__op="AddRelation", objects=list(members))


def remove_relation(*members: Pointer | Object) -> Operator:
    """Remove objects from a relation."""
    return Operator(__op="RemoveRelation", objects=list(members))


UNSET: Final = Operator(__op="Delete")
"""The field as if it had never been set."""


# -- From the wire and back ------------------------------------------------------------------------


def decode(value: Any, *, depth: int = 0) -> Any:
    """Return wire JSON as Python values. A dict that doesn't match its ``__type`` stays a dict.

    Raises ``InvalidJSON`` for what is nested too deeply.
    """
    if type(value) is dict:
        _check_depth(depth)
        type_ = value.get("__type")
        if type_ is not None:
            return _decode_typed(type_, value, depth)
        return _decode_fields(value, depth)
    if type(value) is list:
        _check_depth(depth)
        return [item if type(item) in _PLAIN else decode(item, depth=depth + 1) for item in value]
    return value


def _decode_fields(wire: Mapping[str, Any], depth: int) -> dict[str, Any]:
    # Plain values are most of an object; a call for each would take longer than all else here.
    return {
        name: item if type(item) in _PLAIN else decode(item, depth=depth + 1)
        for name, item in wire.items()
    }


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InvalidJSON(f"a value is nested more than {_MAX_DEPTH} levels deep")


def decode_object(class_name: str, wire: Mapping[str, Any], *, depth: int = 0) -> Object:
    """Return an object from its wire form."""
    own = {name: item for name, item in wire.items() if name not in ("__type", "className")}
    fields = _decode_fields(own, depth)
    for name in ("createdAt", "updatedAt"):
        if isinstance(fields.get(name), str):
            fields[name] = with_zones(datetime.fromisoformat(fields[name]))
    return Object(class_name, fields)


def _decode_typed(type_: object, value: dict[str, Any], depth: int) -> Any:
    try:
        if type_ == "Date":
            return with_zones(datetime.fromisoformat(value["iso"])).astimezone(UTC)
        if type_ == "Pointer":
            return Pointer(_text(value["className"]), _text(value["objectId"]))
        if type_ == "GeoPoint":
            return GeoPoint(_number(value["latitude"]), _number(value["longitude"]))
        if type_ == "File":
            return File(_text(value["name"]), _text(value.get("url") or ""))
        if type_ == "Bytes":
            return base64.b64decode(value["base64"], validate=True)
        if type_ == "Polygon":
            corners = [(_number(a), _number(b)) for a, b in value["coordinates"]]
            return Polygon(corners)
        if type_ == "Relation":
            return Relation(_text(value["className"]))
        if type_ == "Object":
            return decode_object(_text(value["className"]), value, depth=depth)
    except (KeyError, ValueError, TypeError, OverflowError):
        pass
    return _decode_fields(value, depth)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value


def encode(value: Any, *, as_field: bool = False, depth: int = 0) -> Any:
    """Return Python values as wire JSON. Raises ``InvalidJSON`` for values JSON can't represent.

    An ``Object`` is written whole, with its class; as the value of a field, as a pointer.
    """
    value_type = type(value)
    if value_type in _PLAIN:
        return value
    _check_depth(depth)
    if value_type is dict:
        return {
            _key(name): item
            if type(item) in _PLAIN
            else encode(item, as_field=as_field, depth=depth + 1)
            for name, item in value.items()
        }
    if value_type is list:
        return [
            item if type(item) in _PLAIN else encode(item, as_field=as_field, depth=depth + 1)
            for item in value
        ]
    if isinstance(value, Object):
        if as_field and value.id:
            return encode(value.pointer())
        fields = {
            name: encode(item, as_field=as_field, depth=depth + 1) for name, item in value.items()
        }
        for name in ("createdAt", "updatedAt"):
            if isinstance(value.get(name), datetime):
                fields[name] = _iso(value[name])
        return {"__type": "Object", "className": value.class_name, **fields}
    if isinstance(value, datetime):
        return {"__type": "Date", "iso": _iso(value)}
    if isinstance(value, Pointer):
        return {"__type": "Pointer", "className": value.class_name, "objectId": value.id}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(item, as_field=as_field, depth=depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {
            _key(name): encode(item, as_field=as_field, depth=depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, Operator):
        return encode(value.wire, as_field=True, depth=depth + 1)
    return _encode_rare(value, as_field, depth)


def _encode_rare(value: Any, as_field: bool, depth: int) -> Any:
    if isinstance(value, GeoPoint):
        return {"__type": "GeoPoint", "latitude": value.latitude, "longitude": value.longitude}
    if isinstance(value, Polygon):
        return {"__type": "Polygon", "coordinates": [list(point) for point in value.coordinates]}
    if isinstance(value, File):
        return {"__type": "File", "name": value.name, "url": value.url}
    if isinstance(value, Relation):
        return {"__type": "Relation", "className": value.class_name}
    if isinstance(value, bytes | bytearray):
        return {"__type": "Bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return encode(value.value, as_field=as_field, depth=depth + 1)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, str | int | float):  # of a subclass
        return value
    try:
        plain = msgspec.to_builtins(value)  # dataclasses and structs
    except (TypeError, msgspec.MsgspecError):
        plain = value
    if type(plain) is dict or type(plain) is list:
        return encode(plain, as_field=as_field, depth=depth + 1)
    raise InvalidJSON(f"a {type(value).__name__} can't be sent as JSON")


def _iso(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise InvalidJSON("a time without a time zone can't be sent: use an aware datetime")
    return wire_time(moment)


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidJSON(f"the key {name!r} of an object is no text")
    return name

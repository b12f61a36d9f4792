"""Values as people enter them in forms. All of it raises ``InvalidJSON`` or ``IncorrectType``."""

from __future__ import annotations

import msgspec

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from objects.core.values import canonical_number, geo_coordinates


def read_json(text: str) -> Json:
    """A JSON value."""
    try:
        decoded: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidJSON(str(error) or "nested too deep") from None
    return decoded


def read_number(text: str) -> int | float:
    """A number in JSON's spelling, of any size."""
    try:
        number = read_json(text.strip().removeprefix("+"))
    except InvalidJSON:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidJSON("expected a number, like 3, -0.5 or 1e6")
    return canonical_number(number)


def read_point(latitude: str, longitude: str) -> dict[str, Json]:
    """A GeoPoint of two numbers in degrees."""
    point = geo_coordinates(read_number(latitude), read_number(longitude), "")
    return {"__type": "GeoPoint", "latitude": point[0], "longitude": point[1]}

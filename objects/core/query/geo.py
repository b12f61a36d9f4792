"""Geometry on the globe and on the plane, and the constraints that speak of it.

Distances are great-circle angles by the haversine formula; PostgreSQL computes the same formula
(``objects.sql.geo``), so both readings agree but for the last bits of a double: about 1e-12
radians, a hundredth of a millimetre. Boxes and polygons are on the plane of degrees, as with
MongoDB's legacy coordinates; both sides compute them by the same operations in the same order,
so they agree to the bit. Borders belong to the shape.

On the wire a GeoPoint names its coordinates, a Polygon's are ``[latitude, longitude]``; bare
pairs in ``$polygon`` and ``$centerSphere`` are ``[longitude, latitude]``, as the SDKs send them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from objects.core.query.tree import (
    EARTH_RADIUS_KM,
    EARTH_RADIUS_MILES,
    IntersectsPoint,
    Near,
    Path,
    Point,
    Query,
    WithinBox,
    WithinPolygon,
    WithinSphere,
)
from objects.core.values import geo_coordinates, normalise

MAX_POINTS: Final = 1000

DISTANCES: Final[Mapping[str, float]] = {
    "$maxDistance": 1.0,
    "$maxDistanceInRadians": 1.0,
    "$maxDistanceInMiles": EARTH_RADIUS_MILES,
    "$maxDistanceInKilometers": EARTH_RADIUS_KM,
}
"""Operators that bound ``$nearSphere``, and what one radian is in their unit."""


# --- geometry ------------------------------------------------------------------------------


def distance(a: Point, b: Point) -> float:
    """The angle between two points in radians, seen from the centre of the earth."""
    latitude_a, latitude_b = math.radians(a[0]), math.radians(b[0])
    half_latitude = math.sin((latitude_b - latitude_a) / 2)
    half_longitude = math.sin(math.radians(b[1] - a[1]) / 2)
    haversine = (
        half_latitude * half_latitude
        + math.cos(latitude_a) * math.cos(latitude_b) * half_longitude * half_longitude
    )
    return 2 * math.asin(math.sqrt(min(1.0, haversine)))


def in_box(point: Point, southwest: Point, northeast: Point) -> bool:
    """Whether the point is in the box; one that runs from east to west crosses the date line."""
    if not southwest[0] <= point[0] <= northeast[0]:
        return False
    if southwest[1] <= northeast[1]:
        return southwest[1] <= point[1] <= northeast[1]
    return point[1] >= southwest[1] or point[1] <= northeast[1]


def in_polygon(point: Point, ring: tuple[Point, ...]) -> bool:
    """Whether the point is inside of a closed ring, or on it (even-odd rule)."""
    y, x = point
    inside = False
    for (y1, x1), (y2, x2) in pairwise(ring):
        cross = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
        if cross == 0 and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return True
        if (y1 > y) != (y2 > y) and (cross > 0) == (y2 > y1):
            inside = not inside
    return inside


# --- values --------------------------------------------------------------------------------


def point_of(value: Json) -> Point | None:
    """The point that a GeoPoint value is."""
    if not isinstance(value, dict) or value.get("__type") != "GeoPoint":
        return None
    latitude, longitude = value["latitude"], value["longitude"]
    if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
        return None
    return float(latitude), float(longitude)


def ring_of(value: Json) -> tuple[Point, ...] | None:
    """The closed ring of a Polygon value."""
    if not isinstance(value, dict) or value.get("__type") != "Polygon":
        return None
    coordinates = value["coordinates"]
    if not isinstance(coordinates, list):
        return None
    return tuple(
        (float(pair[0]), float(pair[1]))  # type: ignore[arg-type]
        for pair in coordinates
        if isinstance(pair, list)
    )


# --- constraints ---------------------------------------------------------------------------


def parse_near(path: Path, operand: object, siblings: Mapping[str, object], place: str) -> Query:
    """``$nearSphere`` and the bounds beside it; the tightest bound counts."""
    point = _geo_point(operand)
    if point is None:
        raise InvalidJSON(f"{place}.$nearSphere: bad $nearSphere value, should be GeoPoint")
    bounds = []
    for key, unit in DISTANCES.items():
        if key in siblings:
            bound = _distance(siblings[key])
            if bound is None:
                raise InvalidJSON(f"{place}.{key}: bad {key} value, should be a number from 0 on")
            bounds.append(bound / unit)
    return Near(path, point, min(bounds, default=None))


def parse_within(path: Path, key: str, operand: object, place: str) -> Query:
    """``$within: {$box}``, and ``$geoWithin: {$polygon}`` or ``{$centerSphere}``."""
    if not isinstance(operand, dict) or len(operand) != 1:
        raise InvalidJSON(f"{place}: {_malformed(key)}")
    if "$box" in operand:
        return _box(path, operand["$box"], f"{place}.$box")
    if "$polygon" in operand:
        return WithinPolygon(path, _polygon(operand["$polygon"], f"{place}.$polygon"))
    if "$centerSphere" in operand:
        return _center_sphere(path, operand["$centerSphere"], f"{place}.$centerSphere")
    raise InvalidJSON(f"{place}: {_malformed(key)}")


def parse_intersects(path: Path, operand: object, place: str) -> Query:
    """``$geoIntersects: {$point}``."""
    point = _geo_point(operand.get("$point")) if isinstance(operand, dict) else None
    if point is None or not isinstance(operand, dict) or len(operand) != 1:
        raise InvalidJSON(f"{place}: bad $geoIntersect value; $point should be GeoPoint")
    return IntersectsPoint(path, point)


def _malformed(key: str) -> str:
    return "malformatted $within arg" if key == "$within" else "bad $geoWithin value"


def _box(path: Path, corners: object, place: str) -> Query:
    if not isinstance(corners, list) or len(corners) != 2:
        raise InvalidJSON(f"{place}: malformatted $within arg")
    southwest, northeast = _geo_point(corners[0]), _geo_point(corners[1])
    if southwest is None or northeast is None:
        raise InvalidJSON(f"{place}: malformatted $within arg")
    return WithinBox(path, southwest, northeast)


def _polygon(operand: object, place: str) -> tuple[Point, ...]:
    if isinstance(operand, dict) and operand.get("__type") == "Polygon":
        coordinates = operand.get("coordinates")
        if not isinstance(coordinates, list) or len(coordinates) < 3:
            raise InvalidJSON(
                f"{place}: bad $geoWithin value; Polygon.coordinates should contain at least 3"
                " lon/lat pairs"
            )
        _check_points(coordinates, place)
        ring = ring_of(normalise(operand, place))
        assert ring is not None
        return ring
    if not isinstance(operand, list):
        raise InvalidJSON(
            f"{place}: bad $geoWithin value; $polygon should be Polygon object or Array of"
            " Parse.GeoPoint's"
        )
    if len(operand) < 3:
        raise InvalidJSON(
            f"{place}: bad $geoWithin value; $polygon should contain at least 3 GeoPoints"
        )
    _check_points(operand, place)
    points = []
    for index, corner in enumerate(operand):
        point = _geo_point(corner)
        if point is None:
            raise InvalidJSON(f"{place}.{index}: bad $geoWithin value")
        points.append(point)
    if points[0] != points[-1]:
        points.append(points[0])
    return tuple(points)


def _check_points(points: list[object], place: str) -> None:
    if len(points) > MAX_POINTS:
        raise InvalidJSON(f"{place}: bad $geoWithin value; at most {MAX_POINTS} points")


def _center_sphere(path: Path, operand: object, place: str) -> Query:
    if not isinstance(operand, list) or len(operand) != 2:
        raise InvalidJSON(
            f"{place}: bad $geoWithin value; $centerSphere should be an array of Parse.GeoPoint"
            " and distance"
        )
    center, radians = _geo_point(operand[0]), _distance(operand[1])
    if center is None:
        raise InvalidJSON(f"{place}: bad $geoWithin value; $centerSphere geo point invalid")
    if radians is None:
        raise InvalidJSON(f"{place}: bad $geoWithin value; $centerSphere distance invalid")
    return WithinSphere(path, center, radians)


def _geo_point(value: object) -> Point | None:
    """A GeoPoint, or a bare pair [longitude, latitude]; None for what is neither."""
    if isinstance(value, list) and len(value) == 2:
        latitude, longitude = value[1], value[0]
    elif isinstance(value, dict) and value.get("__type") == "GeoPoint":
        latitude, longitude = value.get("latitude"), value.get("longitude")
    else:
        return None
    try:
        checked = geo_coordinates(latitude, longitude, "")
    except ServiceError:
        return None
    return float(checked[0]), float(checked[1])


def _distance(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None

"""Geometry on the globe and on the plane.

Distances are great-circle angles by the haversine formula; PostgreSQL computes the same
formula (``objects.sql.geo_formulas``), so both agree but for the last bits of a double: about 1e-12
radians, a hundredth of a millimetre. Boxes and polygons are on the plane of degrees, as with
MongoDB's legacy coordinates; both sides compute them by the same operations in the same order,
so they agree to the bit. Borders belong to the shape.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, TypeAlias

from backend.kernel.json_types import Json

Point: TypeAlias = tuple[float, float]
"""(latitude, longitude) in degrees."""

EARTH_RADIUS_KM: Final = 6371.0
EARTH_RADIUS_MILES: Final = 3959.0


# --- geometry ------------------------------------------------------------------------------


def distance(a: Point, b: Point) -> float:
    """Return the angle between two points in radians, seen from the centre of the earth."""
    latitude_a, latitude_b = math.radians(a[0]), math.radians(b[0])
    half_latitude = math.sin((latitude_b - latitude_a) / 2)
    half_longitude = math.sin(math.radians(b[1] - a[1]) / 2)
    haversine = (
        half_latitude * half_latitude
        + math.cos(latitude_a) * math.cos(latitude_b) * half_longitude * half_longitude
    )
    return 2 * math.asin(math.sqrt(min(1.0, haversine)))


def in_box(point: Point, southwest: Point, northeast: Point) -> bool:
    """Return whether the point is in the box, which crosses the date line if west > east."""
    if not southwest[0] <= point[0] <= northeast[0]:
        return False
    if southwest[1] <= northeast[1]:
        return southwest[1] <= point[1] <= northeast[1]
    return point[1] >= southwest[1] or point[1] <= northeast[1]


def in_polygon(point: Point, ring: tuple[Point, ...]) -> bool:
    """Return whether the point is inside of a closed ring, or on it (even-odd rule)."""
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
    """Return the point that a GeoPoint value is."""
    if not isinstance(value, dict) or value.get("__type") != "GeoPoint":
        return None
    latitude, longitude = value["latitude"], value["longitude"]
    if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
        return None
    return float(latitude), float(longitude)


def ring_of(value: Json) -> tuple[Point, ...] | None:
    """Return the closed ring of a Polygon value."""
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

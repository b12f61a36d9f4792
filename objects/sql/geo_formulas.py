"""Places in SQL: the formulas of ``objects.core.query.geo_formulas``, without any extension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from objects.core.query.tree import Near, Point
from objects.sql import jsonpath
from objects.sql.fields import Reading
from objects.sql.fragments import TRUE, Sql, both, either
from objects.sql.values import start

_MARGIN_DEGREES: Final = 1e-6
"""Added to bounding boxes, so that rounding can't put a point outside that is inside."""


@dataclass(frozen=True, slots=True)
class Place:
    """A GeoPoint or Polygon in SQL; ``point`` is what an index on a GeoPoint field is made on."""

    json: str
    latitude: str
    longitude: str
    point: str | None = None

    @classmethod
    def of_field(cls, reading: Reading) -> Place:
        return cls(
            reading.json,
            f"({reading.json}->>'latitude')::float8",
            f"({reading.json}->>'longitude')::float8",
            reading.typed if reading.kind == "GeoPoint" else None,
        )

    @classmethod
    def of_value(cls, name: str) -> Place:
        return cls(name, f"({name}->>'latitude')::float8", f"({name}->>'longitude')::float8")


def near_distance(near: Near, reading: Reading) -> Sql:
    """Return the angle of a row's place from the point, for sorting."""
    if reading.is_whole and reading.kind == "GeoPoint":
        return _distance(Place.of_field(reading), near.point)
    value, steps = start(reading)
    points = jsonpath.filtered(steps, jsonpath.has_type("GeoPoint"))
    return (
        "(SELECT min("
        + _distance(Place.of_value("c"), near.point)
        + ") FROM jsonb_path_query("
        + value
        + Sql(", %s::jsonpath) AS c)", (points,))
    )


def _distance(place: Place, point: Point) -> Sql:
    latitude = f"radians({place.latitude})"
    half_latitude = f"sin(({latitude} - %s::float8) / 2)"
    half_longitude = f"sin(radians({place.longitude} - %s::float8) / 2)"
    own = math.radians(point[0])
    return Sql(
        f"(2 * asin(sqrt(least(1, {half_latitude} * {half_latitude} + cos({latitude})"
        f" * %s::float8 * {half_longitude} * {half_longitude}))))",
        (own, own, math.cos(own), point[1], point[1]),
    )


def in_sphere(place: Place, center: Point, radians: float) -> Sql:
    """A GeoPoint is within an angle of the centre."""
    close = _distance(place, center) + Sql(" <= %s::float8", (radians,))
    return both([_bounds(place, center, radians), close])


def _bounds(place: Place, center: Point, radians: float) -> Sql:
    """A box around a circle; around one that reaches a pole, all longitudes."""
    reach = math.degrees(radians) + _MARGIN_DEGREES
    south, north = center[0] - reach, center[0] + reach
    if south <= -90 or north >= 90:
        return in_box(place, (max(south, -90), -180), (min(north, 90), 180))
    ratio = math.sin(min(radians, math.pi / 2)) / math.cos(math.radians(center[0]))
    if ratio >= 1:
        return in_box(place, (south, -180), (north, 180))
    width = math.degrees(math.asin(ratio)) + _MARGIN_DEGREES
    west, east = center[1] - width, center[1] + width
    west, east = west + 360 * (west < -180), east - 360 * (east > 180)
    return in_box(place, (south, west), (north, east))


def in_box(place: Place, southwest: Point, northeast: Point) -> Sql:
    """A GeoPoint is in a box; one whose west is greater than its east crosses the date line."""
    (south, west), (north, east) = southwest, northeast
    if west > east:
        # Two boxes, each of which an index can find.
        return either(
            [in_box(place, southwest, (north, 180)), in_box(place, (south, -180), northeast)]
        )
    exact = Sql(
        f"({place.latitude} BETWEEN %s::float8 AND %s::float8"
        f" AND {place.longitude} BETWEEN %s::float8 AND %s::float8)",
        (southwest[0], northeast[0], southwest[1], northeast[1]),
    )
    return both([_indexed_box(place, southwest, northeast), exact])


def _indexed_box(place: Place, southwest: Point, northeast: Point) -> Sql:
    """For the index only: it rounds, so the box is a little wider."""
    if place.point is None:
        return TRUE
    corners = (
        southwest[1] - _MARGIN_DEGREES,
        southwest[0] - _MARGIN_DEGREES,
        northeast[1] + _MARGIN_DEGREES,
        northeast[0] + _MARGIN_DEGREES,
    )
    return Sql(
        f"({place.point} <@ box(point(%s::float8, %s::float8), point(%s::float8, %s::float8)))",
        corners,
    )


# The even-odd rule over the edges e(y1, x1, y2, x2), for the point (y, x); see geo.in_polygon.
_CROSS: Final = "((e.x2 - e.x1) * ({y} - e.y1) - ({x} - e.x1) * (e.y2 - e.y1))"
_ON_EDGE: Final = (
    f"({_CROSS} = 0 AND {{x}} BETWEEN least(e.x1, e.x2) AND greatest(e.x1, e.x2)"
    " AND {y} BETWEEN least(e.y1, e.y2) AND greatest(e.y1, e.y2))"
)
_CROSSES: Final = f"((e.y1 > {{y}}) <> (e.y2 > {{y}}) AND ({_CROSS} > 0) = (e.y2 > e.y1))"
_INSIDE: Final = f"bool_or({_ON_EDGE}) OR count(*) FILTER (WHERE {_CROSSES}) % 2 = 1"
assert "%" in _INSIDE
_INSIDE_TEXT: Final = _INSIDE.replace("%", "%%")


def in_polygon(place: Place, ring: Sequence[Point]) -> Sql:
    """A GeoPoint is in a closed ring, border included."""
    latitudes, longitudes = [point[0] for point in ring], [point[1] for point in ring]
    bounds = in_box(place, (min(latitudes), min(longitudes)), (max(latitudes), max(longitudes)))
    inside = _INSIDE_TEXT.format(y=place.latitude, x=place.longitude)
    edges = Sql(
        f"(SELECT {inside} FROM unnest(%s::float8[], %s::float8[], %s::float8[], %s::float8[])"
        " AS e(y1, x1, y2, x2))",
        (latitudes[:-1], longitudes[:-1], latitudes[1:], longitudes[1:]),
    )
    return both([bounds, edges])


def is_around(place: Place, point: Point) -> Sql:
    """A Polygon has the point inside or on its border."""
    y, x = point
    inside = _INSIDE_TEXT.format(y="p.y", x="p.x")
    return Sql(
        f"(SELECT {inside} FROM (SELECT %s::float8 AS y, %s::float8 AS x) AS p,"
        " (SELECT (v->>0)::float8 AS y1, (v->>1)::float8 AS x1,"
        " lead((v->>0)::float8) OVER (ORDER BY n) AS y2,"
        " lead((v->>1)::float8) OVER (ORDER BY n) AS x2"
        f" FROM jsonb_array_elements({place.json}->'coordinates') WITH ORDINALITY AS c(v, n)) AS e"
        " WHERE e.y2 IS NOT NULL)",
        (y, x),
    )

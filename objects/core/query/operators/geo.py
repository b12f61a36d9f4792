"""Constraints on places: ``$nearSphere``, ``$within``, ``$geoWithin``, ``$geoIntersects``.

On the wire a GeoPoint names its coordinates, a Polygon's are ``[latitude, longitude]``; bare
pairs in ``$polygon`` and ``$centerSphere`` are ``[longitude, latitude]``, as the SDKs send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from backend.kernel.errors import InvalidJSON, ServiceError
from backend.kernel.json_types import Json
from objects.core.query import geo_formulas
from objects.core.query.filters import Filter
from objects.core.query.geo_formulas import EARTH_RADIUS_KM, EARTH_RADIUS_MILES, Point, ring_of
from objects.core.query.messages import parse_message
from objects.core.query.node import Matching, Operand, Parser, Predicate, Query, Uses, filtered
from objects.core.query.paths import Path
from objects.core.values import geo_coordinates, normalise

MAX_POINTS: Final = 1000

_POINTS_PER_COMPARISON: Final = 100
"""Points of a polygon that take as long as one comparison."""

DISTANCES: Final[Mapping[str, float]] = {
    "$maxDistance": 1.0,
    "$maxDistanceInRadians": 1.0,
    "$maxDistanceInMiles": EARTH_RADIUS_MILES,
    "$maxDistanceInKilometers": EARTH_RADIUS_KM,
}
"""Operators that bound ``$nearSphere``, and what one radian is in their unit."""


@dataclass(frozen=True, slots=True)
class Near(Query):
    """Some element is a GeoPoint, within ``max_radians`` of the point if that is given.

    As a top-level part it also sorts: the nearest come first, unless the query has an order.
    """

    names = ("$nearSphere",)
    companions = tuple(DISTANCES)
    usage = "`$nearSphere` with `$maxDistance[InMiles, InKilometers, InRadians]`"
    summary = (
        "sorted by distance; `$maxDistance` alone is in radians. Without a distance it sorts the"
        " whole class"
    )
    filters = (
        Filter(
            "near",
            "is near",
            ("GeoPoint",),
            lambda entry: dict(
                zip(("$nearSphere", "$maxDistanceInKilometers"), entry.circle, strict=True)
            ),
            hint="latitude, longitude, kilometres",
        ),
    )

    path: Path
    point: Point
    max_radians: float | None

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        """Return the node; of several distances the smallest applies."""
        point = _geo_point(operand.value)
        if point is None:
            raise InvalidJSON(
                parse_message("bad $nearSphere value, should be GeoPoint", operand.place)
            )
        bounds = []
        for key, unit in DISTANCES.items():
            if key in operand.siblings:
                bound = _distance(operand.siblings[key])
                if bound is None:
                    raise InvalidJSON(
                        f"bad {key} value, should be a number from 0 on"
                        f" ({operand.field_place}.{key})"
                    )
                bounds.append(bound / unit)
        return cls(operand.path, point, min(bounds, default=None))

    def predicate(self, matching: Matching) -> Predicate:
        center, most = self.point, self.max_radians

        def is_near(value: Json) -> bool:
            point = geo_formulas.point_of(value)
            return point is not None and (
                most is None or geo_formulas.distance(point, center) <= most
            )

        return matching.some_element(self.path, is_near)

    def uses(self) -> Uses:
        # Without a greatest distance every place is near, and all of them are sorted.
        is_bounded = self.max_radians is not None and len(self.path) == 1
        return ((self.path[0], "place" if is_bounded else "filter"),)


@dataclass(frozen=True, slots=True)
class Within(Query):
    """Some element is a GeoPoint in a shape. Use the subclasses, one for each kind of shape."""

    names = ("$within", "$geoWithin")
    usage = '`$within: {"$box": [SW, NE]}`, `$geoWithin: {"$polygon" or "$centerSphere": …}`'
    summary = "GeoPoints inside; a box may have its corners swapped"

    shape: ClassVar[str] = ""
    """The key of the shape in the operand."""

    path: Path

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        value, place = operand.value, operand.place
        if isinstance(value, dict) and len(value) == 1:
            for node in _SHAPES:
                if node.shape in value:
                    shape_place = f"{place}.{node.shape}"
                    return node.parse_shape(operand.path, value[node.shape], shape_place)
        is_within = operand.name == "$within"
        message = "malformatted $within arg" if is_within else "bad $geoWithin value"
        raise InvalidJSON(parse_message(message, place))

    @classmethod
    def parse_shape(cls, path: Path, operand: object, place: str) -> Query:
        """Return the node of a shape. Raises ``InvalidJSON``."""
        raise NotImplementedError

    @classmethod
    def nodes(cls) -> tuple[type[Query], ...]:
        return _SHAPES

    def uses(self) -> Uses:
        return ((self.path[0], "place" if len(self.path) == 1 else "filter"),)


@dataclass(frozen=True, slots=True)
class WithinBox(Within):
    """Some element is a GeoPoint in the box, borders included.

    A box whose south-west corner is east of the other one crosses the date line. Clients may send
    the corners in the other order, or the other two corners.
    """

    shape = "$box"

    southwest: Point
    northeast: Point

    @classmethod
    def parse_shape(cls, path: Path, operand: object, place: str) -> Query:
        if not isinstance(operand, list) or len(operand) != 2:
            raise InvalidJSON(parse_message("malformatted $within arg", place))
        southwest, northeast = _geo_point(operand[0]), _geo_point(operand[1])
        if southwest is None or northeast is None:
            raise InvalidJSON(parse_message("malformatted $within arg", place))
        return cls(path, *_corners(southwest, northeast))

    def predicate(self, matching: Matching) -> Predicate:
        southwest, northeast = self.southwest, self.northeast

        def is_within(value: Json) -> bool:
            point = geo_formulas.point_of(value)
            return point is not None and geo_formulas.in_box(point, southwest, northeast)

        return matching.some_element(self.path, is_within)


@dataclass(frozen=True, slots=True)
class WithinPolygon(Within):
    """Some element is a GeoPoint in the polygon (closed, in plane degrees), border included."""

    shape = "$polygon"

    points: tuple[Point, ...]

    @classmethod
    def parse_shape(cls, path: Path, operand: object, place: str) -> Query:
        return cls(path, _polygon(operand, place))

    def predicate(self, matching: Matching) -> Predicate:
        points = self.points

        def is_within(value: Json) -> bool:
            point = geo_formulas.point_of(value)
            return point is not None and geo_formulas.in_polygon(point, points)

        return matching.some_element(self.path, is_within)

    def comparisons(self) -> int:
        return 1 + len(self.points) // _POINTS_PER_COMPARISON


@dataclass(frozen=True, slots=True)
class WithinSphere(Within):
    """Some element is a GeoPoint within ``radians`` of the centre; unlike Near, never sorts."""

    shape = "$centerSphere"

    center: Point
    radians: float

    @classmethod
    def parse_shape(cls, path: Path, operand: object, place: str) -> Query:
        if not isinstance(operand, list) or len(operand) != 2:
            raise InvalidJSON(
                parse_message(
                    "bad $geoWithin value; $centerSphere should be an array of"
                    " Parse.GeoPoint and distance",
                    place,
                )
            )
        center, radians = _geo_point(operand[0]), _distance(operand[1])
        if center is None:
            raise InvalidJSON(
                parse_message("bad $geoWithin value; $centerSphere geo point invalid", place)
            )
        if radians is None:
            raise InvalidJSON(
                parse_message("bad $geoWithin value; $centerSphere distance invalid", place)
            )
        return cls(path, center, radians)

    def predicate(self, matching: Matching) -> Predicate:
        return Near(self.path, self.center, self.radians).predicate(matching)


_SHAPES: Final[tuple[type[Within], ...]] = (WithinBox, WithinPolygon, WithinSphere)


@dataclass(frozen=True, slots=True)
class IntersectsPoint(Query):
    """Some element is a Polygon that has the point inside or on its border."""

    names = ("$geoIntersects",)
    usage = '`$geoIntersects: {"$point": …}`'
    summary = "Polygons around a point"
    filters = (
        Filter(
            "holds",
            "holds the point",
            ("Polygon",),
            lambda entry: {"$geoIntersects": {"$point": entry.point}},
            hint="latitude, longitude",
        ),
    )

    path: Path
    point: Point

    @classmethod
    def parse(cls, operand: Operand, parser: Parser) -> Query:
        value = operand.value
        point = _geo_point(value.get("$point")) if isinstance(value, dict) else None
        if point is None or not isinstance(value, dict) or len(value) != 1:
            raise InvalidJSON(
                parse_message("bad $geoIntersect value; $point should be GeoPoint", operand.place)
            )
        return cls(operand.path, point)

    def predicate(self, matching: Matching) -> Predicate:
        point = self.point

        def is_around(value: Json) -> bool:
            ring = geo_formulas.ring_of(value)
            return ring is not None and geo_formulas.in_polygon(point, ring)

        return matching.some_element(self.path, is_around)

    def uses(self) -> Uses:
        return filtered(self)


def _corners(a: Point, b: Point) -> tuple[Point, Point]:
    """Return the south-west and the north-east corner of a box, from opposite corners.

    Longitudes in the wrong order alone mean a box that crosses the date line.
    """
    (south, west), (north, east) = a, b
    if south > north:
        south, north = north, south
        west, east = min(west, east), max(west, east)
    return (south, west), (north, east)


def _polygon(operand: object, place: str) -> tuple[Point, ...]:
    if isinstance(operand, dict) and operand.get("__type") == "Polygon":
        coordinates = operand.get("coordinates")
        if not isinstance(coordinates, list) or len(coordinates) < 3:
            raise InvalidJSON(
                parse_message(
                    "bad $geoWithin value; Polygon.coordinates should contain at least 3"
                    " lon/lat pairs",
                    place,
                )
            )
        _check_points(coordinates, place)
        ring = ring_of(normalise(operand, place))
        assert ring is not None
        return ring
    if not isinstance(operand, list):
        raise InvalidJSON(
            parse_message(
                "bad $geoWithin value; $polygon should be Polygon object or Array of"
                " Parse.GeoPoint's",
                place,
            )
        )
    if len(operand) < 3:
        raise InvalidJSON(
            parse_message(
                "bad $geoWithin value; $polygon should contain at least 3 GeoPoints", place
            )
        )
    _check_points(operand, place)
    points = []
    for index, corner in enumerate(operand):
        point = _geo_point(corner)
        if point is None:
            raise InvalidJSON(f"bad $geoWithin value ({place}.{index})")
        points.append(point)
    if points[0] != points[-1]:
        points.append(points[0])
    return tuple(points)


def _check_points(points: list[object], place: str) -> None:
    if len(points) > MAX_POINTS:
        raise InvalidJSON(f"bad $geoWithin value; at most {MAX_POINTS} points ({place})")


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

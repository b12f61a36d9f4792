"""SQL of ``$near``, ``$geoWithin`` and ``$geoIntersects``: which formula for which elements.

The formulas are in ``objects.sql.geo_formulas``.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from objects.core.query.operators.geo import (
    IntersectsPoint,
    Near,
    WithinBox,
    WithinPolygon,
    WithinSphere,
)
from objects.sql import geo_formulas, jsonpath
from objects.sql.fields import SINGLE_KINDS
from objects.sql.fragments import FALSE, Sql
from objects.sql.operators.compilation import Compilation, OperatorSql, sql_of
from objects.sql.values import each_element

N = TypeVar("N", bound=Near | WithinBox | WithinPolygon | WithinSphere | IntersectsPoint)


class PlaceSql(OperatorSql[N]):
    """Some element is a place that passes the test."""

    type_name: ClassVar = "GeoPoint"

    def test(self, node: N, place: geo_formulas.Place) -> Sql:
        """Return the condition of one place."""
        raise NotImplementedError

    def condition(self, node: N, compilation: Compilation) -> Sql:
        reading = compilation.read(node.path)
        if reading.is_whole and reading.kind in SINGLE_KINDS | {"Polygon"}:
            if reading.kind != self.type_name:
                return FALSE
            return self.test(node, geo_formulas.Place.of_field(reading))
        return each_element(
            reading,
            jsonpath.has_type(self.type_name),
            lambda c: self.test(node, geo_formulas.Place.of_value(c)),
        )


@sql_of(Near)
class NearSql(PlaceSql[Near]):
    def test(self, node: Near, place: geo_formulas.Place) -> Sql:
        if node.max_radians is None:
            return Sql(f"({place.latitude} IS NOT NULL)")
        return geo_formulas.in_sphere(place, node.point, node.max_radians)


@sql_of(WithinBox)
class WithinBoxSql(PlaceSql[WithinBox]):
    def test(self, node: WithinBox, place: geo_formulas.Place) -> Sql:
        return geo_formulas.in_box(place, node.southwest, node.northeast)


@sql_of(WithinPolygon)
class WithinPolygonSql(PlaceSql[WithinPolygon]):
    def test(self, node: WithinPolygon, place: geo_formulas.Place) -> Sql:
        return geo_formulas.in_polygon(place, node.points)


@sql_of(WithinSphere)
class WithinSphereSql(PlaceSql[WithinSphere]):
    def test(self, node: WithinSphere, place: geo_formulas.Place) -> Sql:
        return geo_formulas.in_sphere(place, node.center, node.radians)


@sql_of(IntersectsPoint)
class IntersectsPointSql(PlaceSql[IntersectsPoint]):
    type_name = "Polygon"

    def test(self, node: IntersectsPoint, place: geo_formulas.Place) -> Sql:
        return geo_formulas.is_around(place, node.point)

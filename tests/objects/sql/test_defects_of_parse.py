"""What Parse Server on PostgreSQL gets wrong, and MongoDB's semantics right."""

from __future__ import annotations

import pytest

from backend.kernel.errors import InvalidQuery
from objects.core.query.parser import parse_where
from tests.objects.sql.world import THINGS, World, thing

NEAR = {"__type": "GeoPoint", "latitude": 0, "longitude": 0}
AWAY = {"__type": "GeoPoint", "latitude": 0, "longitude": 1}
OBJECTS = [
    thing("a", tags=["x", 1], name="x", info={"deep": {"er": 1}}, place=NEAR),
    thing("b", tags=[], name=None, info={}, place=AWAY),
    thing("c"),
]


@pytest.mark.parametrize("stored", THINGS)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param({"tags": "x"}, ["a"], id="an array equal to a scalar"),
        pytest.param({"tags": ["x", 1]}, ["a"], id="an array equal to an array"),
        pytest.param({"info": {"deep": {"er": 1}}}, ["a"], id="an object equal to an object"),
        pytest.param({"name": {"$in": ["x", None]}}, ["a", "b", "c"], id="in with null"),
        pytest.param({"name": {"$in": []}}, [], id="in of nothing finds no nulls"),
        pytest.param({"name": {"$nin": ["x"]}}, ["b", "c"], id="nin keeps nulls"),
        pytest.param({"name": {"$ne": "x"}}, ["b", "c"], id="ne keeps nulls"),
        pytest.param({"info.deep": {"$exists": True}}, ["a"], id="dotted exists"),
        pytest.param({"info.deep.er": {"$exists": False}}, ["b", "c"], id="dotted not exists"),
        pytest.param(
            {"place": {"$nearSphere": NEAR, "$maxDistanceInKilometers": 50}},
            ["a"],
            id="a distance in kilometres counts",
        ),
        pytest.param({"never_seen": 1}, [], id="an unknown field"),
        pytest.param({"never_seen": None}, ["a", "b", "c"], id="an unknown field is null"),
        pytest.param({"never.seen": {"$gt": 1}}, [], id="an unknown path"),
    ],
)
def test_mongodbs_meaning_holds(world: World, stored, where, expected):
    world.fill(OBJECTS)
    assert sorted(world.in_sql(parse_where(where), THINGS[stored])) == expected


@pytest.mark.parametrize("where", [{"a": {"$regex": "["}}, {"$or": []}, {"$or": None}])
def test_what_was_an_internal_error_is_an_invalid_query(where):
    with pytest.raises(InvalidQuery):
        parse_where(where)


@pytest.mark.parametrize("name", ["_Join:likes:Thing", "x'; DROP TABLE thing", "Join.a"])
def test_classes_that_are_none_are_not_reachable(name):
    from backend.kernel.errors import InvalidClassName

    with pytest.raises(InvalidClassName):
        parse_where({"owner": {"$inQuery": {"className": name, "where": {}}}})

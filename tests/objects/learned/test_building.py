"""Learned indexes from the query to the plan."""

from __future__ import annotations

import pytest

from objects.core.indexes.decisions import MIN_CALLS, MIN_SECONDS, Cost
from objects.learned import evidence, schedule, shape_counts
from tests.objects.learned.large_class import ask, auto_indexes, game, make_class, plan
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(transactional_db) -> Api:
    return Api(MASTER)


@pytest.mark.slow
def test_queries_that_are_slow_get_an_index_and_use_it(caller):
    make_class(caller, 100_000)
    where, order = {"rank": {"$gte": 99_000}}, "rank"
    before = caller.results("Game", where=where, order=order, limit=50)
    calls = 1
    while _cost().seconds < MIN_SECONDS or calls < MIN_CALLS:
        caller.results("Game", where=where, order=order, limit=50)
        calls += 1
        assert shape_counts.flush()
    assert schedule.run()
    assert list(auto_indexes().values()) == [True]
    assert game().learned == ((("rank", 1),),)
    assert caller.results("Game", where=where, order=order, limit=50) == before
    assert "objects_auto" in plan(where, order)
    (index,) = evidence.learned(game().class_id)
    assert index.before.calls == calls
    assert index.before.mean > 0.005
    assert index.size


def _cost() -> Cost:
    costs = evidence.shapes(game().class_id)
    return next(
        (cost.recent for cost in costs if cost.shape.order[:1] == (("rank", False),)), Cost()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "order", "fields"),
    [
        ({"rank": {"$gt": 19_000}}, "rank", (("rank", 1),)),
        ({}, "-rank", (("rank", 1),)),
        ({"status": "open"}, "-rank", (("status", 1), ("rank", 1))),
        ({"name": "name 77"}, "-createdAt", (("name", 1), ("createdAt", 1))),
        ({"name": {"$regex": "^name 499"}}, None, (("name", 1),)),
        ({"name": {"$gt": "name 4990"}}, "name", (("name", 1),)),
        ({"level": 3, "rank": {"$lt": 50}}, None, (("level", 1), ("rank", 1))),
        ({}, "name,-rank", (("name", 1), ("rank", -1))),
        (
            {
                "spot": {
                    "$nearSphere": {"__type": "GeoPoint", "latitude": 1, "longitude": 1},
                    "$maxDistanceInKilometers": 50,
                }
            },
            None,
            (("spot", "2dsphere"),),
        ),
        (
            {"when": {"$gt": {"__type": "Date", "iso": "2024-01-01T05:00:00.000Z"}}},
            "when",
            (("when", 1),),
        ),
    ],
)
def test_each_shape_gets_an_index_that_serves_it_and_finds_the_same(caller, where, order, fields):
    make_class(caller)
    options = {"where": where, "limit": 30} | ({"order": order} if order else {})
    before = caller.results("Game", **options)
    count = caller.get("/classes/Game", where=where, count=1, limit=0).json["count"]
    assert before
    ask(where, order)
    assert schedule.run()
    assert game().learned == (fields,)
    assert caller.results("Game", **options) == before
    assert caller.get("/classes/Game", where=where, count=1, limit=0).json["count"] == count
    assert "objects_auto" in plan(where, order)

"""GET /aggregate/{ClassName}: pipelines and distinct values, for the master key."""

from __future__ import annotations

import pytest

from tests.rest import CLIENT, MASTER, Api


@pytest.fixture
def games(master):
    """Four games of two teams, one without a score."""
    teams = [master.make("Team", name=name) for name in ("Reds", "Blues")]
    for name, score, team in (("a", 3, 0), ("b", 1, 1), ("c", None, 0), ("d", 2.5, 0)):
        fields = {} if score is None else {"score": score}
        pointer = {"__type": "Pointer", "className": "Team", "objectId": teams[team]}
        when = {"__type": "Date", "iso": f"202{team}-05-01T00:00:00.000Z"}
        master.make("Game", name=name, team=pointer, tags=[name, "all"], when=when, **fields)
    return Api(MASTER)


def aggregated(api, **params):
    reply = api.get("/aggregate/Game", **params)
    assert reply.status == 200, reply.json
    return reply.json["results"]


def test_a_pipeline_groups_and_sorts(games):
    pipeline = [
        {"$match": {"score": {"$exists": True}}},
        {"$group": {"_id": {"$year": "$when"}, "total": {"$sum": "$score"}, "n": {"$sum": 1}}},
        {"$sort": {"total": -1}},
    ]
    expected = [{"objectId": 2020, "total": 5.5, "n": 2}, {"objectId": 2021, "total": 1, "n": 1}]
    assert aggregated(games, pipeline=pipeline) == expected
    stages = {name: stage for entry in pipeline for name, stage in entry.items()}
    assert aggregated(games, **stages) == expected
    assert games.call("POST", "/aggregate/Game", {"_method": "GET", "pipeline": pipeline}).json == {
        "results": expected
    }


def test_objects_come_out_as_they_are_read(games):
    [found] = aggregated(games, pipeline=[{"$match": {"name": "a"}}])
    assert found == games.results("Game", where={"name": "a"})[0]


def test_other_classes_are_looked_up(games):
    pipeline = [
        {"$lookup": {"from": "Team", "localField": "team", "foreignField": "_id", "as": "team"}},
        {"$unwind": "$team"},
        {"$sortByCount": "$team.name"},
    ]
    assert aggregated(games, pipeline=pipeline) == [
        {"objectId": "Reds", "count": 3},
        {"objectId": "Blues", "count": 1},
    ]


def test_distinct_values(games):
    assert aggregated(games, distinct="tags") == ["a", "all", "b", "c", "d"]
    assert aggregated(games, distinct="score", where={"name": {"$ne": "b"}}) == [2.5, 3]


def test_a_class_that_is_not_there_has_no_results(master):
    assert master.get("/aggregate/Nothing", pipeline=[{"$count": "n"}]).json == {"results": []}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"pipeline": [{"$foo": {}}]}, 102),
        ({"pipeline": [{"group": {"_id": None}}]}, 102),
        ({"pipeline": [{"$group": {"total": {"$sum": 1}}}]}, 102),
        ({"pipeline": [{"$match": {}, "$limit": 1}]}, 102),
        ({"pipeline": "nonsense"}, 107),
        ({"group": {"_id": None}}, 102),
        ({"pipeline": [{"$match": {"score": {"$foo": 1}}}]}, 107),
    ],
)
def test_what_is_no_pipeline_is_refused(games, params, code):
    assert games.get("/aggregate/Game", **params).error == (400, code)


def test_numbers_beyond_all_bounds_are_no_fault_of_the_service(games):
    big = {"$multiply": ["$score", *[10**300] * 5]}
    reply = games.get("/aggregate/Game", pipeline=[{"$project": {"x": big}}, {"$limit": 1}])
    assert reply.status == 200
    beyond = {"$multiply": [{"$literal": 10**999}] * 40}
    for _ in range(3):
        beyond = {"$multiply": [beyond] * 3}
    reply = games.get("/aggregate/Game", pipeline=[{"$project": {"_id": 0, "x": beyond}}])
    assert reply.error == (400, 111)


def test_only_the_master_key_aggregates(games):
    reply = Api(CLIENT).get("/aggregate/Game", pipeline=[{"$count": "n"}])
    assert reply.error == (403, 119)


def test_the_read_only_master_key_aggregates(games, reader):
    assert aggregated(reader, pipeline=[{"$count": "n"}]) == [{"n": 4}]

"""``explain``: PostgreSQL's plan of a query in place of its results."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def games(master):
    for score in range(3):
        master.make("Game", score=score, ACL={"*": {"read": True}})
    player = master.make("Player", name="Ann")
    pointer = {"__type": "Pointer", "className": "Player", "objectId": player}
    master.make("Game", score=9, secret="hidden words", player=pointer)


@pytest.fixture
def public(settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_PUBLIC_EXPLAIN": True}


def plan(api, **params):
    reply = api.get("/classes/Game", **params)
    assert reply.status == 200, reply.json
    (result,) = reply.json["results"]
    (statement,) = result["QUERY PLAN"]
    return statement["Plan"]


@pytest.mark.parametrize("explain", ["true", "1", "queryPlanner", "executionStats"])
def test_the_master_key_gets_the_plan(master, games, explain):
    observed = plan(master, explain=explain, where={"score": {"$gt": 1}}, order="-score", limit=2)
    assert {"Node Type", "Total Cost", "Plan Rows"} <= set(observed)
    assert "Relation Name" in json.dumps(observed)


def test_a_plan_has_parameters_and_sub_queries(master, games):
    where = {
        "player": {"$inQuery": {"className": "Player", "where": {"name": "Ann"}}},
        "secret": {"$regex": "wor"},
        "score": {"$in": [1, 9]},
    }
    assert plan(master, explain=True, where=where, skip=1)


@pytest.mark.parametrize("explain", ["false", "0", ""])
def test_a_flag_that_is_off_finds_objects(client, games, explain):
    assert len(client.results("Game", explain=explain)) == 4


def test_a_client_needs_the_master_key(client, games):
    reply = client.get("/classes/Game", explain=True)
    assert reply.status == 400
    assert reply.json == {
        "code": 102,
        "error": "Using the explain query parameter requires the master key",
    }


def test_clients_that_may_explain_see_no_names_and_conditions(client, games, public):
    where = {"secret": "hidden words", "$or": [{"score": 9}, {"score": 1}]}
    observed = plan(client, explain=True, where=where, order="score")
    assert observed["Node Type"]
    shown = json.dumps(observed)
    for hidden in (
        "hidden",
        "score",
        "Relation Name",
        "Index Name",
        "Filter",
        "Cond",
        "object",
        "acl",
    ):
        assert hidden not in shown


def test_an_explained_query_is_checked_as_any_other(client, master, games, public):
    permissions = {"find": {"*": True}, "protectedFields": {"*": ["secret"]}}
    master.put("/schemas/Game", {"classLevelPermissions": permissions})
    assert client.get("/classes/Game", explain=1, where={"secret": 1}).error == (400, 119)
    assert client.get("/classes/Game", explain=1, order="secret").error == (400, 119)
    master.put("/schemas/Game", {"classLevelPermissions": {"get": {"*": True}}})
    assert client.get("/classes/Game", explain=1).error == (400, 119)


def test_a_missing_class_has_no_plan(master):
    assert master.get("/classes/Nothing", explain=True).json == {"results": []}


def test_a_count_is_exact_beside_the_plan(master, games):
    reply = master.get("/classes/Game", explain=True, count=1)
    assert reply.json["count"] == 4
    assert "QUERY PLAN" in reply.json["results"][0]
    reply = master.get("/classes/Game", explain=True, count=1, limit=0)
    assert reply.json == {"results": [], "count": 4}


def test_one_object_is_not_explained(master, games):
    object_id = master.results("Game")[0]["objectId"]
    assert master.get(f"/classes/Game/{object_id}", explain=True).error == (400, 102)


def test_advice_has_no_effect(client, games):
    for name, value in (
        ("hint", "_id_"),
        ("hint", {"score": 1}),
        ("comment", "from a test"),
        ("readPreference", "SECONDARY"),
        ("includeReadPreference", "NEAREST"),
        ("subqueryReadPreference", "PRIMARY"),
    ):
        reply = client.post("/classes/Game", {"_method": "GET", name: value})
        assert len(reply.json["results"]) == 4, name


@pytest.mark.parametrize(
    "params", [{"pipeline": [{"$group": {"_id": "$score"}}]}, {"distinct": "score"}]
)
def test_the_plan_of_an_aggregation_replaces_its_results(master, games, params):
    reply = master.get("/aggregate/Game", explain=True, **params)
    assert reply.status == 200, reply.json
    (result,) = reply.json["results"]
    (statement,) = result["QUERY PLAN"]
    assert {"Node Type", "Total Cost"} <= set(statement["Plan"])
    assert master.get("/aggregate/Game", explain="false", **params).json["results"]

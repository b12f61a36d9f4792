"""What queries of Parse Server on PostgreSQL get wrong, done as MongoDB does."""

from __future__ import annotations

import pytest


def pointer(object_id):
    return {"__type": "Pointer", "className": "Player", "objectId": object_id}


@pytest.fixture
def games(master):
    for name, fields in {
        "one": {"tags": ["a", "b"], "score": 1, "place": {"x": {"y": 1}}, "owner": pointer("p1")},
        "two": {"tags": ["b"], "score": 2, "place": {"x": {}}, "owner": pointer("p2")},
        "null": {"tags": None, "score": None, "place": None, "owner": None},
        "none": {},
        "list": {"tags": [["a"], {"k": 1}, 3, None]},
    }.items():
        master.make("Game", name=name, **fields)
    return master


def names_found(api, **where):
    return [obj["name"] for obj in api.results("Game", where=where)]


# Where, names of what is found
MEANINGS = [
    ({"tags": "a"}, ["one"]),
    ({"tags": "b"}, ["one", "two"]),
    ({"tags": 3}, ["list"]),
    ({"tags": ["a", "b"]}, ["one"]),
    ({"tags": ["b", "a"]}, []),
    ({"tags": ["a"]}, ["list"]),
    ({"tags": {"k": 1}}, ["list"]),
    ({"tags": {"$ne": "b"}}, ["null", "none", "list"]),
    ({"tags": None}, ["null", "none", "list"]),
    ({"place": {"x": {"y": 1}}}, ["one"]),
    ({"place": {"x": {}}}, ["two"]),
    ({"score": None}, ["null", "none", "list"]),
    ({"score": {"$in": [1, None]}}, ["one", "null", "none", "list"]),
    ({"score": {"$in": []}}, []),
    ({"score": {"$in": ["1", True]}}, []),
    ({"score": {"$nin": [1]}}, ["two", "null", "none", "list"]),
    ({"score": {"$nin": [1, None]}}, ["two"]),
    ({"score": {"$nin": []}}, ["one", "two", "null", "none", "list"]),
    ({"score": {"$ne": 1}}, ["two", "null", "none", "list"]),
    ({"score": {"$ne": None}}, ["one", "two"]),
    ({"score": {"$exists": True}}, ["one", "two"]),
    ({"score": {"$exists": False}}, ["null", "none", "list"]),
    ({"place.x.y": {"$exists": True}}, ["one"]),
    ({"place.x.y": {"$exists": False}}, ["two", "null", "none", "list"]),
    ({"place.x": {"$exists": True}}, ["one", "two"]),
    ({"place.x.y": 1}, ["one"]),
    ({"place.x.y": {"$gt": 0}}, ["one"]),
    ({"unknown": 1}, []),
    ({"unknown": None}, ["one", "two", "null", "none", "list"]),
    ({"unknown": {"$ne": 1}}, ["one", "two", "null", "none", "list"]),
    ({"unknown": {"$exists": True}}, []),
    ({"unknown.deeper": {"$gt": 1}}, []),
    ({"score": {"$lt": "a"}}, []),
    ({"score": "1"}, []),
    ({"score": True}, []),
    ({"score": 1.0}, ["one"]),
    ({"score": {"$gte": 1, "$lt": 2}}, ["one"]),
    ({"owner": pointer("p1")}, ["one"]),
    ({"owner": {"$ne": pointer("p1")}}, ["two", "null", "none", "list"]),
    ({"owner": {"$in": [pointer("p2"), None]}}, ["two", "null", "none", "list"]),
    ({"tags": {"$all": []}}, []),
    ({"tags": {"$all": ["a", "b"]}}, ["one"]),
    ({"tags": {"$all": ["b"]}}, ["one", "two"]),
    ({"tags": {"$containedBy": ["a", "b", "c"]}}, ["one", "two"]),
    ({"name": {"$regex": "^o"}}, ["one"]),
    ({"name": {"$regex": "O", "$options": "i"}}, ["one", "two", "none"]),
    ({"name": {"$regex": "\\Qon\\E"}}, ["one", "none"]),
    ({"score": {"$regex": "1"}}, []),
    ({"$or": [{"score": 1}, {"name": "none"}]}, ["one", "none"]),
    ({"$and": [{"score": {"$gt": 0}}, {"tags": "a"}]}, ["one"]),
    ({"$nor": [{"score": 1}, {"score": None}]}, ["two"]),
    ({"$or": [{"score": 1}], "name": "two"}, []),
]


def test_queries_mean_what_they_mean_to_mongodb(games, client):
    for where, expected in MEANINGS:
        assert names_found(client, **where) == expected, where


def test_a_count_counts_what_a_find_finds(games, client):
    for where, expected in MEANINGS:
        reply = client.get("/classes/Game", where=where, count=1, limit=0)
        assert reply.json["count"] == len(expected), where


REFUSED = [
    ({"$or": []}, 102),
    ({"$or": {}}, 102),
    ({"$or": "x"}, 102),
    ({"$or": [1]}, 102),
    ({"$and": []}, 102),
    ({"$nor": []}, 102),
    ({"ACL": {}}, 102),
    ({"ACL.*.read": True}, 102),
    ({"score": {"$in": 1}}, 107),
    ({"score": {"$nin": {}}}, 107),
    ({"tags": {"$all": "a"}}, 107),
    ({"tags": {"$all": [{"$regex": "^a"}, "b"]}}, 107),
    ({"tags": {"$containedBy": "a"}}, 107),
    ({"score": {"$exists": 1}}, 107),
    ({"score": {"$exists": "true"}}, 107),
    ({"score": {"$where": "1"}}, 107),
    ({"score": {"$gt": [1]}}, 107),
    ({"score": {"$gt": None}}, 107),
    ({"score": {"$mod": [2, 0]}}, 107),
    ({"name": {"$regex": "("}}, 102),
    ({"name": {"$regex": "a", "$options": "q"}}, 102),
    ({"name": {"$regex": 5}}, 102),
    ({"name": {"$options": "i"}}, 107),
    ({"name": "a\x00"}, 111),
    ({"when": {"$gt": {"__type": "Date", "iso": "x"}}}, 111),
    ({"when": {"$gt": {"$relativeTime": "whenever"}}}, 107),
    ({"$where": "1 = 1"}, 105),
    ({"a-b": 1}, 105),
    ({"_rperm": "*"}, 105),
    ({"a..b": 1}, 105),
    ({"a.$b": 1}, 105),
    ({"spot": {"$nearSphere": {"x": 1}}}, 107),
    ({"spot": {"$nearSphere": {"__type": "GeoPoint", "latitude": 91, "longitude": 0}}}, None),
    ({"spot": {"$within": {"$box": [1]}}}, 107),
    ({"spot": {"$geoWithin": {"$polygon": []}}}, 107),
    ({"spot": {"$geoWithin": {"$polygon": [[0, 0], [181, 0], [1, 1]]}}}, 107),
    ({"spot": {"$geoWithin": {"$centerSphere": [[0, 0], -1]}}}, 107),
    ({"area": {"$geoIntersects": {"$point": 5}}}, 107),
    ({"owner": {"$inQuery": {}}}, 102),
    ({"owner": {"$inQuery": "Player"}}, 102),
    ({"owner": {"$inQuery": {"className": "_Join:a:b"}}}, 103),
    ({"owner": {"$inQuery": {"className": "Player", "where": {"$or": []}}}}, 102),
    ({"name": {"$select": {"query": {"className": "Player"}}}}, 102),
    ({"name": {"$select": {"query": {"className": "Player"}, "key": "a", "x": 1}}}, 102),
    ({"name": {"$text": "x"}}, 107),
    ({"name": {"$text": {"$search": "x"}}}, 107),
    ({"name": {"$text": {"$search": {"$term": 5}}}}, 107),
    ({"$text": {"$search": {"$term": "x", "$language": "klingon"}}}, 102),
]


def test_what_a_query_can_not_mean_is_refused_by_code(games, client):
    for where, code in REFUSED:
        for reply in (
            client.get("/classes/Game", where=where),
            client.post("/classes/Game", {"_method": "GET", "where": where}),
        ):
            assert set(reply.json) == {"code", "error"}, where
            assert reply.status == 400, where
            assert code in (None, reply.json["code"]), (where, reply.json)
            assert "SELECT" not in reply.json["error"]


def test_nested_names_of_parameters_are_a_where(games, client):
    for query, expected in (
        ("where[name][$regex]=^o", ["one"]),
        ("where[name][$in][]=one&where[name][$in][]=two", ["one", "two"]),
        ("where[name][$regex]=A'B'%3BSELECT+PG_SLEEP(3)%3B--", []),
    ):
        reply = client.call("GET", f"/classes/Game?{query}")
        assert [obj["name"] for obj in reply.json["results"]] == expected, query


def test_distances_are_read_in_every_unit(master, client):
    for name, longitude in (("near", 0.01), ("far", 1)):
        spot = {"__type": "GeoPoint", "latitude": 0, "longitude": longitude}
        master.make("Shop", name=name, spot=spot)
    here = {"__type": "GeoPoint", "latitude": 0, "longitude": 0}
    for unit, distance in (
        ("$maxDistance", 0.001),
        ("$maxDistanceInRadians", 0.001),
        ("$maxDistanceInKilometers", 5),
        ("$maxDistanceInMiles", 3),
    ):
        where = {"spot": {"$nearSphere": here, unit: distance}}
        assert [shop["name"] for shop in client.results("Shop", where=where)] == ["near"]
    where = {"spot": {"$nearSphere": here}}
    assert [shop["name"] for shop in client.results("Shop", where=where)] == ["near", "far"]


def test_join_tables_are_no_classes(games, client, master):
    for caller in (client, master):
        assert caller.get("/classes/_Join:users:_Role").error == (400, 103)
        assert caller.post("/classes/_Join:users:_Role", {"a": 1}).error == (400, 103)


def test_a_sub_query_has_no_default_limit(master, client, settings):
    settings.SERVICE = {**settings.SERVICE, "BATCH_LIMIT": 500}
    players = [
        {"method": "POST", "path": "/api/classes/Player", "body": {"n": n}} for n in range(150)
    ]
    made = master.post("/batch", {"requests": players}).json
    last = made[-1]["success"]["objectId"]
    master.make("Game", name="last", owner=pointer(last))
    where = {"owner": {"$inQuery": {"className": "Player", "where": {"n": {"$gte": 0}}}}}
    assert names_found(client, **where) == ["last"]

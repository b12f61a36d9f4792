"""``/push_audiences``: stored queries for the targets of pushes."""

from __future__ import annotations

import json

import pytest

from tests.objects.push.pushing import push
from tests.people import sign_up
from tests.rest import Api

pytestmark = pytest.mark.django_db

IOS = json.dumps({"deviceType": "ios"})


def test_an_audience_from_its_creation_to_its_end(master: Api) -> None:
    reply = master.post("/push_audiences", {"name": "iPhones", "query": IOS})
    assert reply.status == 201
    path = f"/push_audiences/{reply.json['objectId']}"
    assert reply.headers["Location"].endswith(path)
    (audience,) = master.get("/push_audiences").json["results"]
    assert (audience["name"], audience["query"]) == ("iPhones", {"deviceType": "ios"})
    assert set(master.put(path, {"name": "Phones"}).json) == {"updatedAt"}
    changed = master.get(path).json
    assert (changed["name"], changed["query"]) == ("Phones", {"deviceType": "ios"})
    assert master.delete(path).json == {}
    assert master.get(path).error == (404, 101)
    assert master.get("/push_audiences").json == {"results": []}


def test_all_of_it_is_for_the_master_key(client: Api, master: Api, reader: Api) -> None:
    made = master.post("/push_audiences", {"name": "a", "query": IOS}).json["objectId"]
    path = f"/push_audiences/{made}"
    for api in (client, sign_up("ann")):
        for reply in (
            api.post("/push_audiences", {"name": "b", "query": IOS}),
            api.get("/push_audiences"),
            api.get(path),
            api.put(path, {"name": "b"}),
            api.delete(path),
        ):
            assert reply.error == (403, 119)
            assert reply.json["error"] == "unauthorized: master key is required"
        assert api.post("/classes/_Audience", {"name": "b"}).json["code"] == 119
        assert api.get("/classes/_Audience").json["code"] == 119
    assert reader.get(path).json["name"] == "a"
    assert reader.put(path, {"name": "b"}).error == (400, 119)


def test_audiences_are_queried_and_counted(master: Api) -> None:
    for name in ("a", "b", "c"):
        master.post("/push_audiences", {"name": name, "query": IOS})
    never = {"timesUsed": {"$exists": False}, "lastUsed": {"$exists": False}}
    reply = master.get("/push_audiences", where=never, order="-createdAt,-name", limit=1, count=1)
    assert [item["name"] for item in reply.json["results"]] == ["c"]
    assert reply.json["count"] == 3
    reply = master.get("/push_audiences", limit=0)
    assert reply.json == {"results": []}
    assert master.get("/push_audiences", where={"query": IOS}, count=1).json["count"] == 3


def test_a_push_counts_the_use_of_its_audience(master: Api) -> None:
    made = master.post("/push_audiences", {"name": "a", "query": IOS}).json["objectId"]
    push(where={"deviceType": "ios"}, audience_id=made)
    push(where={"deviceType": "ios"}, audience_id=made)
    push(where={"deviceType": "ios"}, audience_id="doesntExist")
    push(where={"deviceType": "ios"}, audience_id={"$gt": ""})
    audience = master.get(f"/push_audiences/{made}").json
    assert audience["timesUsed"] == 2
    assert audience["lastUsed"]["__type"] == "Date"


def test_a_query_that_is_no_json_is_shown_as_text(master: Api) -> None:
    master.post("/push_audiences", {"name": "a", "query": "{"})
    assert master.get("/push_audiences").json["results"][0]["query"] == "{"
    assert master.post("/push_audiences", {"name": "a", "query": {}}).error == (400, 111)

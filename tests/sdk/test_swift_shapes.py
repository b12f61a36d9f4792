"""Requests of the Swift SDK (Parse-Swift 4.14.2), and the keys that its types decode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rest import Api
from tests.sdk.shapes import (
    APPLICATION_ID,
    CLIENT_KEY,
    MASTER_KEY,
    Sdk,
    assert_created,
    assert_file,
    assert_object,
    assert_updated,
    assert_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def swift() -> Sdk:
    return Sdk(
        {
            "X-Parse-Application-Id": APPLICATION_ID,
            "X-Parse-Client-Key": CLIENT_KEY,
            "X-Parse-Client-Version": "swift4.14.2",
            "X-Parse-Installation-Id": "9d3f6f5c-5f3d-4c4e-8a44-2b8e4bb1a001",
        }
    )


@pytest.fixture
def scores(master: Api) -> Api:
    master.make("GameScore", points=1, name="a", info={"level": 1})
    master.make("GameScore", points=2, name="b")
    master.make("GameScore", points=3, name="c")
    return master


def test_objects_are_created_fetched_and_replaced(swift, scores):
    date = {"__type": "Date", "iso": "2026-05-01T12:00:00.500Z"}
    made = swift.json(
        "POST", "/classes/GameScore", {"points": 5, "name": "d", "info": {"at": date}}
    )
    assert_created(made)
    path = f"/classes/GameScore/{made['objectId']}"
    fetched = swift.json("GET", path)
    assert_object(fetched)
    assert fetched["info"]["at"] == date
    assert_updated(swift.json("PUT", path, {"points": 6}))
    assert swift.json("DELETE", path) == {}


def as_query(**values: Any) -> dict[str, str]:
    """Parameters of a query: every value is JSON, sets are lists."""
    return {name: json.dumps(value) for name, value in values.items()}


def test_queries_send_json_in_the_query_string(swift, scores):
    query = as_query(
        where={"points": {"$gte": 2}},
        order=["-points"],
        keys=["points"],
        limit=10,
        skip=0,
    )
    body = swift.json("GET", "/classes/GameScore", query=query)
    assert [result["points"] for result in body["results"]] == [3, 2]
    assert all("name" not in result for result in body["results"])
    for result in body["results"]:
        assert_object(result)
    query = as_query(where={}, excludeKeys=["name", "info"], order=["points", "-name"], limit=1)
    [result] = swift.json("GET", "/classes/GameScore", query=query)["results"]
    assert (result["points"], "name" in result) == (1, False)
    body = swift.json("GET", "/classes/GameScore", query=as_query(where={}, count=True, limit=1))
    assert body["count"] == 3


def test_queries_may_be_posts_with_a_method_in_the_body(swift, scores):
    body = {
        "_method": "GET",
        "where": {"points": {"$lt": 3}},
        "order": ["-points"],
        "keys": ["points"],
        "include": ["owner"],
        "limit": 10,
        "skip": 0,
    }
    results = swift.json("POST", "/classes/GameScore", body)["results"]
    assert [result["points"] for result in results] == [2, 1]
    counted = swift.json("POST", "/classes/GameScore", {**body, "count": True, "limit": 1})
    assert (counted["count"], len(counted["results"])) == (2, 1)


def test_included_pointers_are_named_by_a_list(swift, scores):
    owner = scores.make("Player", name="p")
    pointer = {"__type": "Pointer", "className": "Player", "objectId": owner}
    score = scores.make("GameScore", points=9, owner=pointer)
    for include in (["owner"], ["*"]):
        fetched = swift.json(
            "GET", f"/classes/GameScore/{score}", query={"include": json.dumps(include)}
        )
        assert fetched["owner"]["name"] == "p"
        found = swift.json(
            "GET", "/classes/GameScore", query=as_query(where={"points": 9}, include=include)
        )
        assert found["results"][0]["owner"]["name"] == "p"


def test_distinct_and_aggregate_send_json_texts(swift, scores):
    master = {"X-Parse-Master-Key": MASTER_KEY}
    path = "/aggregate/GameScore"
    values = swift.json("GET", path, query=as_query(distinct="name"), headers=master)["results"]
    assert sorted(values) == ["a", "b", "c"]
    pipeline = [{"$match": {"points": {"$gt": 1}}}, {"$project": {"points": 1}}]
    results = swift.json("GET", path, query=as_query(pipeline=pipeline), headers=master)["results"]
    assert sorted(result["points"] for result in results) == [2, 3]


def test_batches_have_a_transaction_flag(swift, scores):
    existing = scores.results("GameScore", where={"points": 1})[0]["objectId"]
    requests = [
        {"method": "POST", "path": "/api/classes/GameScore", "body": {"points": 7}},
        {"method": "PUT", "path": f"/api/classes/GameScore/{existing}", "body": {"points": 8}},
    ]
    for transaction in (False, True):
        body = swift.json("POST", "/batch", {"requests": requests, "transaction": transaction})
        assert_created(body[0]["success"])
        assert_updated(body[1]["success"])
    requests = [{"method": "DELETE", "path": f"/api/classes/GameScore/{existing}"}] * 2
    body = swift.json("POST", "/batch", {"requests": requests, "transaction": False})
    assert body[0]["success"] == {}
    assert (body[1]["error"]["code"], type(body[1]["error"]["error"])) == (101, str)


def test_a_file_is_the_body_with_or_without_a_media_type(swift, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    body = swift.send("POST", "/files/note.txt", b"hello", content_type="").json
    assert_file(body)
    body = swift.send(
        "POST", "/files/picture", b"\x89PNG...", content_type="image/png", headers={"kind": "logo"}
    ).json
    assert body["name"].endswith("_picture.png")
    path = body["url"].partition("localhost:8000")[2]
    assert swift.send("GET", path, content_type="application/json").body == b"\x89PNG..."


def test_users_sign_up_log_in_and_out(swift):
    signed_up = swift.json("POST", "/users", {"username": "ann", "password": "correct horse"})
    assert_user(signed_up)
    logged_in = swift.json("POST", "/login", {"username": "ann", "password": "correct horse"})
    assert_user(logged_in)
    assert logged_in["username"] == "ann"
    swift.token = logged_in["sessionToken"]
    assert_object(swift.json("GET", "/users/me"))
    updated = swift.json("PUT", f"/users/{logged_in['objectId']}", {"nickname": "a"})
    assert_updated(updated)
    assert swift.json("POST", "/logout") == {}
    assert swift.send("GET", "/users/me").error == (400, 209)


def test_requests_have_an_id_each_and_a_context(swift, scores):
    headers = {
        "X-Parse-Request-Id": "4c1b7a60-0000-4000-8000-000000000001",
        "X-Parse-Cloud-Context": '{"from":"swift"}',
    }
    made = [
        swift.json("POST", "/classes/GameScore", {"points": 5}, headers=headers) for _ in range(2)
    ]
    assert made[0] == made[1]


def test_the_state_of_the_server_and_the_config(swift):
    assert swift.json("GET", "/health") == {"status": "ok"}
    assert swift.json("GET", "/config")["params"] == {}

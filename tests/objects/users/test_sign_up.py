"""``POST /users``: what a new user needs, and what is hidden of one."""

from __future__ import annotations

import pytest

from tests.people import PASSWORD, log_in, sign_up, with_token


def test_a_new_user_is_signed_in(client):
    reply = client.post("/users", {"username": "ann", "password": PASSWORD, "colour": "red"})
    assert reply.status == 201
    assert set(reply.json) == {"objectId", "createdAt", "sessionToken"}
    assert reply.headers["Location"].endswith(f"/api/users/{reply.json['objectId']}")
    me = with_token(reply.json["sessionToken"]).get("/users/me").json
    assert (me["username"], me["colour"]) == ("ann", "red")
    assert me["sessionToken"] == reply.json["sessionToken"]
    assert me["ACL"] == {reply.json["objectId"]: {"read": True, "write": True}}


def test_the_generic_route_signs_up_as_well(client):
    reply = client.post("/classes/_User", {"username": "ann", "password": PASSWORD})
    assert reply.status == 201
    assert with_token(reply.json["sessionToken"]).get("/users/me").json["username"] == "ann"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"password": PASSWORD}, (400, 200)),
        ({"username": "", "password": PASSWORD}, (400, 200)),
        ({"username": 5, "password": PASSWORD}, (400, 200)),
        ({"username": {"__op": "Delete"}, "password": PASSWORD}, (400, 200)),
        ({"username": "ann"}, (400, 201)),
        ({"username": "ann", "password": ""}, (400, 201)),
        ({"username": "ann", "password": {"$ne": 1}}, (400, 201)),
        ({"username": "ann", "password": PASSWORD, "email": "nowhere"}, (400, 125)),
        ({"username": "ann", "password": PASSWORD, "email": ["a@b.org"]}, (400, 125)),
        ({"username": "ann", "password": PASSWORD, "email": "a@b.org,c@d.org"}, (400, 125)),
        ({"username": "ann", "password": PASSWORD, "email": "Ann <a@b.org>"}, (400, 125)),
        ({"username": "ann", "password": PASSWORD, "email": "a@b.org\nBcc: c@d.org"}, (400, 125)),
        ({"username": "ann", "password": PASSWORD, "emailVerified": True}, (400, 119)),
        (
            {"username": "ann", "password": PASSWORD, "authData": {"nobody": {"id": "1"}}},
            (400, 252),
        ),
        ({"authData": {}}, (400, 200)),
        ({"username": "ann", "password": "x" * 5000}, (400, 142)),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_nothing_is_stored(client, master, body, error):
    assert client.post("/users", body).error == error
    assert master.get("/users").json == {"results": []}
    assert master.get("/sessions").json == {"results": []}


@pytest.mark.parametrize("other", ["ann", "ANN", "Ann", "\uff21nn"])
def test_a_name_is_taken_however_it_is_written(client, other):
    sign_up("ann")
    reply = client.post("/users", {"username": other, "password": PASSWORD})
    assert reply.error == (400, 202)
    assert "username" in reply.json["error"]


def test_an_address_belongs_to_one_user(client, master):
    sign_up("ann", email="Ann@Example.org")
    reply = client.post(
        "/users", {"username": "bob", "password": PASSWORD, "email": "ann@example.ORG"}
    )
    assert reply.error == (400, 203)
    assert [user["username"] for user in master.get("/users").json["results"]] == ["ann"]
    assert master.get("/users").json["results"][0]["email"] == "Ann@Example.org"


def test_a_password_is_nowhere_in_any_object(client, master):
    ann = sign_up("ann")
    for caller in (ann, master):
        for path in ("/users", f"/users/{ann.user_id}", "/sessions", "/classes/_User"):
            assert PASSWORD not in str(caller.get(path).json)
            assert "argon2" not in str(caller.get(path).json)
    where = {"password": PASSWORD}
    assert master.get("/users", where=where).json == {"results": []}


def test_signing_up_many_in_a_batch_follows_the_same_rules(client, master):
    requests = [
        {"method": "POST", "path": "/api/users", "body": {"username": name, "password": PASSWORD}}
        for name in ("ann", "bob", "ann")
    ]
    answers = client.post("/batch", {"requests": requests}).json
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, 202]
    assert log_in("ann").status == log_in("bob").status == 200
    classes = [{**request, "path": "/api/classes/_User"} for request in requests[:1]] * 2
    answers = client.post("/batch", {"requests": classes}).json
    assert [answer["error"]["code"] for answer in answers] == [202, 202]
    assert len(master.get("/users").json["results"]) == 2


def test_a_sign_up_that_fails_in_a_transaction_leaves_nothing(client, master):
    requests = [
        {"method": "POST", "path": "/api/users", "body": {"username": name, "password": PASSWORD}}
        for name in ("ann", "ANN")
    ]
    reply = client.post("/batch", {"requests": requests, "transaction": True})
    assert reply.error == (400, 202)
    assert master.get("/users").json == {"results": []}
    assert master.get("/sessions").json == {"results": []}

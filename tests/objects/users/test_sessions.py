"""``/sessions``: users see, mark and end their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.objects.access.transports import TRANSPORTS
from tests.people import PASSWORD, as_user, log_in, sign_up, with_token

DATE = {"__type": "Date", "iso": "2100-01-01T00:00:00.000Z"}


def test_a_session_says_how_it_began_and_when_it_ends(client):
    ann = sign_up("ann")
    session = ann.get("/sessions/me").json
    assert session["createdWith"] == {"action": "signup", "authProvider": "password"}
    assert session["user"] == ann.pointer
    assert session["sessionToken"] == ann.token
    expires = datetime.fromisoformat(session["expiresAt"]["iso"])
    assert timedelta(days=364) < expires - datetime.now(UTC) < timedelta(days=366)
    again = as_user("ann", log_in("ann", **{"X-Svc-Installation-Id": "phone"}))
    session = again.get("/sessions/me").json
    assert session["createdWith"] == {"action": "login", "authProvider": "password"}
    assert session["installationId"] == "phone"


def test_users_find_their_own_sessions_and_no_tokens_of_others(client, master):
    ann, bob = sign_up("ann"), sign_up("bob")
    log_in("ann")
    results = ann.get("/sessions").json["results"]
    assert len(results) == 2
    assert {session["user"]["objectId"] for session in results} == {ann.user_id}
    assert ann.get("/classes/_Session", count=1).json["count"] == 2
    assert [session["sessionToken"] for session in results if "sessionToken" in session] == [
        ann.token
    ]
    bobs = bob.get("/sessions/me").json["objectId"]
    assert ann.get(f"/sessions/{bobs}").error == (404, 101)
    assert ann.delete(f"/sessions/{bobs}").error == (404, 101)
    assert ann.put(f"/sessions/{bobs}", {"note": "x"}).error == (404, 101)
    everybody = master.get("/sessions").json["results"]
    assert len(everybody) == 3
    assert all(token not in str(everybody) for token in (ann.token, bob.token))


@pytest.mark.parametrize("path", ["/sessions", "/sessions/me", "/classes/_Session"])
def test_without_a_session_there_is_nothing_to_see(client, path):
    sign_up("ann")
    assert client.get(path).error == (400, 209)


def test_a_session_that_is_removed_is_over(client):
    ann = sign_up("ann")
    other = as_user("ann", log_in("ann"))
    session_id = other.get("/sessions/me").json["objectId"]
    assert ann.delete(f"/sessions/{session_id}").json == {}
    assert other.get("/users/me").error == (400, 209)


def test_a_session_begun_by_hand_is_a_whole_one(client):
    ann = sign_up("ann")
    reply = ann.post("/sessions", {"note": "for the printer"})
    assert reply.status == 201
    assert reply.json["createdWith"] == {"action": "create"}
    printer = with_token(reply.json["sessionToken"])
    assert printer.get("/users/me").json["objectId"] == ann.user_id
    assert printer.get("/sessions/me").json["note"] == "for the printer"
    assert client.post("/sessions", {}).error == (400, 209)


@pytest.mark.parametrize(
    "fields",
    [
        {"user": {"__type": "Pointer", "className": "_User", "objectId": "somebody"}},
        {"sessionToken": "r:" + "0" * 32},
        {"installationId": "other"},
        {"expiresAt": DATE},
        {"createdWith": {"action": "login"}},
        {"ACL": {"*": {"read": True}}},
    ],
)
def test_what_makes_a_session_is_not_the_client_s_to_say(client, fields):
    ann = sign_up("ann")
    me = ann.get("/sessions/me").json
    made = ann.post("/sessions", fields)
    if "ACL" in fields:
        assert made.error == (400, 105)
    else:
        assert made.status == 201
        other = with_token(made.json["sessionToken"]).get("/sessions/me").json
        assert other["user"] == ann.pointer
        assert other["createdWith"] == {"action": "create"}
        assert other["expiresAt"]["iso"] < DATE["iso"]
    assert ann.put(f"/sessions/{me['objectId']}", fields).error == (400, 105)
    assert ann.put("/sessions/me", fields).error == (400, 105)
    assert ann.get("/sessions/me").json == me


def test_users_may_note_something_on_a_session(client):
    ann = sign_up("ann")
    assert ann.put("/sessions/me", {"note": "laptop"}).status == 200
    assert ann.get("/sessions/me").json["note"] == "laptop"


@pytest.mark.parametrize(
    "token", ["", "r:", "nonsense", "r:" + "0" * 32, "R:" + "0" * 32, "r:" + "0" * 5000, "r:\u00e9"]
)
def test_a_token_that_no_one_got_proves_nothing(client, token):
    assert with_token(token).get("/users/me").error == (400, 209)


def test_a_token_in_the_body_is_a_string(client):
    ann = sign_up("ann")
    reply = ann.call(
        "POST",
        "/users/me",
        {
            "_method": "GET",
            "_ApplicationId": "test-app",
            "_JavaScriptKey": "test-javascript-key",
            "_SessionToken": {"$ne": None},
        },
        headers={"X-Svc-Application-Id": "", "X-Svc-Session-Token": ""},
    )
    assert reply.error == (400, 107)


def expire(token: str, **ago: float) -> None:
    from django.utils import timezone

    from objects.users.models import Session
    from objects.users.sessions.tokens import token_hash

    session = Session.objects.filter(token_hash=bytes.fromhex(token_hash(token)))
    assert session.update(expires_at=timezone.now() - timedelta(**ago)) == 1


def test_an_expired_session_is_over(client):
    ann = sign_up("ann")
    expire(ann.token, seconds=1)
    reply = ann.get("/users/me")
    assert reply.error == (400, 209)
    assert reply.json["error"] == "Session token is expired."


def test_an_expired_session_shows_itself_and_nothing_else(client, master):
    ann = sign_up("ann")
    expire(ann.token, seconds=1)
    me = ann.get("/sessions/me").json
    assert (me["user"], me["sessionToken"]) == (ann.pointer, ann.token)
    session = {"X-Svc-Session-Token": ann.token}
    assert master.call("GET", "/sessions/me", headers=session).status == 200
    assert master.call("GET", "/users/me", headers=session).error == (400, 209)
    for reply in (
        ann.put("/sessions/me", {"note": "x"}),
        ann.get(f"/sessions/{me['objectId']}"),
        ann.get("/sessions"),
        ann.post("/sessions"),
        ann.post("/upgradeToRevocableSession"),
        ann.post("/logout"),
    ):
        assert reply.json == {"code": 209, "error": "Session token is expired."}


def test_with_the_master_key_the_session_that_comes_along_is_me(client, master, reader):
    ann = sign_up("ann", email="ann@example.org")
    session = {"X-Svc-Session-Token": ann.token}
    for caller in (master, reader):
        me = caller.call("GET", "/users/me", headers=session).json
        assert (me["objectId"], me["sessionToken"]) == (ann.user_id, ann.token)
        mine = caller.call("GET", "/sessions/me", headers=session).json
        assert (mine["user"], mine["sessionToken"]) == (ann.pointer, ann.token)
        wrong = {"X-Svc-Session-Token": "r:" + "0" * 32}
        assert caller.call("GET", "/users/me", headers=wrong).error == (400, 209)
        assert caller.call("GET", "/sessions/me", headers=wrong).error == (400, 209)
        assert caller.get("/users/me").error == (400, 209)
        assert caller.get("/sessions/me").error == (400, 209)


@pytest.mark.parametrize("route", ["/sessions", "/classes/_Session"])
def test_a_session_is_found_by_its_token(client, master, route):
    ann, bob = sign_up("ann"), sign_up("bob")
    (found,) = master.get(route, where={"sessionToken": ann.token}).json["results"]
    assert (found["user"], found["sessionToken"]) == (ann.pointer, ann.token)
    either = {"$or": [{"sessionToken": ann.token}, {"user": bob.pointer}]}
    results = master.get(route, where=either).json["results"]
    assert [item.get("sessionToken") for item in results] == [ann.token, None]
    assert master.get(route, where={"sessionToken": ann.token}, count=1, limit=0).json == {
        "results": [],
        "count": 1,
    }
    keyed = master.get(route, where={"sessionToken": ann.token}, keys="user").json["results"]
    assert "sessionToken" not in keyed[0]
    for token in ("r:" + "0" * 32, "", "nonsense", None):
        none = master.get(route, where={"sessionToken": token}).json["results"]
        assert all("sessionToken" not in item for item in none)
        assert token is None or none == []
    # A user finds no session of another one, even by its token.
    assert bob.get(route, where={"sessionToken": ann.token}).json["results"] == []
    assert len(ann.get(route, where={"sessionToken": ann.token}).json["results"]) == 1
    assert client.get(route, where={"sessionToken": ann.token}).error == (400, 209)


def test_the_session_of_the_request_shows_its_token_by_its_id_too(client, master):
    ann, bob = sign_up("ann"), sign_up("bob")
    session_id = ann.get("/sessions/me").json["objectId"]
    assert ann.get(f"/sessions/{session_id}").json["sessionToken"] == ann.token
    assert "sessionToken" not in ann.get(f"/sessions/{session_id}", keys="user").json
    assert "sessionToken" not in master.get(f"/sessions/{session_id}").json
    assert bob.get(f"/sessions/{session_id}").error == (404, 101)


def test_errors_without_a_session_are_those_that_sdks_know(client):
    ann = sign_up("ann")
    path = f"/sessions/{ann.get('/sessions/me').json['objectId']}"
    for reply in (client.get("/sessions"), client.get(path), client.delete(path)):
        assert reply.json == {"code": 209, "error": "Invalid session token"}
    for reply in (client.post("/sessions"), client.put(path, {"a": 1}), client.get("/sessions/me")):
        assert reply.json == {"code": 209, "error": "Session token required."}


def test_guarded_fields_of_a_session_are_named(client, master):
    ann = sign_up("ann")
    path = f"/sessions/{ann.get('/sessions/me').json['objectId']}"
    for name, value in (("installationId", "x"), ("sessionToken", "r:x"), ("expiresAt", DATE)):
        reply = ann.put(path, {name: value})
        assert reply.json == {"code": 105, "error": f"Invalid key name: {name}"}
    assert ann.put(path, {"ACL": {}}).json["error"] == "Cannot set ACL on a Session."
    assert ann.put(path, {"user": ann.pointer, "note": "x"}).status == 200
    assert master.put(path, {"sessionToken": "r:x"}).error == (400, 105)
    assert master.put(path, {"expiresAt": DATE}).status == 200


def test_a_session_begun_by_hand_ends_the_one_of_its_installation(client):
    ann = sign_up("ann")
    first = with_token(ann.post("/sessions", {"installationId": "phone"}).json["sessionToken"])
    bob = sign_up("bob")
    bobs = with_token(bob.post("/sessions", {"installationId": "phone"}).json["sessionToken"])
    second = with_token(ann.post("/sessions", {"installationId": "phone"}).json["sessionToken"])
    assert first.get("/users/me").error == (400, 209)
    for api in (ann, second, bobs):
        assert api.get("/users/me").status == 200
    assert ann.post("/sessions", {"installationId": 1}).status == 400


def test_a_session_is_renewed_on_use_where_that_is_wanted(client, settings):
    settings.SERVICE = {**settings.SERVICE, "EXTEND_SESSION_ON_USE": True, "SESSION_LENGTH": 1000}
    ann = sign_up("ann")
    before = ann.get("/sessions/me").json["expiresAt"]["iso"]
    expire(ann.token, seconds=-400)  # less than half is left
    ann.get("/users/me")
    after = ann.get("/sessions/me").json["expiresAt"]["iso"]
    assert after >= before


def test_with_the_master_key_a_session_token_isn_t_looked_at(client, master):
    sign_up("ann")
    reply = master.call("GET", "/users", headers={"X-Svc-Session-Token": "r:" + "0" * 32})
    assert len(reply.json["results"]) == 1


def test_upgrading_starts_another_session(client, master):
    assert client.post("/upgradeToRevocableSession").json == {
        "code": 101,
        "error": "invalid session",
    }
    assert master.post("/upgradeToRevocableSession").error == (404, 101)
    ann = sign_up("ann")
    upgraded = ann.post("/upgradeToRevocableSession").json
    assert upgraded["createdWith"] == {"action": "upgrade"}
    assert upgraded["user"] == ann.pointer
    assert upgraded["sessionToken"] != ann.token
    assert with_token(upgraded["sessionToken"]).get("/users/me").json["objectId"] == ann.user_id
    assert ann.get("/users/me").status == 200


@pytest.mark.parametrize("route", ["/users", "/classes/_User"])
def test_a_token_in_a_write_of_a_user_is_not_stored(client, master, route):
    new = {"username": "ann", "password": PASSWORD, "sessionToken": "r:chosen"}
    ann = as_user("ann", client.post(route, new))
    path = f"{route}/{ann.user_id}"
    for send in TRANSPORTS:
        for body in ({"sessionToken": "r:chosen"}, {"sessionToken.part": "r:chosen"}):
            assert send(ann, "PUT", path, body).status == 200
            assert "sessionToken" not in client.get(path).json
    assert "sessionToken" not in master.get("/schemas/_User").json["fields"]

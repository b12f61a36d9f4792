"""Theme 7 of the advisories on Parse Server: what counts once, and what is decided once."""

from __future__ import annotations

import pytest

from tests.people import PASSWORD, as_user, log_in, sign_up
from tests.rest import CLIENT, MASTER, Api
from tests.threads import at_once

DEVICE = "device-00000000000001"
LATER = {"__type": "Date", "iso": "2099-01-01T00:00:00.000Z"}

TOKEN = "r:" + "0" * 32
FORGED = {
    "owner": {"user": {"__type": "Pointer", "className": "_User", "objectId": "somebody01"}},
    "a part of the owner": {"user.objectId": "somebody01"},
    "expiry": {"expiresAt": LATER},
    "expiry on insert": {"expiresAt": {"__op": "SetOnInsert", "amount": LATER}},
    "no expiry": {"expiresAt": {"__op": "Delete"}},
    "origin": {"createdWith": {"action": "login", "authProvider": "masterkey"}},
    "a part of the origin": {"createdWith.authProvider": "masterkey"},
    "token": {"sessionToken": TOKEN},
    "installation": {"installationId": "another"},
    "access list": {"ACL": {"*": {"read": True, "write": True}}},
}


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED)
def test_what_a_session_is_worth_is_not_its_bearers_to_say(master, client, send, body):
    """5v7g-9h8f-8pgg, jc39-686j-wp6q: fields of a session overwritten by update and create."""
    ann = sign_up("ann")
    before = master.get("/sessions").json
    mine = before["results"][0]["objectId"]
    for method, path in (
        ("PUT", f"/sessions/{mine}"),
        ("PUT", f"/classes/_Session/{mine}"),
    ):
        assert send(ann, method, path, body).json["code"] == 105, (method, path)
    assert ann.put("/sessions/me", body).error == (400, 105)
    assert master.get("/sessions").json == before
    for path in ("/sessions", "/classes/_Session"):
        made = send(ann, "POST", path, body).json
        if "code" in made:
            assert made["code"] == 105
            continue
        # What the service sets was ignored. An installation is the client's to name.
        shown = master.get(f"/sessions/{made['objectId']}").json
        assert shown["user"] == ann.pointer
        assert shown["createdWith"] == {"action": "create"}
        assert shown["expiresAt"]["iso"] < LATER["iso"]
        assert shown["ACL"] == {ann.user_id: {"read": True, "write": True}}
    assert ann.get("/users/me").status == 200
    assert Api({**CLIENT, "X-Svc-Session-Token": TOKEN}).get("/users/me").error == (400, 209)


def test_no_session_is_begun_without_one(master, client, send):
    """jc39-686j-wp6q: a session for anybody by a create."""
    ann = sign_up("ann")
    owner = {"user": ann.pointer}
    for body in ({}, owner):
        reply = send(client, "POST", "/classes/_Session", body)
        assert reply.json["code"] in (105, 209)
    assert len(master.get("/sessions").json["results"]) == 1


@pytest.mark.django_db(transaction=True)
def test_one_proof_at_once_makes_one_account(settings):
    """#10149: sign-ups with the same authData at the same moment made several users."""
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    body = {"authData": {"anonymous": {"id": DEVICE}}}
    replies = at_once([lambda: Api(CLIENT).post("/users", body)] * 8)
    assert sorted(reply.status for reply in replies) == [200] * 7 + [201]
    assert len({reply.json["objectId"] for reply in replies}) == 1
    assert len({reply.json["sessionToken"] for reply in replies}) == 8
    assert len(Api(MASTER).get("/users").json["results"]) == 1


@pytest.mark.django_db(transaction=True)
def test_one_name_at_once_is_given_once_whatever_the_route():
    body = {"username": "ann", "password": PASSWORD}

    def batched(path):
        request = {"method": "POST", "path": f"/api{path}", "body": body}
        reply = Api(CLIENT).post("/batch", {"requests": [request]}).json[0]
        return reply.get("error", {}).get("code")

    def plain(path):
        reply = Api(CLIENT).post(path, body)
        return None if reply.status == 201 else reply.json["code"]

    outcomes = at_once(
        [lambda m=m, p=p: m(p) for m in (plain, batched) for p in ("/users", "/classes/_User")] * 2
    )
    assert sorted(code or 0 for code in outcomes) == [0] + [202] * 7
    assert len(Api(MASTER).get("/users").json["results"]) == 1
    assert len(Api(MASTER).get("/sessions").json["results"]) == 1


@pytest.mark.django_db(transaction=True)
def test_a_session_that_is_ended_by_one_request_serves_no_other():
    """#10194: what had been looked up before was still believed."""
    ann = sign_up("ann")
    assert ann.get("/users/me").status == 200
    at_once([lambda: ann.post("/logout")] * 4)
    assert ann.get("/users/me").error == (400, 209)
    again = as_user("ann", log_in("ann"))
    Api(MASTER).delete(f"/users/{ann.user_id}")
    assert again.get("/users/me").error == (400, 209)

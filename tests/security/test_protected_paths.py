"""Theme 4 of the advisories on Parse Server: protected fields are protected on every path."""

from __future__ import annotations

import hashlib
import hmac
import struct
import time
from base64 import b32decode

import pytest

from tests.people import PASSWORD, sign_up


def one_time_password(secret):
    """RFC 6238, for this moment."""
    counter = struct.pack(">Q", int(time.time()) // 30)
    digest = hmac.digest(b32decode(secret), counter, hashlib.sha1)
    start = digest[-1] & 15
    return f"{int.from_bytes(digest[start : start + 4], 'big') % 2**31 % 10**6:06}"


def protect(master, *fields, class_name="Game"):
    actions = ("find", "get", "count", "create", "update", "delete", "addField")
    permissions = {action: {"*": True} for action in actions}
    permissions["protectedFields"] = {"*": list(fields)}
    reply = master.put(f"/schemas/{class_name}", {"classLevelPermissions": permissions})
    assert reply.status == 200


@pytest.mark.parametrize(
    "params",
    [
        {"where": {"$or": [{"secret.word": "s"}, {"name": "x"}]}},
        {"where": {"$and": [{"$or": [{"secret.word": {"$regex": "^s"}}]}]}},
        {"where": {"$nor": [{"secret.word": "s"}]}},
        {"where": {"secret.word": {"$gt": "a"}}},
        {"order": "secret"},
        {"order": "-secret.word"},
        {"where": {"$text": {"$search": {"$term": "s"}}}},
    ],
)
def test_a_query_is_no_oracle_for_protected_fields(master, client, game, send, params):
    """72hp-qff8-4pvv, r2m8-pxm9-9c4g: inside of $or and $and, and by dotted paths."""
    protect(master, "secret")
    assert send(client, "GET", "/classes/Game", params).json["code"] == 119
    counted = {**params, "count": 1, "limit": 0}
    assert send(client, "GET", "/classes/Game", counted).json["code"] == 119


def test_a_redirected_query_shows_no_protected_fields(master, client, game, send):
    """6r2j-cxgf-495f: access lists and protected fields of the target class were not applied."""
    hidden = master.make("Game", name="hidden", ACL={})
    pointers = [
        {"__type": "Pointer", "className": "Game", "objectId": object_id}
        for object_id in (game, hidden)
    ]
    master.make("League", games={"__op": "AddRelation", "objects": pointers})
    protect(master, "secret")
    params = {"redirectClassNameForKey": "games"}
    (shown,) = send(client, "GET", "/classes/League", params).json["results"]
    assert shown["objectId"] == game
    assert "secret" not in shown


def test_a_relation_tells_nothing_that_its_owner_may_not_tell(master, client, game, send):
    """wmwx-jr2p-4j4r, rmhf-xv62-rm99: $relatedTo and its count ignored the owner's rights."""
    member = {"__type": "Pointer", "className": "Game", "objectId": game}
    league = master.make("League", games={"__op": "AddRelation", "objects": [member]}, ACL={})
    owner = {"__type": "Pointer", "className": "League", "objectId": league}
    params = {"where": {"$relatedTo": {"object": owner, "key": "games"}}, "count": 1}
    assert send(client, "GET", "/classes/Game", params).json == {"results": [], "count": 0}
    protect(master, "games", class_name="League")
    assert send(client, "GET", "/classes/Game", params).json["code"] == 119


def test_an_error_names_no_class_or_field_that_the_caller_did_not_name(master, client, game, send):
    """8cph-rgr4-g5vj: "did you mean" revealed names from the schema."""
    master.make("GameSecretPlans", a=1)
    master.put("/schemas/Game", {"classLevelPermissions": {}})
    for path in ("/classes/GameSecret", "/classes/Game", "/classes/GameSecretPlan"):
        text = str(send(client, "GET", path, {"where": {"secre": 1}}).json)
        assert "Plans" not in text
        assert "word" not in text


@pytest.mark.parametrize("path", ["/sessions/me", "/sessions", "/classes/_Session"])
def test_a_session_shows_no_protected_field_of_its_class(master, client, send, path):
    """g4v2-qx3q-4p64: /sessions/me ignored the protected fields of _Session."""
    ann = sign_up("ann")
    protect(master, "createdWith", "expiresAt", class_name="_Session")
    shown = send(ann, "GET", path, None).json
    (session,) = shown.get("results", [shown])
    assert session["user"]["objectId"] == ann.user_id
    assert not {"createdWith", "expiresAt"} & set(session)
    if path == "/sessions/me":
        return
    assert not {"createdWith", "expiresAt"} & set(
        send(ann, "GET", f"{path}/{session['objectId']}", None).json
    )
    begun = send(ann, "POST", path, {}).json
    assert begun["sessionToken"].startswith("r:")
    assert not {"createdWith", "expiresAt"} & set(begun)


def test_signing_in_tells_no_second_factor_and_nothing_of_others(master, client, send):
    """wp76-gg32-8258, 75v4-m273-5j49, 37mj-c2wf-cx96: raw accounts in the answers to log-ins."""
    ann = sign_up("ann", email="ann@example.org")
    secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    body = {"authData": {"mfa": {"secret": secret, "token": one_time_password(secret)}}}
    reply = ann.put(f"/users/{ann.user_id}", body)
    assert reply.status == 200
    recovery = reply.json["authDataResponse"]["mfa"]["recovery"].split(", ")
    permissions = {"create": {"*": True}, "protectedFields": {"*": ["email"]}}
    value = {"username": "ann", "password": PASSWORD}
    with_code = {**value, "authData": {"mfa": {"token": recovery[0]}}}
    answers = [
        send(ann, "GET", "/users/me", None),
        send(ann, "GET", f"/users/{ann.user_id}", None),
        send(ann, "GET", "/users", None),
        send(client, "POST", "/login", with_code),
        send(client, "POST", "/login", value),
        send(client, "POST", "/verifyPassword", value),
        send(master, "POST", "/loginAs", {"userId": ann.user_id}),
        send(master, "GET", "/users", None),
    ]
    # Also where clients may not even get their own account.
    master.put("/schemas/_User", {"classLevelPermissions": permissions})
    with_code["authData"]["mfa"]["token"] = recovery[1]
    answers += [
        send(client, "POST", "/login", with_code),
        send(client, "POST", "/verifyPassword", value),
    ]
    # A password is not checked inside of a transaction, which could undo the guess.
    assert [answer.status < 300 for answer in answers].count(True) >= 5
    for answer in answers:
        text = str(answer.json)
        assert secret not in text
        assert not any(code in text for code in recovery)
        assert "argon2" not in text
        assert PASSWORD not in text


def test_a_stranger_learns_nothing_of_an_account_by_signing_in_to_another(master, client, send):
    """wp76-gg32-8258: fields that are protected from others are the owner's alone."""
    ann = sign_up("ann", email="ann@example.org", ACL={"*": {"read": True}})
    bob = sign_up("bob", email="bob@example.org")
    shown = send(bob, "GET", f"/users/{ann.user_id}", None).json
    assert "email" not in shown
    assert "sessionToken" not in shown
    assert send(bob, "GET", "/users/me", None).json["email"] == "bob@example.org"

"""Accounts that their access lists open to others, and what users can't give away."""

from __future__ import annotations

import pytest

from tests.objects.access.transports import TRANSPORTS
from tests.people import PASSWORD, User, as_user, log_in, make_role, sign_up

WRITES = {"read": True, "write": True}


@pytest.fixture
def owner(db) -> User:
    return sign_up("owner", email="owner@example.org")


@pytest.fixture
def helper(master) -> User:
    user = sign_up("helper")
    make_role(master, "Helpers", [user])
    return user


@pytest.fixture
def granted(owner, helper) -> User:
    acl = {"role:Helpers": WRITES, "*": {"read": True}}
    assert owner.put(f"/users/{owner.user_id}", {"ACL": acl}).status == 200
    return owner


@pytest.mark.parametrize("acl", [{}, {"*": {"read": True}}, None, {"__op": "Delete"}])
def test_users_keep_the_right_to_their_own_account(owner, acl):
    path = f"/users/{owner.user_id}"
    assert owner.put(path, {"ACL": acl}).status == 200
    again = as_user("owner", log_in("owner"))
    for user in (owner, again):
        assert user.get(path).json["objectId"] == owner.user_id
        assert user.put(path, {"note": "mine"}).status == 200


def test_a_named_role_changes_ordinary_fields(granted, helper, master):
    path = f"/users/{granted.user_id}"
    for send in TRANSPORTS:
        for route in (path, f"/classes/_User/{granted.user_id}"):
            assert send(helper, "PUT", route, {"note": f"by {send.__name__}"}).status == 200
            assert master.get(path).json["note"] == f"by {send.__name__}"


@pytest.mark.parametrize(
    "body",
    [
        {"password": "taken over!"},
        {"email": "helper@example.org"},
        {"username": "taken"},
        {"authData": {"badge": None}},
        {"authData.badge": None},
        {"ACL": {"*": WRITES}},
        {"note": "x", "password": "taken over!"},
    ],
)
def test_a_named_role_takes_no_account_over(granted, helper, master, body):
    path = f"/users/{granted.user_id}"
    before = master.get(path).json
    for send in TRANSPORTS:
        assert send(helper, "PUT", path, body).json["code"] == 206
    assert master.get(path).json == before
    assert log_in("owner", PASSWORD).status == 200


def test_a_named_user_changes_and_deletes_the_account(owner, helper, master):
    path = f"/users/{owner.user_id}"
    owner.put(path, {"ACL": {helper.user_id: WRITES}})
    assert helper.put(path, {"note": "x"}).status == 200
    assert helper.delete(path).json == {}
    assert master.get(path).error == (404, 101)
    assert owner.get("/users/me").error == (400, 209)


def test_strangers_and_clients_without_a_session_change_nothing(granted, client, master):
    stranger = sign_up("stranger")
    path = f"/users/{granted.user_id}"
    before = master.get(path).json
    for caller in (stranger, client):
        for send in TRANSPORTS:
            assert send(caller, "PUT", path, {"note": "x"}).json["code"] == 206
            assert send(caller, "DELETE", path, None).json["code"] == 206
            missing = send(caller, "PUT", "/users/nobody0001", {"note": "x"})
            assert missing.json["code"] == 206
    assert master.get(path).json == before
    assert stranger.put(path, {"note": "x"}).json["error"] == "Insufficient auth."
    assert client.put(path, {"note": "x"}).json["error"] == f"Cannot modify user {granted.user_id}."
    assert client.delete(path).json["error"] == "Insufficient auth to delete user"


@pytest.mark.parametrize("acl", [{"*": WRITES}, {"__op": "Delete"}])
def test_a_list_that_names_no_one_opens_no_account(owner, client, master, acl):
    path = f"/users/{owner.user_id}"
    assert master.put(path, {"ACL": acl}).status == 200
    for caller in (sign_up("stranger"), client):
        assert caller.put(path, {"note": "x"}).error == (400, 206)
        assert caller.delete(path).error == (400, 206)
    assert owner.put(path, {"note": "mine"}).status == 200


def test_a_role_that_may_read_alone_changes_nothing(owner, helper):
    path = f"/users/{owner.user_id}"
    owner.put(path, {"ACL": {"role:Helpers": {"read": True}}})
    assert helper.get(path).status == 200
    assert helper.put(path, {"note": "x"}).error == (400, 206)
    assert helper.delete(path).error == (400, 206)

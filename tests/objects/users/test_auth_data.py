"""Signing up, in and linking by ``authData``, with every provider."""

from __future__ import annotations

import hashlib
import hmac
import struct
import time
from base64 import b32decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import time_machine
from django.core.signals import setting_changed
from django.db import connection

from tests.people import PASSWORD, as_user, log_in, sign_up, with_token
from tests.rest import CLIENT, MASTER, Api

ONE = {"badge": {"number": "123", "pin": "321"}}
TWO = {"badge": {"number": "456", "pin": "654"}}
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(autouse=True)
def badges(settings):
    settings.SERVICE = {
        **settings.SERVICE,
        "AUTH_ADAPTERS": {"badge": {"adapter": "tests.objects.users.badge.Badge"}},
    }
    yield
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


def test_a_proof_signs_up_and_the_same_proof_signs_in(client):
    reply = client.post("/users", {"authData": ONE, "colour": "red"})
    assert reply.status == 201
    assert set(reply.json) == {"objectId", "createdAt", "sessionToken", "username"}
    again = client.post("/users", {"authData": ONE})
    assert again.status == 200
    assert again.json["objectId"] == reply.json["objectId"]
    assert (again.json["colour"], again.json["username"]) == ("red", reply.json["username"])
    assert again.json["sessionToken"] != reply.json["sessionToken"]
    session = with_token(again.json["sessionToken"]).get("/sessions/me").json
    assert session["createdWith"] == {"action": "login", "authProvider": "badge"}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"badge": {"number": "123", "pin": "000"}}, (404, 101)),
        ({"badge": {}}, (404, 101)),
        ({"badge": "123"}, (400, 107)),
        ({"badge": {"number": "123", "pin": "321", "id": "456"}}, (404, 101)),
        ({"nobody": {"id": "1"}}, (400, 252)),
        ({"anonymous": {"id": "0123456789abcdef0123"}}, (400, 252)),
        ({**ONE, "nobody": {"id": "1"}}, (400, 252)),
        ({"__op": "Delete"}, (400, 107)),
        ("badge", (400, 107)),
        ({"badge": None}, (400, 200)),
    ],
)
def test_what_proves_nothing_signs_no_one_up(client, master, data, error):
    assert client.post("/users", {"authData": data}).error == error
    assert master.get("/users").json == {"results": []}


def test_only_the_owner_and_the_master_key_see_it(client, master):
    reply = client.post("/users", {"authData": ONE})
    ann = as_user("ann", reply)
    ann.put(f"/users/{ann.user_id}", {"ACL": {"*": {"read": True}}})
    bob = sign_up("bob")
    shown = {"badge": {"id": "123", "number": "123"}}
    assert ann.get("/users/me").json["authData"] == shown
    assert master.get(f"/users/{ann.user_id}").json["authData"] == shown
    for caller in (bob, client):
        assert "authData" not in caller.get(f"/users/{ann.user_id}").json
        assert caller.get("/users", where={"authData.badge.id": "123"}).error == (400, 119)
        assert caller.get("/users", order="authData").error == (400, 119)
    results = master.get("/users", where={"authData.badge.id": "123"}).json["results"]
    assert [user["objectId"] for user in results] == [ann.user_id]


def test_an_identity_is_linked_and_taken_off_again(client):
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"authData": ONE}).status == 200
    assert client.post("/users", {"authData": ONE}).json["objectId"] == ann.user_id
    assert ann.put(f"/users/{ann.user_id}", {"authData": TWO}).status == 200
    assert client.post("/users", {"authData": TWO}).json["objectId"] == ann.user_id
    assert client.post("/users", {"authData": ONE}).status == 201
    assert ann.put(f"/users/{ann.user_id}", {"authData": {"badge": None}}).status == 200
    assert "authData" not in ann.get("/users/me").json
    assert client.post("/users", {"authData": TWO}).status == 201


def test_an_identity_belongs_to_one_user(client):
    client.post("/users", {"authData": ONE})
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"authData": ONE}).error == (400, 208)
    assert "authData" not in ann.get("/users/me").json


def test_a_change_without_a_proof_changes_nothing(client):
    ann = sign_up("ann")
    forged = {"badge": {"id": "123"}}
    assert ann.put(f"/users/{ann.user_id}", {"authData": forged}).error == (404, 101)
    assert ann.put(f"/users/{ann.user_id}", {"authData.badge.id": "123"}).error == (400, 105)
    assert "authData" not in ann.get("/users/me").json


def test_anonymous_users_where_they_are_allowed(client, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    data = {"anonymous": {"id": "8f14e45f-ceea-467f-9575-5f1c6f5f2f4e"}}
    first = client.post("/users", {"authData": data})
    assert first.status == 201
    assert client.post("/users", {"authData": data}).json["objectId"] == first.json["objectId"]
    someone = as_user("someone", first)
    value = {"username": "ann", "password": PASSWORD, "authData": {"anonymous": None}}
    assert someone.put(f"/users/{someone.user_id}", value).status == 200
    assert log_in("ann").json["objectId"] == first.json["objectId"]
    assert client.post("/users", {"authData": data}).status == 201


@pytest.mark.django_db(transaction=True)
def test_sign_ups_with_one_proof_at_once_give_one_user():
    start = Barrier(4)

    def sign(_: int) -> str:
        try:
            start.wait(30)
            reply = Api(CLIENT).post("/users", {"authData": ONE})
            assert reply.status in (200, 201), reply.json
            object_id: str = reply.json["objectId"]
            return object_id
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(sign, range(4))}) == 1
    assert len(Api(MASTER).get("/users").json["results"]) == 1


# -- A second factor ------------------------------------------------------------------------------


@pytest.fixture
def moment() -> Iterator[None]:
    """In the middle of a step: it would end between the making of a token and its use, otherwise,
    now and then."""
    with time_machine.travel(int(time.time()) // 30 * 30 + 10, tick=False):
        yield


def one_time_password(steps: int = 0) -> str:
    """RFC 6238 in a few lines, for the present moment and so many steps later."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.digest(b32decode(SECRET), counter, hashlib.sha1)
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"


def with_second_factor(name: str):
    ann = sign_up(name)
    data = {"mfa": {"secret": SECRET, "token": one_time_password(-1)}}
    reply = ann.put(f"/users/{ann.user_id}", {"authData": data})
    assert reply.status == 200, reply.json
    return ann, reply.json["authDataResponse"]["mfa"]["recovery"].split(", ")


def enter(client, **mfa):
    data = {"authData": {"mfa": mfa}} if mfa else {}
    return client.post("/login", {"username": "ann", "password": PASSWORD, **data})


def test_a_second_factor_is_requested_once_it_is_set_up(client, master, moment):
    ann, _ = with_second_factor("ann")
    assert ann.get("/users/me").json["authData"] == {"mfa": {"status": "enabled"}}
    assert SECRET not in str(master.get("/users").json)
    missing = enter(client)
    assert missing.error == (400, -1)
    assert missing.json["error"] == "Missing additional authData mfa"
    assert enter(client, token="000000").status == 400
    token = one_time_password()
    assert enter(client, token=token).json["objectId"] == ann.user_id
    assert enter(client, token=token).status == 400


def test_a_recovery_code_counts_once(client, moment):
    _, recovery = with_second_factor("ann")
    assert enter(client, token=recovery[0]).status == 200
    assert enter(client, token=recovery[0]).status == 400
    assert enter(client, token=recovery[1]).status == 200


def test_guesses_at_the_second_factor_lock_the_account_too(client, settings, moment):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3}
    with_second_factor("ann")
    for _ in range(3):
        assert enter(client, token="000000").status == 400
    assert "locked" in enter(client, token=one_time_password()).json["error"]


def test_another_service_s_proof_doesn_t_go_around_the_second_factor(client, moment):
    ann, _ = with_second_factor("ann")
    ann.put(f"/users/{ann.user_id}", {"authData": ONE})
    assert client.post("/users", {"authData": ONE}).error == (400, -1)
    both = {**ONE, "mfa": {"token": one_time_password()}}
    assert client.post("/users", {"authData": both}).json["objectId"] == ann.user_id


def test_a_wrong_password_isn_t_told_by_the_second_factor(client, moment):
    with_second_factor("ann")
    body = {"username": "ann", "password": "wrong", "authData": {"mfa": {"token": "000000"}}}
    assert client.post("/login", body).error == (404, 101)


def test_the_master_key_takes_a_second_factor_off(client, master, moment):
    ann, _ = with_second_factor("ann")
    reply = master.put(f"/users/{ann.user_id}", {"authData": {"mfa": None}})
    assert reply.status == 200
    assert enter(client).status == 200


def test_a_session_alone_doesn_t_take_a_second_factor_off(client, moment):
    ann, recovery = with_second_factor("ann")
    path = f"/users/{ann.user_id}"
    for data in (None, {}, {"old": None}):
        assert ann.put(path, {"authData": {"mfa": data}}).error == (400, -1)
    assert ann.put(path, {"authData": {"mfa": {"old": "000000"}}}).error == (400, 141)
    assert enter(client).error == (400, -1)
    assert ann.put(path, {"authData": {"mfa": {"old": recovery[0]}}}).status == 200
    assert enter(client).status == 200
    assert ann.put(path, {"authData": {"mfa": None}}).status == 200


def test_a_password_alone_doesn_t_show_an_account_with_a_second_factor(client, moment):
    ann, recovery = with_second_factor("ann")
    body = {"username": "ann", "password": PASSWORD}
    assert client.post("/verifyPassword", body).error == (400, -1)
    body["authData"] = {"mfa": {"token": recovery[0]}}
    assert client.post("/verifyPassword", body).json["objectId"] == ann.user_id

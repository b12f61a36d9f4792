"""Theme 8 of the advisories on Parse Server: no caller can find out who has an account here."""

from __future__ import annotations

import bcrypt
import pytest
from django.contrib.auth.hashers import get_hasher, identify_hasher

from objects.users.accounts import passwords
from tests.objects.access.transports import directly
from tests.password_hashers import Counting
from tests.people import PASSWORD, sign_up
from tests.rest import MAINTENANCE, Api

UNKNOWN = {"username": "nobody", "password": PASSWORD}


@pytest.fixture
def ann(client):
    return sign_up("ann", email="ann@example.org")


@pytest.mark.parametrize("route", ["/login", "/verifyPassword"])
def test_an_unknown_user_is_answered_like_a_wrong_password(master, client, ann, send, route):
    """mmpq-5hcv-hf2v: and so is a closed account."""
    sign_up("bob")
    closed = master.get("/users", where={"username": "bob"}).json["results"][0]["objectId"]
    master.put(f"/users/{closed}", {"ACL": {}})
    wrong = send(client, "POST", route, {"username": "ann", "password": "wrong"})
    for value in (
        UNKNOWN,
        {"username": "bob", "password": PASSWORD},
        {"email": "nobody@example.org", "password": PASSWORD},
        {"email": "ann@example.org", "password": "wrong"},
        {"username": "ann", "email": "nobody@example.org", "password": PASSWORD},
    ):
        reply = send(client, "POST", route, value)
        assert (reply.status, reply.json) == (wrong.status, wrong.json), value


@pytest.mark.parametrize("route", ["/login", "/verifyPassword"])
def test_an_unknown_user_costs_the_same_work(client, ann, settings, route):
    """mmpq-5hcv-hf2v: the answer came at once when there was no password to check."""
    settings.PASSWORD_HASHERS = ["tests.password_hashers.Counting"]
    work = []
    for value in (
        {"username": "ann", "password": PASSWORD},
        {"username": "ann", "password": "wrong"},
        UNKNOWN,
        {"email": "nobody@example.org", "password": "wrong"},
        {"username": "ann", "email": "nobody@example.org", "password": "wrong"},
    ):
        before = Counting.verified
        directly(client, "POST", route, value)
        work.append(Counting.verified - before)
    assert work == [1] * 5


def test_a_name_that_may_be_an_address_costs_the_same_work_in_every_case(client, master, settings):
    """Two accounts, one of them by name, one by its address, an unverified one, or none."""
    for name, address, is_verified in (
        ("owner", "taken@example.org", True),
        ("alone", "alone@example.org", True),
        ("unverified", "unverified@example.org", False),
    ):
        owner = sign_up(name, email=address)
        master.put(f"/users/{owner.user_id}", {"emailVerified": is_verified})
    for name in ("taken@example.org", "unverified@example.org", "named@example.org"):
        client.post("/users", {"username": name, "password": f"of {name}"})
    settings.PASSWORD_HASHERS = ["tests.password_hashers.Counting"]
    work = set()
    for name in ("taken", "unverified", "named", "alone", "nobody"):
        for password in (PASSWORD, f"of {name}@example.org", "wrong"):
            body = {"username": f"{name}@example.org", "password": password}
            before = Counting.verified
            directly(client, "POST", "/verifyPassword", body)
            work.add(Counting.verified - before)
    assert work == {2}


def test_an_unknown_name_is_compared_with_the_hash_of_an_account(db):
    """The hashes of imported accounts take longer: a fixed one would show who has been imported."""
    maintenance = Api(MAINTENANCE)
    hashes = set()
    for name in ("ann", "bob", "cid"):
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        reply = maintenance.post("/users", {"username": name, "_hashed_password": hashed})
        assert reply.status == 201, reply.json
        hashes.add(hashed)
    names = [f"name {number}" for number in range(400)]
    decoys = [passwords.decoy(name) for name in names]
    assert {decoy.removeprefix("bcrypt$") for decoy in decoys} <= hashes
    assert len(set(decoys)) > 1
    assert decoys == [passwords.decoy(name) for name in names]


def test_without_accounts_a_name_is_compared_with_a_hash_of_the_usual_kind(db):
    assert identify_hasher(passwords.decoy("ann")).algorithm == get_hasher().algorithm


def test_ids_of_accounts_are_answered_alike_whether_there_is_one_or_not(client, ann, send):
    bob = sign_up("bob")
    for caller in (client, bob):
        for method, body in (("GET", None), ("PUT", {"nick": "x"}), ("DELETE", None)):
            response = send(caller, method, f"/users/{ann.user_id}", body)
            unknown = send(caller, method, "/users/nobody0001", body)
            texts = [
                reply.json["error"].replace(object_id, "ID")
                for reply, object_id in ((response, ann.user_id), (unknown, "nobody0001"))
            ]
            assert (response.status, response.json["code"]) == (
                unknown.status,
                unknown.json["code"],
            )
            assert texts[0] == texts[1]


def test_lists_and_questions_tell_of_no_other_caller(client, ann, send):
    bob = sign_up("bob")
    for caller, own in ((client, []), (bob, ["bob"])):
        body = send(caller, "GET", "/users", {"count": 1}).json
        assert [result["username"] for result in body["results"]] == own
        assert body["count"] == len(own)
        for where in ({"username": "ann"}, {"username": {"$regex": "^a"}}):
            body = send(caller, "GET", "/users", {"where": where, "count": 1}).json
            assert body == {"results": [], "count": 0}
        for email in ("ann@example.org", "nobody@example.org"):
            reply = send(caller, "GET", "/users", {"where": {"email": email}})
            assert reply.json["code"] == 119


@pytest.mark.parametrize("route", ["/requestPasswordReset", "/verificationEmailRequest"])
def test_letters_are_requested_without_an_answer_who_gets_one(client, ann, send, route):
    """w54v-hf9p-8856, h29g-q5c2-9h4f: whether an address is known here, and verified."""
    response = send(client, "POST", route, {"email": "ann@example.org"})
    unknown = send(client, "POST", route, {"email": "nobody@example.org"})
    assert (response.status, response.json) == (unknown.status, unknown.json)

"""The way of an app: sign up, in and link by a provider, a wallet or a second factor."""

from __future__ import annotations

import base64
import json
import time

import pytest
import time_machine

from objects.users.accounts import second_factor
from tests.objects.sign_in.accounts import ALICE, sign
from tests.people import PASSWORD, as_user
from tests.rest import CLIENT, Api
from tests.threads import at_once

SECRET = base64.b32encode(b"a secret of 20 bytes").decode()


@pytest.fixture
def our_issuer(issuer, sign_in_by):
    sign_in_by(google={"clientIds": ["our-app"], "issuer": issuer.url}, wallet=True)
    return issuer


def one_time_password(steps=0):
    step = int(time.time()) // second_factor.STEP + steps
    return second_factor.one_time_password(base64.b32decode(SECRET), step)


def google(issuer, sub="1234567890"):
    return {"google": {"id": sub, "id_token": issuer.token(sub=sub)}}


def test_an_identity_token_signs_up_and_then_in(client, our_issuer):
    first = client.post("/users", {"authData": google(our_issuer), "colour": "red"})
    assert first.status == 201
    again = client.post("/users", {"authData": google(our_issuer)})
    assert (again.status, again.json["objectId"]) == (200, first.json["objectId"])
    assert again.json["colour"] == "red"
    assert again.json["sessionToken"] != first.json["sessionToken"]
    another = client.post("/users", {"authData": google(our_issuer, "2")})
    assert another.json["objectId"] != first.json["objectId"]


def test_the_token_is_kept_nowhere(client, master, our_issuer):
    user = as_user("alice", client.post("/users", {"authData": google(our_issuer)}))
    for reply in (user.get("/users/me"), master.get(f"/users/{user.user_id}")):
        assert reply.json["authData"] == {"google": {"id": "1234567890"}}
        assert "id_token" not in json.dumps(reply.json)


@pytest.mark.parametrize(
    "data", [{}, {"id": "1234567890"}, {"id_token": ""}, {"id_token": "a.b.c"}]
)
def test_a_known_id_without_its_proof_signs_no_one_in(client, our_issuer, data):
    client.post("/users", {"authData": google(our_issuer)})
    assert client.post("/users", {"authData": {"google": data}}).error == (404, 101)


def test_another_users_id_with_ones_own_proof_is_refused(client, our_issuer):
    client.post("/users", {"authData": google(our_issuer)})
    forged = {"google": {"id": "1234567890", "id_token": our_issuer.token(sub="2")}}
    assert client.post("/users", {"authData": forged}).error == (404, 101)


def test_a_provider_that_is_down_is_no_fault_of_ours(client, our_issuer):
    data = google(our_issuer)
    our_issuer.stop()
    reply = client.post("/users", {"authData": data})
    assert reply.error == (503, 1)
    assert "google" in reply.json["error"]


@pytest.mark.parametrize("provider", ["github", "anonymous", "nothing"])
def test_other_providers_are_unsupported(client, our_issuer, provider):
    data = {provider: {"id": "3f1c9b0e-6c1f-4e55-9d3a-0d5ad1f1c0de"}}
    assert client.post("/users", {"authData": data}).error == (400, 252)


def signed_challenge(client):
    request = {"challengeData": {"wallet": {"address": ALICE.address, "chainId": 1}}}
    reply = client.post("/challenge", request)
    assert reply.status == 200, reply.json
    message = reply.json["challengeData"]["wallet"]["message"]
    return {"wallet": {"message": message, "signature": sign(message)}}


def test_a_wallet_signs_up_and_then_in(client, our_issuer):
    proof = signed_challenge(client)
    first = client.post("/users", {"authData": proof})
    assert first.status == 201, first.json
    assert client.post("/users", {"authData": proof}).error == (404, 101), "a proof counts once"
    again = client.post("/users", {"authData": signed_challenge(client)})
    assert (again.status, again.json["objectId"]) == (200, first.json["objectId"])
    assert again.json["authData"]["wallet"]["address"] == ALICE.address


def test_a_wallet_is_linked_to_a_user_who_has_signed_up(client, our_issuer):
    user = as_user("alice", client.post("/users", {"username": "alice", "password": PASSWORD}))
    linked = user.put(f"/users/{user.user_id}", {"authData": signed_challenge(client)})
    assert linked.status == 200, linked.json
    again = client.post("/users", {"authData": signed_challenge(client)})
    assert again.json["objectId"] == user.user_id


@pytest.mark.django_db(transaction=True)
def test_a_proof_that_counts_once_outlives_a_class_that_changes_meanwhile(our_issuer, other):
    client = Api(CLIENT)
    user = as_user("alice", client.post("/users", {"username": "alice", "password": PASSWORD}))
    proof = signed_challenge(client)
    other.do("PUT", "/schemas/_User", {"fields": {"later": {"type": "String"}}})
    assert user.put(f"/users/{user.user_id}", {"authData": proof}).status == 200
    again = client.post("/users", {"authData": signed_challenge(client)})
    assert again.json["objectId"] == user.user_id


@pytest.mark.parametrize(
    "body",
    [
        {"wallet": {}},
        {"wallet": {"address": "0x1"}},
        {"wallet": {"address": ALICE.address, "chainId": {}}},
    ],
)
def test_a_challenge_for_no_address_is_a_mistake(client, our_issuer, body):
    assert client.post("/challenge", {"challengeData": body}).error == (400, 111)


def test_services_that_ask_nothing_or_are_not_set_up_are_left_out(client, our_issuer):
    wallet = {"address": ALICE.address, "chainId": 1}
    body = {"challengeData": {"google": {}, "nothing": {}, "wallet": wallet}}
    assert set(client.post("/challenge", body).json["challengeData"]) == {"wallet"}
    reply = client.post("/challenge", {"challengeData": {"nothing": {}}})
    assert (reply.status, reply.json) == (200, {"challengeData": {}})


def test_a_challenge_with_a_user_name_needs_the_right_password(client, our_issuer):
    client.post("/users", {"username": "alice", "password": PASSWORD})
    body = {"challengeData": {"wallet": {"address": ALICE.address, "chainId": 1}}}
    assert client.post("/challenge", {**body, "username": "alice"}).error == (400, -1)
    wrong = client.post("/challenge", {**body, "username": "alice", "password": "wrong"})
    assert wrong.error == (404, 101)
    right = client.post("/challenge", {**body, "username": "alice", "password": PASSWORD})
    assert set(right.json["challengeData"]) == {"wallet"}


# -- The second factor ---------------------------------------------------------------------------


@pytest.fixture
def moment():
    with time_machine.travel(int(time.time()) // 30 * 30 + 10, tick=False) as traveller:
        yield traveller


def with_second_factor(client):
    user = as_user("alice", client.post("/users", {"username": "alice", "password": PASSWORD}))
    data = {"mfa": {"secret": SECRET, "token": one_time_password()}}
    reply = user.put(f"/users/{user.user_id}", {"authData": data})
    assert reply.status == 200, reply.json
    return user, reply.json["authDataResponse"]["mfa"]["recovery"].split(", ")


def log_in(client, token=None):
    data = {} if token is None else {"authData": {"mfa": {"token": token}}}
    return client.post("/login", {"username": "alice", "password": PASSWORD, **data})


def test_a_login_asks_for_the_token(client, moment):
    user, _ = with_second_factor(client)
    reply = log_in(client)
    assert reply.status == 400
    assert reply.json == {"code": -1, "error": "Missing additional authData mfa"}
    wrong = log_in(client, "000000000")
    assert wrong.json == {"code": 141, "error": "Invalid MFA token"}
    moment.shift(30)
    token = one_time_password()
    right = log_in(client, token)
    assert (right.status, right.json["objectId"]) == (200, user.user_id)
    assert log_in(client, token).error == (400, 141), "a token counts once"


def test_a_recovery_code_stands_in_once(client, moment):
    _, codes = with_second_factor(client)
    for code in codes:
        assert log_in(client, code).status == 200
        assert log_in(client, code).error == (400, 141)


def test_the_owner_sees_only_that_there_is_one(client, master, moment):
    user, _ = with_second_factor(client)
    assert user.get("/users/me").json["authData"] == {"mfa": {"status": "enabled"}}
    for caller in (user, master):
        text = json.dumps(caller.get(f"/users/{user.user_id}").json)
        assert SECRET not in text
        assert "recovery" not in text


@pytest.mark.django_db(transaction=True)
def test_of_many_logins_with_one_recovery_code_at_once_one_succeeds(moment):
    _, codes = with_second_factor(Api(CLIENT))
    replies = at_once([lambda: log_in(Api(CLIENT), codes[0])] * 8)
    assert [reply.status for reply in replies].count(200) == 1

"""Logging in with a passkey, under the rules of logging in with a password."""

from __future__ import annotations

import base64
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from functions import before_login
from functions.runtime.registry import registry
from objects.users.accounts import second_factor
from objects.users.models import FailedLogins
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from tests.objects.users.passkeys.authenticator import EDDSA, ES256, RS256, UP, UV, Authenticator
from tests.objects.users.passkeys.calls import (
    ANYBODY,
    complete,
    log_in,
    log_in_complete,
    log_in_init,
    register,
    register_init,
    result,
    under_maintenance,
)
from tests.people import log_in as log_in_with_password
from tests.people import sign_up, with_token
from tests.rest import CLIENT, MASTER, READ_ONLY, Api, Reply

NOT_PROVEN = {"code": 141, "error": "The passkey could not be verified."}


def refused(reply: Reply) -> None:
    assert (reply.status, reply.json) == (400, NOT_PROVEN)


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_any_passkey_of_the_domain_logs_in_without_a_name(db, algorithm):
    authenticator, registered = register("ann", Authenticator(algorithm))
    options = log_in_init()
    assert (options["rpId"], options["userVerification"]) == ("localhost", "required")
    assert options["allowCredentials"] == []
    answer = result(log_in_complete(options, authenticator.get(options)))
    assert (answer["user"], answer["wallets"]) == (registered["user"], registered["wallets"])
    assert answer["token"] != registered["token"]
    session = with_token(answer["token"]).get("/sessions/me").json
    assert session["createdWith"] == {"action": "login", "authProvider": "passkey"}
    row = Passkey.objects.get()
    assert row.sign_count == 2
    assert row.used_at is not None


def test_with_a_name_it_is_one_of_that_users_passkeys(db):
    ann, _ = register("ann")
    bob, _ = register("bob")
    options = log_in_init(username="ANN")
    assert options["allowCredentials"] == [{"id": ann.id, "type": "public-key"}]
    refused(log_in_complete(options, bob.get(options)))
    assert log_in(ann, username="ann").status == 200


def test_no_one_learns_which_names_there_are(client):
    sign_up("cat")
    for name in ("nobody", "cat"):
        first, second = log_in_init(username=name), log_in_init(username=name.upper())
        assert first["allowCredentials"] == second["allowCredentials"]
        (invented,) = first["allowCredentials"]
        assert len(invented["id"]) == 43
        refused(log_in_complete(first, Authenticator(user_id=b"nobody").get(first)))


def test_the_form_of_wallet_services_does_the_same(db):
    authenticator, _ = register("ann")
    options = log_in_init()
    signed = authenticator.get(options)["response"]
    names = ("authenticatorData", "signature", "userHandle")
    assertion = {"credId": authenticator.id, "clientData": signed["clientDataJSON"]}
    assertion |= {name: signed[name] for name in names}
    form = {"firstFactor": {"kind": "Fido2", "credentialAssertion": assertion}}
    assert log_in_complete(options, form).status == 200


@pytest.mark.parametrize(
    "source",
    [
        {"origin": "https://evil.example"}, {"says_rp": "evil.example"}, {"flags": UP},
        {"flags": UV}, {"says_challenge": "AAAA"}, {"says_type": "webauthn.create"},
        {"in_frame": True}, {"user_id": b"somebody"}, {"user_id": b"\xff\xfe"}, {"counter": 0},
    ],
    ids=str,
)  # fmt: skip
def test_what_the_authenticator_says_is_verified(db, source):
    authenticator, _ = register("ann")
    for name, value in source.items():
        setattr(authenticator, name, value)
    refused(log_in(authenticator))
    assert Passkey.objects.get().sign_count == 1


def test_another_key_with_the_same_id_is_refused(db):
    authenticator, answer = register("ann")
    user_id = answer["user"]["id"].encode()
    copy = Authenticator(credential_id=authenticator.credential_id, user_id=user_id, counter=50)
    refused(log_in(copy))
    assert log_in(authenticator).status == 200


def test_a_signature_counts_once(db):
    authenticator, _ = register("ann")
    options = log_in_init()
    signed = authenticator.get(options)
    assert log_in_complete(options, signed).status == 200
    again = log_in_complete(options, signed)
    assert again.error == (400, 141)
    assert "temporaryAuthenticationToken" in again.json["error"]
    refused(log_in_complete(log_in_init(), signed))


def test_a_token_counts_for_one_try_and_ten_minutes(db):
    authenticator, _ = register("ann")
    options = log_in_init()
    refused(log_in_complete(options, Authenticator(user_id=b"x").get(options)))
    assert log_in_complete(options, authenticator.get(options)).error == (400, 141)
    options = log_in_init()
    PasskeyChallenge.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert log_in_complete(options, authenticator.get(options)).error == (400, 141)


def test_tokens_of_registrations_and_of_logs_in_are_different_things(db):
    authenticator, _ = register("ann")
    to_register, to_log_in = register_init("bob"), log_in_init()
    mixed = {**to_log_in, "temporaryAuthenticationToken": to_register["temporaryAuthenticationToken"]}  # fmt: skip  # noqa: E501
    assert log_in_complete(mixed, authenticator.get(to_log_in)).error == (400, 141)
    mixed = {**to_register, "temporaryAuthenticationToken": to_log_in["temporaryAuthenticationToken"]}  # fmt: skip  # noqa: E501
    assert complete(mixed, Authenticator().create(to_register)).error == (400, 141)


def test_a_copied_authenticator_is_noticed(db):
    original, _ = register("ann")
    copy = Authenticator(
        credential_id=original.credential_id, user_id=original.user_id, counter=original.counter
    )
    copy.key = original.key
    assert log_in(original).status == 200
    assert log_in(original).status == 200
    refused(log_in(copy))  # it counts 2, and the original has counted 3
    original.counter = 0
    original.counts = 0
    refused(log_in(original))  # nor does one that has counted stop counting


def test_authenticators_that_do_not_count_log_in_again_and_again(db):
    authenticator, _ = register("ann", Authenticator(counts=0))
    for _ in range(3):
        assert log_in(authenticator).status == 200
    assert Passkey.objects.get().sign_count == 0


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({}, "assertion"),
        ({"assertion": {}}, "temporaryAuthenticationToken"),
        ({"assertion": {}, "temporaryAuthenticationToken": "x"}, "assertion: type"),
        ({"assertion": {"firstFactor": 1}, "temporaryAuthenticationToken": "x"}, "firstFactor"),
        ({"assertion": {"firstFactor": {"kind": "Key"}}, "temporaryAuthenticationToken": "x"},
         "firstFactor.kind"),
        ({"assertion": "x", "temporaryAuthenticationToken": "x"}, "assertion"),
    ],
)  # fmt: skip
def test_parameters_come_first(db, value, named):
    for headers in (ANYBODY.headers, READ_ONLY):
        reply = Api(headers).post("/functions/passkeyLoginComplete", value)
        assert reply.error == (400, 141)
        assert named in reply.json["error"]


@pytest.mark.parametrize("username", ["", 1, "x" * 257, "a\u0000b", "\u009f", []])
def test_a_username_that_is_none_is_named(db, username):
    reply = ANYBODY.post("/functions/passkeyLoginInit", {"username": username})
    assert reply.error == (400, 141)
    assert "username" in reply.json["error"]


# -- The rules of logging in ----------------------------------------------------------------------


def test_a_locked_account_stays_locked(client, settings):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 2}
    ann, authenticator = sign_up("ann"), Authenticator()
    options = register_init("ann", ann)
    assert complete(options, authenticator.create(options), ann).status == 200
    for _ in range(2):
        log_in_with_password("ann", "wrong")
    reply = log_in(authenticator)
    assert reply.error == (404, 101)
    assert "locked" in reply.json["error"]
    FailedLogins.objects.all().delete()
    assert log_in(authenticator).status == 200


def test_a_closed_account_stays_closed(master):
    authenticator, answer = register("ann")
    master.put(f"/users/{answer['user']['id']}", {"ACL": {}})
    assert log_in(authenticator).error == (404, 101)
    assert log_in(authenticator, Api(MASTER)).status == 200


def test_an_address_is_to_be_verified_first(master, settings):
    authenticator, answer = register("ann")
    settings.SERVICE = {**settings.SERVICE, "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": True}
    assert log_in(authenticator).error == (400, 205)
    master.put(f"/users/{answer['user']['id']}", {"emailVerified": True})
    assert log_in(authenticator).status == 200


def test_a_trigger_may_refuse_and_then_nothing_has_happened(db):
    authenticator, answer = register("ann")
    sessions = len(Api(MASTER).results("_Session"))
    with registry.temporarily():

        @before_login()
        def look(request):
            assert request.user_id == answer["user"]["id"]
            raise ValueError("not today")

        assert log_in(authenticator).error == (400, 141)
    assert Passkey.objects.get().sign_count == 1
    assert len(Api(MASTER).results("_Session")) == sessions
    assert log_in(authenticator).status == 200


def test_a_second_factor_is_requested_where_the_user_was_not_verified(db, settings):
    settings.SERVICE = {**settings.SERVICE, "WEBAUTHN_USER_VERIFICATION": "preferred"}
    authenticator, answer = register("ann")
    secret = base64.b32encode(b"12345678901234567890").decode()

    def token(step: int) -> str:
        now = int(time.time()) // second_factor.STEP
        return second_factor.one_time_password(b"12345678901234567890", now + step)

    second_factor.set_up(answer["user"]["id"], {"secret": secret, "token": token(-1)})
    assert log_in(authenticator).status == 200
    authenticator.flags = UP
    assert log_in(authenticator).error == (400, -1)
    options = log_in_init()
    reply = log_in_complete(options, authenticator.get(options), mfaToken=token(0))
    assert reply.status == 200


def test_the_read_only_master_key_logs_no_one_in(db):
    authenticator, _ = register("ann")
    assert Api(READ_ONLY).post("/functions/passkeyLoginInit").error == (400, 119)
    options = log_in_init()
    reply = log_in_complete(options, authenticator.get(options), Api(READ_ONLY))
    assert reply.error == (400, 119)


def test_a_session_that_comes_along_does_not_matter(db):
    authenticator, answer = register("ann")
    bob = with_token(sign_up("bob").token)
    assert result(log_in(authenticator, bob))["user"] == answer["user"]


def test_an_installation_has_one_session(db):
    authenticator, _ = register("ann")
    phone = Api({**CLIENT, "X-Svc-Installation-Id": "phone"})
    first = result(log_in(authenticator, phone))["token"]
    second = result(log_in(authenticator, phone))["token"]
    assert with_token(first).get("/users/me").error == (400, 209)
    assert with_token(second).get("/users/me").status == 200


def test_logging_in_goes_on_while_the_system_is_read_only(db):
    authenticator, _ = register("ann")
    with under_maintenance():
        token = result(log_in(authenticator))["token"]
        assert with_token(token).post("/functions/removePasskey", {"id": "x"}).error == (400, 119)
    assert Passkey.objects.get().sign_count == 2

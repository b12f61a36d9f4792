"""Signing up with a passkey: all of it is verified, and made as a whole or not at all."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

from chain.models import Blockchain, Identity
from chain.models.signing import Wallet
from functions import before_save
from functions.runtime.registry import registry
from objects.users.models import User as UserRow
from objects.users.passkeys import challenges
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from tests.objects.users.passkeys.authenticator import (
    BE,
    BS,
    EDDSA,
    ES256,
    RS256,
    UP,
    UV,
    Authenticator,
    as_wallet_service,
)
from tests.objects.users.passkeys.calls import (
    ANYBODY,
    complete,
    log_in,
    register,
    register_init,
    result,
    under_maintenance,
)
from tests.people import log_in as log_in_with_password
from tests.people import sign_up, with_token
from tests.rest import MASTER, READ_ONLY, Api


def nothing_was_made() -> bool:
    return not any(model.objects.exists() for model in (UserRow, Passkey, Wallet, Identity))


def refused(reply: Any, *words: str) -> None:
    assert reply.error == (400, 141), reply.json
    for word in words:
        assert word in reply.json["error"], reply.json
    assert nothing_was_made()


# -- The options ----------------------------------------------------------------------------------


def test_the_options_are_what_browsers_and_wallet_services_take(db):
    options = register_init("ann@example.org")
    assert options["rp"] == {"id": "localhost", "name": "localhost"}
    assert options["user"]["name"] == options["user"]["displayName"] == "ann@example.org"
    assert [algorithm["alg"] for algorithm in options["pubKeyCredParams"]] == [-7, -8, -257]
    assert options["pubKeyCredParam"] == options["pubKeyCredParams"]
    assert options["supportedCredentialKinds"] == {"firstFactor": ["Fido2"], "secondFactor": []}
    assert options["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }
    assert (options["attestation"], options["excludeCredentials"]) == ("none", [])
    assert len(base64url_to_bytes(options["challenge"])) == 32
    again = register_init("ann@example.org")
    for name in ("challenge", "temporaryAuthenticationToken"):
        assert again[name] != options[name]


def test_the_database_has_no_token(db):
    options = register_init("ann")
    row = PasskeyChallenge.objects.get()
    assert options["temporaryAuthenticationToken"].encode() not in bytes(row.token_hash)
    assert row.expires_at - timezone.now() <= timedelta(minutes=10)


@pytest.mark.parametrize(
    "value", [{}, {"username": ""}, {"username": " "}, {"username": 1}, {"username": "x" * 257},
              {"username": "a\u0000b"}, {"username": {"$ne": 1}}, {"username": None}]
)  # fmt: skip
def test_a_username_that_is_none_is_named(db, value):
    reply = ANYBODY.post("/functions/registerInit", value)
    assert reply.error == (400, 141)
    assert "username" in reply.json["error"]
    assert not PasskeyChallenge.objects.exists()


def test_a_name_that_is_taken_is_reported_as_at_sign_up(client):
    sign_up("ann")
    as_sign_up = client.post("/users", {"username": "ANN", "password": "x"})
    assert ANYBODY.post("/functions/registerInit", {"username": "ANN"}).json == as_sign_up.json
    assert as_sign_up.error == (400, 202)


def test_who_asks_again_and_again_is_stopped(db, monkeypatch):
    monkeypatch.setattr(challenges, "MOST_OPEN", 3)
    for number in range(3):
        register_init(f"ann{number}")
    reply = ANYBODY.post("/functions/registerInit", {"username": "ann"})
    assert reply.error == (429, 100)
    # What has expired doesn't count, and is removed by the next who asks.
    PasskeyChallenge.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    register_init("ann")
    assert PasskeyChallenge.objects.count() == 1


# -- The good path --------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
@pytest.mark.parametrize("attests", ["none", "packed"])
def test_a_user_a_passkey_wallets_and_a_session_are_made(db, algorithm, attests):
    _, answer = register("ann", Authenticator(algorithm, attests=attests))
    assert set(answer) == {"token", "user", "wallets"}
    me = with_token(answer["token"]).get("/users/me").json
    assert answer["user"] == {"id": me["objectId"], "username": "ann"}
    assert me["authData"] == {"passkey": {"id": me["objectId"]}}
    (session,) = Api(MASTER).results("_Session")
    assert session["createdWith"] == {"action": "signup", "authProvider": "passkey"}
    (wallet,) = answer["wallets"]
    assert set(wallet) == {"id", "network", "address"}
    row = Passkey.objects.get()
    assert (row.user_id, row.attestation, row.sign_count) == (me["objectId"], attests, 1)
    assert log_in_with_password("ann", "").error == (400, 201)
    assert log_in_with_password("ann", "anything").error == (404, 101)


def test_the_form_of_wallet_services_does_the_same(db):
    authenticator = Authenticator()
    options = register_init("ann")
    signed = as_wallet_service(authenticator.create(options))
    signed["recoveryCredential"] = {"credentialKind": "RecoveryKey", "credentialInfo": {}}
    assert result(complete(options, signed))["user"]["username"] == "ann"
    assert log_in(authenticator).status == 200


def test_padding_and_a_label_do_no_harm(db):
    authenticator = Authenticator()
    options = register_init("ann")
    signed = authenticator.create(options)
    signed["id"] = signed["rawId"] = signed["id"] + "="
    token = result(complete(options, signed, name="My phone"))["token"]
    (passkey,) = result(with_token(token).post("/functions/listPasskeys"))
    assert (passkey["id"], passkey["name"]) == (authenticator.id, "My phone")
    assert passkey["transports"] == ["hybrid", "internal"]


def test_a_wallet_is_made_on_each_network_and_is_known_as_the_users(client, master):
    for network_id in (84532, 11155420):
        master.make("Blockchain", networkId=network_id, name=f"Chain {network_id}")
    _, answer = register("ann")
    assert [item["network"] for item in answer["wallets"]] == ["84532", "11155420"]
    listed = result(ANYBODY.post("/functions/listWallets", {"authToken": answer["token"]}))
    assert listed == {"wallets": answer["wallets"], "items": answer["wallets"]}
    for wallet in answer["wallets"]:
        (identity,) = client.results("Identity", where={"walletAddress": wallet["address"]})
        assert identity["user"]["objectId"] == answer["user"]["id"]


def test_triggers_see_the_new_user_and_may_refuse_it(db):
    observed = []
    with registry.temporarily():

        @before_save("_User")
        def look(request):
            observed.append((request.object["username"], request.is_new, request.user_id))
            if request.object["username"] == "bob":
                raise ValueError("no bobs")

        register("ann")
        options = register_init("bob")
        reply = complete(options, Authenticator().create(options))
    assert observed == [("ann", True, None), ("bob", True, None)]
    assert reply.error == (400, 141)
    assert not UserRow.objects.filter(username="bob").exists()
    assert (Passkey.objects.count(), Wallet.objects.count()) == (1, 1)


# -- What doesn't hold ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({}, "signedChallenge"),
        ({"signedChallenge": {}}, "temporaryAuthenticationToken"),
        ({"signedChallenge": "mocked", "temporaryAuthenticationToken": "x"}, "signedChallenge"),
        ({"signedChallenge": {}, "temporaryAuthenticationToken": "x"}, "signedChallenge"),
        (
            {"signedChallenge": {}, "temporaryAuthenticationToken": 1},
            "temporaryAuthenticationToken",
        ),
        ({"signedChallenge": [], "temporaryAuthenticationToken": ""}, "signedChallenge"),
    ],
)
def test_parameters_come_first(db, value, named):
    for headers in (ANYBODY.headers, READ_ONLY, MASTER):
        reply = Api(headers).post("/functions/registerComplete", value)
        assert reply.error == (400, 141)
        assert named in reply.json["error"]


def changed(signed: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    signed = copy.deepcopy(signed)
    *steps, last = path.split(".")
    target = signed
    for step in steps:
        target = target[step]
    if value is None:
        del target[last]
    else:
        target[last] = value
    return signed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("id", None), ("id", ""), ("id", 5), ("id", "ä"), ("id", "A" * 1400), ("rawId", "AAAA"),
        ("type", None), ("type", "password"), ("response", None), ("response", []),
        ("response.clientDataJSON", None), ("response.clientDataJSON", "%%"),
        ("response.attestationObject", None), ("response.attestationObject", {}),
        ("response.attestationObject", "A" * 70_000),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_a_form_that_is_none_is_reported_by_its_place_and_the_token_still_counts(db, path, value):
    options = register_init("ann")
    signed = Authenticator().create(options)
    refused(complete(options, changed(signed, path, value)), "signedChallenge: ", path)
    assert complete(options, signed).status == 200


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("firstFactorCredential", "x"),
        ("firstFactorCredential.credentialKind", "Key"),
        ("firstFactorCredential.credentialInfo", None),
        ("firstFactorCredential.credentialInfo.credId", None),
        ("firstFactorCredential.credentialInfo.clientData", 3),
        ("firstFactorCredential.credentialInfo.attestationData", "!"),
    ],
)
def test_so_is_the_form_of_wallet_services(db, path, value):
    options = register_init("ann")
    signed = as_wallet_service(Authenticator().create(options))
    refused(complete(options, changed(signed, path, value)), "signedChallenge: ", path)


def flip(text: str, place: int) -> str:
    raw = bytearray(base64url_to_bytes(text))
    raw[place] ^= 1
    return bytes_to_base64url(bytes(raw))


@pytest.mark.parametrize(
    "authenticator",
    [
        {"origin": "https://evil.example"}, {"origin": "http://localhost:8001"},
        {"origin": "https://localhost:8000"}, {"says_rp": "evil.example"},
        {"says_challenge": bytes_to_base64url(bytes(32))}, {"says_type": "webauthn.get"},
        {"flags": UV}, {"flags": UP}, {"flags": UP | UV | BS}, {"in_frame": True},
        {"attests": "imaginary"}, {"attests": "fido-u2f"},
    ],
    ids=str,
)  # fmt: skip
def test_what_the_authenticator_says_is_verified_and_ends_the_token(db, authenticator):
    options = register_init("ann")
    refused(complete(options, Authenticator(**authenticator).create(options)), "signedChallenge: ")
    refused(complete(options, Authenticator().create(options)), "temporaryAuthenticationToken")


def test_no_byte_of_a_self_attested_answer_can_be_another(db):
    for seed in range(24):
        options = register_init("ann")
        signed = Authenticator(attests="packed").create(options)
        name = ("clientDataJSON", "attestationObject")[seed % 2]
        length = len(base64url_to_bytes(signed["response"][name]))
        signed["response"][name] = flip(signed["response"][name], (seed * 7919) % length)
        refused(complete(options, signed), "signedChallenge: ")


def test_the_id_of_another_credential_is_refused(db):
    options = register_init("ann")
    signed = Authenticator().create(options)
    signed["id"] = signed["rawId"] = Authenticator().id
    refused(complete(options, signed), "attested")


def test_garbage_in_place_of_an_attestation_is_refused(db):
    for raw in (b"", b"\xa0", b"\x9f" * 5000, b"\xbf" * 300, bytes(200), b"\xa3cfmtdnone"):
        options = register_init("ann")
        signed = Authenticator().create(options)
        signed["response"]["attestationObject"] = bytes_to_base64url(raw)
        refused(complete(options, signed), "signedChallenge: ")


def test_a_key_that_is_none_is_refused(db):
    authenticator = Authenticator()
    authenticator._public_key = lambda: {1: 2, 3: -7, -1: 1, -2: bytes(32), -3: b"\x01" * 32}  # type: ignore[method-assign]
    options = register_init("ann")
    refused(complete(options, authenticator.create(options)), "signedChallenge: ")


def test_user_verification_is_requested_by_the_setting(db, settings):
    settings.SERVICE = {**settings.SERVICE, "WEBAUTHN_USER_VERIFICATION": "preferred"}
    _, answer = register("ann", Authenticator(flags=UP))
    assert answer["token"]


def test_attestation_is_requested_by_the_setting(db, settings):
    settings.SERVICE = {**settings.SERVICE, "WEBAUTHN_ATTESTATION": "direct"}
    options = register_init("ann")
    assert options["attestation"] == "direct"
    refused(complete(options, Authenticator().create(options)), "says nothing")
    register("ann", Authenticator(attests="packed"))


def test_domain_origins_and_name_come_from_settings(db, settings):
    settings.SERVICE = {
        **settings.SERVICE,
        "WEBAUTHN_RP_ID": "example.org",
        "WEBAUTHN_RP_NAME": "Example",
        "WEBAUTHN_ORIGINS": ("https://app.example.org", "android:apk-key-hash:abc"),
    }
    assert register_init("ann")["rp"] == {"id": "example.org", "name": "Example"}
    for number, origin in enumerate(("https://app.example.org", "android:apk-key-hash:abc")):
        register(f"ann{number}", Authenticator(origin=origin))
    options = register_init("ann")
    reply = complete(options, Authenticator(origin="https://example.org").create(options))
    assert reply.error == (400, 141)


def test_backed_up_passkeys_are_known_as_such(db):
    register("ann", Authenticator(flags=UP | UV | BE | BS))
    assert Passkey.objects.get().backed_up


# -- Tokens ---------------------------------------------------------------------------------------


def test_a_token_counts_once(db):
    options = register_init("ann")
    authenticator = Authenticator()
    signed = authenticator.create(options)
    assert complete(options, signed).status == 200
    again = complete(options, signed)
    assert again.error == (400, 141)
    assert "temporaryAuthenticationToken" in again.json["error"]
    assert (UserRow.objects.count(), Passkey.objects.count(), Wallet.objects.count()) == (1, 1, 1)


def test_a_token_expires(db):
    options = register_init("ann")
    PasskeyChallenge.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(complete(options, Authenticator().create(options)), "temporaryAuthenticationToken")


def test_an_answer_to_another_challenge_is_refused(db):
    first, second = register_init("ann"), register_init("ann")
    refused(complete(second, Authenticator().create(first)), "challenge")


def test_tokens_that_no_one_was_given_are_refused(db):
    options = register_init("ann")
    signed = Authenticator().create(options)
    for token in ("x", "A" * 43, "\u0000", "ä" * 43, "A" * 100_000):
        refused(
            complete({"temporaryAuthenticationToken": token}, signed),
            "temporaryAuthenticationToken",
        )


def test_of_two_who_want_one_name_the_second_is_refused(db):
    first, second = register_init("ann"), register_init("Ann")
    assert complete(first, Authenticator().create(first)).status == 200
    reply = complete(second, Authenticator().create(second))
    assert reply.error == (400, 202)
    assert (UserRow.objects.count(), Passkey.objects.count(), Wallet.objects.count()) == (1, 1, 1)


def test_a_passkey_belongs_to_one_user(db):
    authenticator, _ = register("ann")
    options = register_init("bob")
    reply = complete(options, authenticator.create(options))
    assert reply.error == (400, 141)
    assert "in use" in reply.json["error"]
    assert not UserRow.objects.filter(username="bob").exists()


# -- Who may --------------------------------------------------------------------------------------


def test_the_read_only_master_key_registers_no_one(db):
    assert Api(READ_ONLY).post("/functions/registerInit", {"username": "ann"}).error == (400, 119)
    options = register_init("ann")
    reply = complete(options, Authenticator().create(options), Api(READ_ONLY))
    assert reply.error == (400, 119)
    assert nothing_was_made()


def test_the_master_key_may(db):
    _, answer = register("ann", api=Api(MASTER))
    assert with_token(answer["token"]).get("/users/me").json["username"] == "ann"


def test_whoever_may_not_make_users_may_not_by_this(master):
    schema = {"classLevelPermissions": {"create": {}, "get": {"*": True}, "find": {}}}
    assert master.put("/schemas/_User", schema).status == 200
    options = register_init("ann")
    reply = complete(options, Authenticator().create(options))
    assert reply.json["code"] == 119
    assert nothing_was_made()


def test_while_the_system_is_read_only_no_one_registers(db):
    from objects.database import maintenance

    options = register_init("ann")
    signed = Authenticator().create(options)
    with under_maintenance():
        assert ANYBODY.post("/functions/registerInit", {"username": "bob"}).error == (400, 119)
        assert complete(options, signed).error == (400, 119)
    assert maintenance.state() is None
    assert complete(options, signed).status == 200


def test_a_deactivated_network_gets_no_wallets(master):
    master.make("Blockchain", networkId=1, name="One")
    master.make("Blockchain", networkId=2, name="Two")
    Blockchain.objects.filter(network_id=2).update(active=False)
    _, answer = register("ann")
    assert [wallet["network"] for wallet in answer["wallets"]] == ["1"]

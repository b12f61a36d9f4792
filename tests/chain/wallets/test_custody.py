"""Wallets and the custodians of their keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from eth_keys.datatypes import PublicKey, Signature

from backend.kernel.encryption import cipher
from backend.settings.conf import DEFAULTS
from backend.settings.environment import BadSetting
from chain.core.names import address_of
from chain.models import Blockchain, Identity
from chain.models.signing import Wallet
from chain.wallets import custody, http_api
from chain.wallets.adapters import CustodyFailed, Owner
from objects import reencryption
from objects.users.models import User as UserRow
from objects.users.passkeys.models import Passkey, PasskeyChallenge
from tests.chain.wallets.wallet_service import ABSENT, WalletService, running_wallet_service
from tests.objects.users.passkeys.authenticator import Authenticator
from tests.objects.users.passkeys.calls import (
    ANYBODY,
    complete,
    log_in,
    register,
    register_init,
    result,
)
from tests.people import sign_up
from tests.setting_areas import wallets

DIGEST = hashlib.sha256(b"what is signed").digest()


def use(settings: Any, **values: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, **values}


@pytest.fixture
def wallet_service(settings: Any, monkeypatch: Any) -> Iterator[WalletService]:
    monkeypatch.setattr(http_api, "_PAUSE", 0.001)
    with running_wallet_service() as service:
        use(settings, **service.settings("BaseSepolia", "OptimismSepolia"))
        yield service


# -- The built-in one -----------------------------------------------------------------------------


def test_each_user_and_network_has_a_key_of_its_own(client, settings):
    use(settings, WALLET_NETWORKS=("one", "two"))
    for name in ("ann", "bob"):
        custody.create_wallets(Owner(sign_up(name).user_id, name))
    wallets_ = Wallet.objects.all()
    assert len({row.address for row in wallets_}) == len({row.wallet_id for row in wallets_}) == 4
    assert [row.network for row in wallets_] == ["one", "two"] * 2
    for row in wallets_:
        assert address_of(row.address) == row.address
        assert row.custodian == "local"


def test_keys_are_encrypted_and_encrypted_again(client, settings):
    ann = sign_up("ann")
    (wallet,) = custody.create_wallets(Owner(ann.user_id, "ann"))
    assert wallet.key is not None
    key = cipher("chain wallet").decrypt(wallet.key)
    assert len(key) == 32
    assert key.hex() not in wallet.key
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another secret key"
    assert reencryption.reencrypt_all().done >= 1
    settings.SECRET_KEY_FALLBACKS = []
    wallet.refresh_from_db()
    assert cipher("chain wallet").decrypt(wallet.key) == key
    settings.SECRET_KEY = "a third one"
    with pytest.raises(CustodyFailed, match="SECRET_KEY"):
        custody.sign(ann.user_id, "local", DIGEST)


def test_what_a_wallet_signs_is_signed_by_its_address(client):
    ann = sign_up("ann")
    (wallet,) = custody.create_wallets(Owner(ann.user_id, "ann"))
    signature = Signature(custody.sign(ann.user_id, "local", DIGEST))
    signer: PublicKey = signature.recover_public_key_from_msg_hash(DIGEST)
    assert signer.to_checksum_address() == wallet.address
    for user_id, network, digest in (
        ("nobody", "local", DIGEST), (ann.user_id, "other", DIGEST), (ann.user_id, "local", b"x")
    ):  # fmt: skip
        with pytest.raises(CustodyFailed):
            custody.sign(user_id, network, digest)


def test_wallets_are_made_once_and_a_new_network_adds_one(client, master, settings):
    owner = Owner(sign_up("ann").user_id, "ann")
    master.make("Blockchain", networkId=1)
    first = custody.shown(custody.create_wallets(owner))
    assert custody.shown(custody.create_wallets(owner)) == first
    Blockchain.objects.update(active=False)
    master.make("Blockchain", networkId=7)
    both = custody.shown(custody.create_wallets(owner))
    assert both[:1] == first
    assert [item["network"] for item in both] == ["1", "7"]
    use(settings, WALLET_NETWORKS=("somewhere",))
    assert len(custody.create_wallets(owner)) == 3


def test_each_address_is_known_as_its_users(client):
    ann = sign_up("ann")
    (wallet,) = custody.create_wallets(Owner(ann.user_id, "ann"))
    (identity,) = client.results("Identity", where={"walletAddress": wallet.address})
    assert identity["user"] == ann.pointer


def test_no_key_is_in_what_is_shown_or_printed(client):
    ann = sign_up("ann")
    (wallet,) = custody.create_wallets(Owner(ann.user_id, "ann"))
    (made,) = custody.Local().create(Owner("x", "y"), ["local"], None)
    for text in (str(wallet), repr(wallet), repr(made), str(custody.shown([wallet]))):
        assert str(wallet.key) not in text
        assert str(made.key) not in text
        assert "gAAAA" not in text


def test_the_one_for_development_has_no_keys(client, settings):
    use(settings, WALLET_CUSTODIAN="mock")
    ann = sign_up("ann")
    (wallet,) = custody.create_wallets(Owner(ann.user_id, "ann"))
    assert (wallet.key, wallet.wallet_id[:5]) == (None, "mock-")
    with pytest.raises(CustodyFailed):
        custody.sign(ann.user_id, "local", DIGEST)


def test_there_may_be_none_at_all(db, settings):
    use(settings, WALLET_CUSTODIAN="none")
    _, answer = register("ann")
    assert answer["wallets"] == []
    assert answer["token"]
    with pytest.raises(CustodyFailed):
        custody.sign(answer["user"]["id"], "local", DIGEST)


# -- One behind an API ----------------------------------------------------------------------------


def test_wallets_of_a_service_are_requested_and_kept(client, wallet_service):
    _, answer = register("ann")
    assert answer["wallets"] == [
        {"id": wallet["id"], "network": wallet["network"], "address": address_of(wallet["address"])}
        for wallet in wallet_service.wallets.values()
    ]
    listed = result(ANYBODY.post("/functions/listWallets", {"authToken": answer["token"]}))
    assert listed["wallets"] == answer["wallets"]
    user_id = answer["user"]["id"]
    for network, (method, path, headers, body) in zip(
        ("BaseSepolia", "OptimismSepolia"), wallet_service.requests, strict=True
    ):
        assert (method, path) == ("POST", "/wallets")
        assert body == {"network": network, "name": "ann", "externalId": f"{user_id}:{network}"}
        assert headers["authorization"] == "Bearer service-account-token"
    keys = {headers["idempotency-key"] for _, _, headers, _ in wallet_service.requests}
    assert len(keys) == 2
    assert not Wallet.objects.exclude(key=None).exists()


@pytest.mark.parametrize("fault", [500, 503, 429, "drop"])
@pytest.mark.parametrize("remembers", ["same", "conflict"])
def test_what_failed_halfway_is_requested_again_and_made_once(db, wallet_service, fault, remembers):
    wallet_service.remembers = remembers
    wallet_service.faults = [fault, fault]
    _, answer = register("ann")
    assert len(answer["wallets"]) == len(wallet_service.wallets) == 2
    first, second, third = (headers for _, _, headers, _ in wallet_service.requests[:3])
    assert first["idempotency-key"] == second["idempotency-key"] == third["idempotency-key"]


def test_an_address_may_come_later(db, wallet_service):
    wallet_service.late = True
    _, answer = register("ann")
    assert all(wallet["address"] for wallet in answer["wallets"])
    assert [method for method, *_ in wallet_service.requests] == ["POST", "GET"] * 2


def nothing_was_made() -> bool:
    return not any(model.objects.exists() for model in (UserRow, Passkey, Wallet, Identity))


@pytest.mark.parametrize(
    "faults",
    [
        [500, 500, 500], [None, 400], ["no JSON"], ["[]"], ["{}"], [301], [404], ["drop"] * 3,
        ['{"id": "wa-1", "address": "0x12345678", "network": "BaseSepolia"}'],
        ['{"id": "../x", "address": null}'], ['{"id": 5, "address": "0x1"}'], ["x" * 300_000] * 3,
        [None, '{"error": {"details": {"duplicate": 5}}}'],
    ],
    ids=lambda faults: str(faults)[:60],
)  # fmt: skip
def test_a_service_that_fails_leaves_nothing_here_and_may_be_tried_again(
    db, wallet_service, faults
):
    wallet_service.faults = list(faults)
    options = register_init("ann")
    authenticator = Authenticator()
    signed = authenticator.create(options)
    reply = complete(options, signed)
    assert reply.error == (400, 141)
    assert wallet_service.url not in str(reply.json)
    assert nothing_was_made()
    wallet_service.faults = []
    # The same answer of the authenticator: the token still counts, and no wallet is made twice.
    assert len(result(complete(options, signed))["wallets"]) == 2
    assert len(wallet_service.wallets) == 2


@pytest.mark.parametrize(
    "change",
    [{"address": ABSENT}, {"id": ABSENT}, {"network": "Other"}, {"address": "0x" + "g" * 40},
     {"address": 5}, {"id": "a b"}],
    ids=str,
)  # fmt: skip
def test_a_wallet_that_is_none_is_refused(db, wallet_service, change):
    wallet_service.change = change
    if change == {"address": ABSENT}:
        wallet_service.wallets = _Forgetful()
    options = register_init("ann")
    assert complete(options, Authenticator().create(options)).error == (400, 141)
    assert nothing_was_made()


class _Forgetful(dict):  # type: ignore[type-arg]
    """Wallets that never get an address."""

    def get(self, key: Any, default: Any = None) -> Any:
        response = super().get(key, default)
        return response and {name: value for name, value in response.items() if name != "address"}


def test_addresses_of_other_kinds_of_networks_are_kept_as_they_are(db, wallet_service):
    wallet_service.change = {"address": "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"}
    _, answer = register("ann")
    assert {wallet["address"] for wallet in answer["wallets"]} == {wallet_service.change["address"]}
    assert not Identity.objects.exists()


def test_one_address_for_several_networks_is_one_identity(client, wallet_service):
    wallet_service.change = {"address": "0x" + "ab" * 20}
    _, answer = register("ann")
    assert len(answer["wallets"]) == 2
    assert Identity.objects.get().user == answer["user"]["id"]
    options = register_init("bob")
    assert complete(options, Authenticator().create(options)).error == (400, 141)
    assert UserRow.objects.count() == 1


def test_a_service_that_is_away_is_no_500(db, settings, monkeypatch):
    monkeypatch.setattr(http_api, "_PAUSE", 0.001)
    with running_wallet_service() as gone:
        use(settings, **gone.settings())
    options = register_init("ann")
    assert complete(options, Authenticator().create(options)).error == (400, 141)
    assert nothing_was_made()


# -- One that wants signatures, and has users of its own ------------------------------------------


def paths(service: WalletService) -> list[str]:
    return [path for _, path, _, _ in service.requests]


def test_requests_are_signed_where_the_service_wants_it(db, settings, wallet_service):
    use(settings, **wallet_service.wants_signatures(), WALLET_NETWORKS=("BaseSepolia",))
    wallet_service.faults = [None, None, 503]  # of the request itself: it is signed again
    _, answer = register("ann")
    assert len(answer["wallets"]) == 1
    signed = ["/auth/action/init", "/auth/action", "/wallets"]
    assert paths(wallet_service) == signed * 2
    tokens = {headers.get("x-dfns-useraction") for _, _, headers, _ in wallet_service.requests}
    assert len(tokens) == 3  # none, and one for each


def test_a_signature_of_another_key_makes_nothing(db, settings, wallet_service):
    use(settings, **wallet_service.wants_signatures())
    wallet_service.wants_signatures()
    options = register_init("ann")
    assert complete(options, Authenticator().create(options)).error == (400, 141)
    assert nothing_was_made()


@pytest.fixture
def delegated(settings: Any, wallet_service: WalletService) -> WalletService:
    use(settings, **wallet_service.wants_signatures(), WALLET_API_DELEGATED=True)
    return wallet_service


def test_users_are_registered_there_with_the_same_passkey(client, delegated):
    authenticator, answer = register("ann@example.org")
    assert [wallet["network"] for wallet in answer["wallets"]] == ["BaseSepolia", "OptimismSepolia"]
    assert "/wallets" not in paths(delegated)
    assert paths(delegated)[-1] == "/auth/registration/enduser"
    assert answer["token"].startswith("r:")
    assert log_in(authenticator).status == 200
    identity = client.results("Identity", where={"walletAddress": answer["wallets"][0]["address"]})
    assert identity[0]["user"]["objectId"] == answer["user"]["id"]


def test_the_services_token_is_shown_to_no_caller(db, delegated):
    options = register_init("ann")
    (token,) = delegated.invited
    assert token not in str(options)
    row = PasskeyChallenge.objects.get()
    assert row.invitation is not None
    assert token not in row.invitation


@pytest.mark.parametrize(
    "change",
    [{"challenge": ABSENT}, {"challenge": "AAAA"}, {"challenge": 5}, {"challenge": "%"},
     {"temporaryAuthenticationToken": ""}],
    ids=str,
)  # fmt: skip
def test_without_an_invitation_no_registration_begins(db, delegated, change):
    delegated.change = change
    assert ANYBODY.post("/functions/registerInit", {"username": "ann"}).error == (400, 141)
    assert not PasskeyChallenge.objects.exists()


def test_if_the_service_lacks_a_wallet_nothing_is_made(db, delegated):
    delegated.most_wallets = 1
    options = register_init("ann")
    assert complete(options, Authenticator().create(options)).error == (400, 141)
    assert nothing_was_made()


def test_who_adds_a_passkey_gets_no_wallets_there(client, delegated):
    ann = sign_up("ann")
    options = register_init("ann", ann)
    answer = result(complete(options, Authenticator().create(options), ann))
    assert answer["wallets"] == []
    assert delegated.requests == []


# -- Settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"WALLET_CUSTODIAN": "http"}, "WALLET_CUSTODIAN=http needs"),
        ({"WALLET_CUSTODIAN": "bank"}, "WALLET_CUSTODIAN must be one of"),
        ({"WALLET_NETWORKS": "a b"}, "WALLET_NETWORKS must list"),
        ({"WALLET_API_KEY": "SECRET"}, "WALLET_API_KEY must be a private key"),
        ({"WALLET_API_KEY_ID": "x"}, "belong together"),
        ({"WALLET_API_URL": "ftp://SECRET"}, "WALLET_API_URL must be a URL"),
        ({"WEBAUTHN_RP_ID": "https://example.org"}, "WEBAUTHN_RP_ID must be a domain"),
        ({"WEBAUTHN_ORIGINS": "https://example.org/"}, "WEBAUTHN_ORIGINS must list origins"),
        ({"WEBAUTHN_ORIGINS": "example.org"}, "WEBAUTHN_ORIGINS must list origins"),
        ({"WEBAUTHN_USER_VERIFICATION": "maybe"}, "WEBAUTHN_USER_VERIFICATION must be one of"),
        ({"WEBAUTHN_ATTESTATION": "maybe"}, "WEBAUTHN_ATTESTATION must be one of"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_settings_that_can_not_work_end_the_start(monkeypatch, environment, complaint):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=complaint) as caught:
        wallets.service_values()
    assert "SECRET" not in str(caught.value)


def test_settings_that_can(monkeypatch):
    for name, value in {
        "WALLET_CUSTODIAN": "HTTP",
        "WALLET_NETWORKS": "BaseSepolia, OptimismSepolia,BaseSepolia",
        "WALLET_API_URL": "https://api.example/",
        "WALLET_API_TOKEN": "t",
        "WALLET_API_DELEGATED": "on",
        "WEBAUTHN_RP_ID": "Example.org",
        "WEBAUTHN_ORIGINS": "https://example.org,http://localhost:3000,android:apk-key-hash:x",
    }.items():
        monkeypatch.setenv(name, value)
    values = wallets.service_values()
    assert values.keys() <= DEFAULTS.keys()
    assert values["WALLET_NETWORKS"] == ("BaseSepolia", "OptimismSepolia")
    assert values["WALLET_API_URL"] == "https://api.example"
    assert values["WALLET_API_DELEGATED"] is True
    assert values["WEBAUTHN_RP_ID"] == "example.org"
    assert len(values["WEBAUTHN_ORIGINS"]) == 3

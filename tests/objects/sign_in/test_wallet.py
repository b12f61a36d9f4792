"""Sign-In with Ethereum: challenges, messages and signatures of keys."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured

from backend.kernel.errors import IncorrectType, ObjectNotFound, ServiceUnavailable
from objects.users import adapters
from objects.users.adapters import siwe
from tests.objects.sign_in.accounts import ALICE, BOB, challenge, refused, sign, verify
from tests.threads import at_once

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@pytest.fixture(autouse=True)
def wallets(sign_in_by):
    sign_in_by(wallet=True)


# -- The challenge ------------------------------------------------------------------------------


def test_the_message_says_where_to_and_for_how_long():
    message = siwe.read(challenge(chain_id="8453")["message"])
    assert (message.domain, message.uri) == ("localhost:8000", "http://localhost:8000")
    assert (message.address, message.chain_id) == (ALICE.address, 8453)
    assert len(message.nonce) == 32
    assert message.expires_at - message.issued_at == timedelta(minutes=5)
    assert message.statement == "Sign in."


def test_an_address_without_checksum_gets_one():
    for value in (ALICE.address.lower(), "0x" + ALICE.address[2:].upper()):
        assert siwe.read(challenge(value)["message"]).address == ALICE.address


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"address": None},
        {"address": 7},
        {"address": "alice.eth"},
        {"address": ALICE.address[:-1]},
        {"address": ALICE.address.swapcase().replace("0X", "0x")},
        {"address": ALICE.address + "\n"},
        {"address": ALICE.address, "chainId": 0},
        {"address": ALICE.address, "chainId": -1},
        {"address": ALICE.address, "chainId": True},
        {"address": ALICE.address, "chainId": 1.5},
        {"address": ALICE.address, "chainId": "one"},
        {"address": ALICE.address, "chainId": 10**30},
        {"address": ALICE.address, "chainId": "1" * 5000},
        {"address": ALICE.address, "domain": "evil.example.org"},
        {"address": ALICE.address, "domain": ["localhost:8000"]},
    ],
    ids=str,
)
def test_a_challenge_for_no_one_is_refused(data):
    with pytest.raises(IncorrectType, match=r"challengeData\.wallet\."):
        adapters.challenge("wallet", data)


def test_other_providers_have_no_challenge(sign_in_by, issuer):
    sign_in_by(google={"clientIds": ["a"], "issuer": issuer.url})
    assert adapters.challenge("google", {}) is None


def test_without_redis_wallets_wait(settings):
    text = challenge()["message"]
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    for action in (challenge, lambda: verify(text)):
        with pytest.raises(ServiceUnavailable) as caught:
            action()
        assert caught.value.status == 503


# -- Keys ---------------------------------------------------------------------------------------


def test_a_signed_challenge_proves_the_address():
    identity = verify(challenge()["message"])
    assert identity.id == ALICE.address
    assert identity.data == {"id": ALICE.address, "address": ALICE.address, "chainId": 1}


def test_the_address_may_be_sent_with_it():
    assert verify(challenge()["message"], id=ALICE.address.lower()).id == ALICE.address


def test_another_address_with_it_is_refused():
    assert refused(challenge()["message"], id=BOB.address)


def test_a_signature_by_another_key_is_refused():
    text = challenge()["message"]
    assert refused(text, sign(text, BOB))


def test_a_message_counts_once():
    text = challenge()["message"]
    verify(text)
    assert refused(text)


def test_a_message_counts_once_whether_right_or_wrong():
    text = challenge()["message"]
    assert refused(text, sign(text, BOB))
    assert refused(text)


def test_of_many_at_once_one_signs_in():
    text = challenge()["message"]
    signature = sign(text)

    def attempt():
        try:
            return verify(text, signature).id
        except ObjectNotFound:
            return None

    outcomes = at_once([attempt] * 12)
    assert sorted(filter(None, outcomes)) == [ALICE.address]


def test_a_nonce_that_was_never_given_is_refused():
    text = challenge()["message"]
    nonce = siwe.read(text).nonce
    assert refused(text.replace(nonce, nonce[::-1]))
    assert verify(text).id == ALICE.address, "and does no harm to the one that was"


def test_a_nonce_counts_for_its_account_and_chain_only():
    text = challenge(BOB.address)["message"].replace(BOB.address, ALICE.address)
    assert refused(text)
    assert refused(challenge(chain_id=1)["message"].replace("Chain ID: 1", "Chain ID: 10"))


def test_a_nonce_is_forgotten_after_five_minutes():
    text = challenge()["message"]
    signature = sign(text)
    with time_machine.travel(time.time() + 301, tick=False):
        assert refused(text, signature)


@pytest.mark.parametrize("malleable", ["twin", "v is 29", "r is 0", "s is 0", "r too large"])
def test_a_signature_has_one_form(malleable):
    text = challenge()["message"]
    raw = bytes.fromhex(sign(text)[2:])
    r, s, v = raw[:32], int.from_bytes(raw[32:64], "big"), raw[64]
    changed = {
        "twin": r + (ORDER - s).to_bytes(32, "big") + bytes([55 - v]),
        "v is 29": raw[:64] + bytes([29]),
        "r is 0": bytes(32) + raw[32:],
        "s is 0": r + bytes(32) + raw[64:],
        "r too large": b"\xff" * 32 + raw[32:],
    }[malleable]
    assert refused(text, "0x" + changed.hex())


def test_ledgers_write_v_as_0_or_1():
    text = challenge()["message"]
    raw = bytes.fromhex(sign(text)[2:])
    assert verify(text, "0x" + (raw[:64] + bytes([raw[64] - 27])).hex()).id == ALICE.address


@pytest.mark.parametrize(
    "signature", ["", "0x", "0x0", "x", 7, None, [], "0x" + "00" * 65, "0x" + "ff" * 65, "0x\u0660"]
)
def test_what_is_no_signature_is_refused(signature):
    data = {"message": challenge()["message"], "signature": signature}
    with pytest.raises(ObjectNotFound):
        adapters.verify("wallet", data)


@pytest.mark.parametrize("data", [{}, {"id": ALICE.address}, {"address": ALICE.address}, None])
def test_empty_or_partial_data_is_refused(data):
    with pytest.raises(ObjectNotFound):
        adapters.verify("wallet", data)


# -- The message --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("localhost:8000 wants", "evil.example.org wants"),
        ("localhost:8000 wants", "evil.example.org@localhost:8000 wants"),
        ("localhost:8000 wants", "https://localhost:8000 wants"),
        ("URI: http://localhost:8000", "URI: http://evil.example.org"),
        ("URI: http://localhost:8000", "URI: http://localhost:8000@evil.example.org"),
        ("URI: http://localhost:8000", "URI: javascript://localhost:8000"),
        ("URI: http://localhost:8000", "URI: http://[localhost:8000"),
        ("Version: 1", "Version: 2"),
        ("Chain ID: 1", "Chain ID: 01"),
        ("Chain ID: 1", "Chain ID: \u0661"),
        ("Nonce: ", "Nonce:  "),
        ("Issued At: ", "Not Before: "),
        (ALICE.address, ALICE.address.lower()),
        ("Sign in.", "Sign in.\n"),
        ("Sign in.", "Sign\u00a0in."),
        ("\n", "\r\n"),
        ("Sign in.", "Sign in.\n\nURI: http://localhost:8000"),
        ("wants you to sign in", "Wants you to sign in"),
    ],
)
def test_a_message_that_is_not_exactly_one_is_refused(old, new):
    assert refused(challenge()["message"].replace(old, new))


@pytest.mark.parametrize("extra", ["\n", " ", "\nRole: admin", "\nResources:\n- \n", "\x00"])
def test_nothing_may_follow(extra):
    assert refused(challenge()["message"] + extra)


@pytest.mark.parametrize("place", ["Issued At", "Expiration Time", "Not Before"])
@pytest.mark.parametrize(
    "moment",
    [
        "yesterday",
        "2024-02-30T00:00:00Z",
        "2024-01-01",
        "2024-01-01T25:00:00Z",
        "2024-01-01T00:00:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_odd_times_are_refused(place, moment):
    lines = [
        line for line in challenge()["message"].split("\n") if not line.startswith(f"{place}: ")
    ]
    if place == "Issued At":
        lines.insert(-1, f"{place}: {moment}")
    else:
        lines.append(f"{place}: {moment}")
    refusable = (place, moment[:4]) not in (("Expiration Time", "9999"), ("Not Before", "0001"))
    assert refused("\n".join(lines)) if refusable else verify("\n".join(lines))


def test_a_client_may_write_its_own_message():
    nonce = challenge()["nonce"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    text = (
        f"http://localhost:8000 wants you to sign in with your Ethereum account:\n{ALICE.address}\n"
        f"\n\nURI: http://localhost:8000/login?a=b\nVersion: 1\nChain ID: 1\nNonce: {nonce}\n"
        f"Issued At: {now}\nRequest ID: 7%20a\nResources:\n- https://example.org/terms\n- ipfs://x"
    )
    assert verify(text).id == ALICE.address


@pytest.mark.parametrize("days", [-1, 1])
def test_a_message_of_another_day_is_refused(days):
    text = challenge()["message"]
    issued = siwe.read(text).issued_at
    other = (issued + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert refused(text.replace(issued.strftime("%Y-%m-%dT%H:%M:%SZ"), other))


def test_apps_on_other_domains_can_be_named(sign_in_by):
    sign_in_by(wallet={"domains": ["app.example.org", "shop.example.org"]})
    for domain in ("app.example.org", "shop.example.org"):
        assert verify(challenge(domain=domain)["message"]).id == ALICE.address
    assert siwe.read(challenge()["message"]).domain == "app.example.org"
    assert refused(challenge()["message"].replace("app.example.org", "localhost:8000"))


@pytest.mark.parametrize(
    "options",
    [
        {"domains": []},
        {"domains": ["https://example.org"]},
        {"domains": ["a b"]},
        {"statement": "two\nlines"},
        {"rpcUrls": ["https://example.org"]},
        {"rpcUrls": {"mainnet": "https://example.org"}},
        {"rpcUrls": {"1": "http://example.org"}},
        {"rpcUrls": {"1": "file:///x"}},
    ],
    ids=str,
)
def test_options_that_can_not_work_are_reported(sign_in_by, options):
    sign_in_by(wallet=options)
    with pytest.raises(ImproperlyConfigured, match="AUTH_ADAPTERS: wallet"):
        adapters.providers()

"""Sign-In with Ethereum by wallets that are contracts, on a real chain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eth_abi import encode
from eth_utils import to_checksum_address

from backend.kernel.errors import ServiceUnavailable
from tests.objects.sign_in.accounts import ALICE, BOB, challenge, refused, sign, verify
from tests.objects.sign_in.issuer import Said

CONTRACTS = json.loads((Path(__file__).parent / "wallets.json").read_text())


@pytest.fixture
def on_chain(chain, sign_in_by):
    sign_in_by(wallet={"rpcUrls": {str(chain.chain_id): chain.url}})
    return chain


def deployed(chain, name, *arguments):
    bytecode = CONTRACTS[name] + encode(["address"] * len(arguments), arguments).hex()
    return to_checksum_address(chain.deploy(bytecode))


def ask(chain, address):
    return challenge(address, chain.chain_id)["message"]


def test_a_node_signs_as_we_understand_it(chain, on_chain):
    account = to_checksum_address(chain.rpc("eth_accounts")[0])
    text = ask(on_chain, account)
    signature = chain.rpc("personal_sign", "0x" + text.encode().hex(), account)
    assert verify(text, signature).id == account


def test_a_contract_says_who_signs_for_it(on_chain):
    wallet = deployed(on_chain, "OwnedWallet", ALICE.address)
    text = ask(on_chain, wallet)
    identity = verify(text, sign(text), id=wallet)
    assert identity.id == f"eip155:31337:{wallet}"
    assert identity.data == {"id": identity.id, "address": wallet, "chainId": 31337}
    assert refused(text, sign(text)), "and once"


def test_another_user_does_not_sign_for_a_contract(on_chain):
    wallet = deployed(on_chain, "OwnedWallet", ALICE.address)
    text = ask(on_chain, wallet)
    assert refused(text, sign(text, BOB))


def test_a_signature_for_another_message_does_not_count_for_a_contract(on_chain):
    wallet = deployed(on_chain, "OwnedWallet", ALICE.address)
    assert refused(ask(on_chain, wallet), sign(ask(on_chain, wallet)))


@pytest.mark.parametrize("name", ["Reverting", "Endless", "Repeating", "Careless"])
def test_a_contract_that_does_not_say_yes_proves_nothing(on_chain, name):
    text = ask(on_chain, deployed(on_chain, name))
    assert refused(text, sign(text))


@pytest.mark.parametrize("number", range(1, 10))
def test_no_one_is_a_contract_of_the_chain_itself(on_chain, number):
    text = ask(on_chain, "0x" + f"{number:040x}")
    assert refused(text, sign(text))


def test_an_address_without_a_contract_proves_nothing(on_chain):
    text = ask(on_chain, BOB.address)
    assert refused(text, sign(text))


def test_keys_sign_in_on_chains_with_and_without_a_node(on_chain):
    assert verify(ask(on_chain, ALICE.address)).id == ALICE.address
    assert verify(challenge(chain_id=10)["message"]).id == ALICE.address


def test_a_contract_of_a_chain_without_a_node_is_refused(on_chain):
    wallet = deployed(on_chain, "OwnedWallet", ALICE.address)
    text = challenge(wallet, 10)["message"]
    assert refused(text, sign(text))


@pytest.mark.parametrize(
    "message",
    [
        Said(500, {}),
        Said(302, {}, {"Location": "http://127.0.0.1:1/"}),
        Said(200, b"no json"),
        Said(200, {"error": {"code": -32005, "message": "limit exceeded"}}),
        Said(200, {"error": "odd"}),
    ],
    ids=lambda message: f"{message.status} {message.body}"[:30],
)
def test_a_node_in_trouble_is_no_answer(issuer, sign_in_by, message):
    sign_in_by(wallet={"rpcUrls": {"5": f"{issuer.url}/rpc"}})
    issuer.answers["/rpc"] = message
    text = challenge(BOB.address, 5)["message"]
    with pytest.raises(ServiceUnavailable, match="wallet can't be reached"):
        verify(text, sign(text))


@pytest.mark.parametrize("result", [None, 7, "0x", "0x1626ba7e", [], {}])
def test_a_node_that_answers_oddly_proves_nothing(issuer, sign_in_by, result):
    sign_in_by(wallet={"rpcUrls": {"5": f"{issuer.url}/rpc"}})
    issuer.answers["/rpc"] = Said(200, {"result": result})
    text = challenge(BOB.address, 5)["message"]
    assert refused(text, sign(text))

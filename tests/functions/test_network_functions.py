"""Networks and contracts as clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from chain.models import Provider
from tests.people import sign_up
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api

SEPOLIA = {
    "networkId": 84532,
    "name": "Base Sepolia",
    "symbol": "ETH",
    "rpcEndpoint": "https://sepolia.base.example",
    "wssEndpoint": "wss://sepolia.base.example",
    "code": "BASE_SEPOLIA",
    "explorer": "https://sepolia.basescan.example",
}
ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
OTHER = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
ABI = [{"type": "event", "name": "Transfer", "inputs": []}]


def call(name: str, api: Api | None = None, **params: Any) -> Any:
    reply = (api or Api(APPLICATION)).post(f"/functions/{name}", params)
    assert reply.status == 200, reply.json
    assert set(reply.json) == {"result"}
    return reply.json["result"]


def refusal(name: str, **params: Any) -> str:
    reply = Api(APPLICATION).post(f"/functions/{name}", params)
    assert reply.error == (400, 141), reply.json
    text: str = reply.json["error"]
    return text


def test_without_networks_there_is_nothing(db):
    assert call("loadAllBlockchains") == []
    assert call("loadSmartContractsForNetwork", networkId=1) == {}
    for name in ("loadProviderUrl", "loadProviderWebSocketUrl"):
        assert refusal(name, networkId=1) == "No blockchain found for networkId: 1"
        assert refusal(name, networkId="84532") == "No blockchain found for networkId: 84532"


def test_all_networks_are_listed_by_their_ids_with_what_is_known(master):
    master.make("Blockchain", **SEPOLIA)
    master.make("Blockchain", networkId=1337)
    bare = dict.fromkeys(("providerUrl", "name", "symbol", "code", "explorer"))
    assert call("loadAllBlockchains") == [
        {"networkId": 1337, **bare},
        {
            "networkId": 84532,
            "providerUrl": "https://sepolia.base.example",
            "name": "Base Sepolia",
            "symbol": "ETH",
            "code": "BASE_SEPOLIA",
            "explorer": "https://sepolia.basescan.example",
        },
    ]


@pytest.mark.parametrize("network_id", [84532, "84532", 84532.0])
def test_a_networks_endpoints(master, network_id):
    master.make("Blockchain", **SEPOLIA)
    assert call("loadProviderUrl", networkId=network_id) == SEPOLIA["rpcEndpoint"]
    assert call("loadProviderWebSocketUrl", networkId=network_id) == SEPOLIA["wssEndpoint"]


def test_endpoints_that_a_network_lacks(master):
    master.make("Blockchain", networkId=5)
    assert call("loadProviderWebSocketUrl", networkId=5) is None
    assert "no provider URL" in refusal("loadProviderUrl", networkId=5)


WRONG = (
    *(None, "", "x", "0x1", 0, -1, 1.5, 2**60, True, [1], {"$gt": 0}, "1 OR 1=1", "01", 1e300),
)


@pytest.mark.parametrize(
    "name", ["loadProviderUrl", "loadProviderWebSocketUrl", "loadSmartContractsForNetwork"]
)
def test_parameters_come_first_and_are_named(db, name):
    for params in ({}, *({"networkId": item} for item in WRONG)):
        for headers in (APPLICATION, READ_ONLY):
            reply = Api(headers).post(f"/functions/{name}", params)
            assert reply.error == (400, 141), params
            assert "networkId" in reply.json["error"], params


def test_the_services_own_endpoints_are_shown_to_no_caller(master):
    master.make("Blockchain", networkId=5, name="Own")
    Provider.objects.create(network_id=5, name="a", url="https://a.example/SECRET")
    for api in (Api(APPLICATION), Api(CLIENT), master):
        assert "SECRET" not in str(call("loadAllBlockchains", api))
        reply = api.post("/functions/loadProviderUrl", {"networkId": 5})
        assert reply.error == (400, 141)
        assert "SECRET" not in str(reply.json)


def contract(master: Api, name: str, address: str = ADDRESS, **more: Any) -> str:
    fields = {"name": name, "address": address, "networkId": 84532, "abi": ABI}
    return master.make("SmartContract", **{**fields, **more})


def test_contracts_of_a_network_by_their_names(master):
    contract(master, "Diamond", ADDRESS.lower(), kind="diamond", startBlock=5)
    contract(master, "Token", OTHER, abi=[])
    contract(master, "Elsewhere", networkId=1)
    for network_id in (84532, "84532"):
        assert call("loadSmartContractsForNetwork", networkId=network_id) == {
            "Diamond": {"name": "Diamond", "address": ADDRESS, "abi": ABI, "networkId": 84532},
            "Token": {"name": "Token", "address": OTHER, "abi": [], "networkId": 84532},
        }


def test_of_contracts_with_one_name_the_last_one_counts(master):
    contract(master, "Token", ADDRESS)
    contract(master, "Token", OTHER)
    assert call("loadSmartContractsForNetwork", networkId=84532)["Token"]["address"] == OTHER


def test_more_contracts_than_one_page(master, monkeypatch):
    from functions.library import blockchains

    monkeypatch.setattr(blockchains, "_PAGE", 2)
    for number in range(5):
        contract(master, f"Token{number}", f"0x{number + 1:040x}")
    response = call("loadSmartContractsForNetwork", networkId=84532)
    assert sorted(response) == [f"Token{number}" for number in range(5)]


def test_what_a_caller_may_not_read_they_are_not_told(client, master):
    ann = sign_up("ann")
    mine = {"ACL": {ann.user_id: {"read": True}}}
    master.make("Blockchain", **{**SEPOLIA, **mine})
    contract(master, "Token", **mine)
    assert call("loadAllBlockchains") == []
    assert call("loadSmartContractsForNetwork", networkId=84532) == {}
    assert "No blockchain found" in refusal("loadProviderUrl", networkId=84532)
    for api in (ann, Api(READ_ONLY), master):
        assert len(call("loadAllBlockchains", api)) == 1
        assert list(call("loadSmartContractsForNetwork", api, networkId=84532)) == ["Token"]


@pytest.mark.parametrize("params", [{}, {"authToken": ""}, {"authToken": 1}, {"authToken": None}])
def test_wallets_are_requested_by_a_token(db, params):
    assert "authToken" in refusal("listWallets", **params)


@pytest.mark.parametrize("token", ["x", "r:" + "0" * 32, "r:" + "0" * 33, "ä" * 10_000, "\u0000"])
def test_tokens_that_are_none_have_no_wallets(db, token):
    for headers in (APPLICATION, MASTER):
        reply = Api(headers).post("/functions/listWallets", {"authToken": token})
        assert reply.error == (400, 209)


def test_who_has_no_wallets_gets_an_empty_list(client):
    ann = sign_up("ann")
    assert call("listWallets", authToken=ann.token) == {"wallets": [], "items": []}

"""The chain's records are classes that everybody may read, and only the master key writes."""

from __future__ import annotations

import pytest

from chain.models import ContractEvent
from tests.rest import Api

pytestmark = pytest.mark.django_db

CLASSES = {
    "Blockchain": {"networkId": 5},
    "SmartContract": {"name": "Gem", "address": "0x" + "ab" * 20, "networkId": 5},
    "ContractEvent": {"eventName": "Transfer"},
    "Identity": {"walletAddress": "0x" + "ab" * 20},
}


@pytest.mark.parametrize("class_name", CLASSES)
def test_a_client_may_read_and_not_write(client: Api, class_name: str) -> None:
    path = f"/classes/{class_name}"
    assert client.get(path).json == {"results": []}
    assert client.post(path, CLASSES[class_name]).error == (400, 119)


@pytest.mark.parametrize("class_name", CLASSES)
def test_the_master_key_writes_them(client: Api, master: Api, class_name: str) -> None:
    path = f"/classes/{class_name}"
    made = master.post(path, CLASSES[class_name] | {"note": "own"}).json
    assert client.get(f"{path}/{made['objectId']}").json["note"] == "own"
    own = f"{path}/{made['objectId']}"
    assert client.put(own, {"note": "theirs"}).error == (400, 119)
    assert client.delete(own).error == (400, 119)
    assert master.put(own, {"note": "new"}).status == 200
    assert client.get(own).json["note"] == "new"
    assert master.delete(own).status == 200


def test_an_event_that_a_reorganisation_removed_is_not_returned(client: Api, master: Api) -> None:
    made = master.post("/classes/ContractEvent", {"eventName": "Transfer", "blockNumber": 5}).json
    path = f"/classes/ContractEvent/{made['objectId']}"
    assert client.get(path).json["blockNumber"] == 5
    ContractEvent.objects.update(canonical=False)
    assert client.get(path).error == (404, 101)
    assert client.get("/classes/ContractEvent").json == {"results": []}
    assert client.get("/classes/ContractEvent?count=1&limit=0").json["count"] == 0


def test_addresses_are_kept_with_their_checksum(master: Api) -> None:
    address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    made = master.post("/classes/Identity", {"walletAddress": address.lower()}).json
    kept = master.get(f"/classes/Identity/{made['objectId']}").json["walletAddress"]
    assert kept == address
    again = master.post("/classes/Identity", {"walletAddress": address})
    assert again.error == (400, 137)
    wrong = master.post("/classes/Identity", {"walletAddress": address.replace("5aA", "5Aa")})
    assert wrong.error == (400, 111)
    assert "walletAddress" in wrong.json["error"]


@pytest.mark.parametrize("field", ["rpcEndpoint", "wssEndpoint"])
def test_an_endpoint_is_an_address(client: Api, master: Api, field: str) -> None:
    scheme = "http" if field == "rpcEndpoint" else "ws"
    wrong = (
        *("node", "node.example/path", "ftp://node.example", "http+ws://node.example"),
        *(f"{scheme}://", f"{scheme}://[::1", f"{scheme}://node.example:port"),
        *(f"{scheme}://node\n.example", f"{scheme}://node.example/{'x' * 2000}"),
    )
    for address in wrong:
        answer = master.post("/classes/Blockchain", {"networkId": 5, field: address})
        assert answer.error == (400, 111), address
        assert field in answer.json["error"]
    right = f"{scheme}s://node.example:8545/path?key=1"
    made = master.make("Blockchain", networkId=5, **{field: right})
    assert client.get(f"/classes/Blockchain/{made}").json[field] == right
    for none in ("", None, {"__op": "Delete"}):
        assert master.put(f"/classes/Blockchain/{made}", {field: none}).status == 200


def test_an_index_can_be_declared_on_events(master: Api) -> None:
    change = {"className": "ContractEvent", "indexes": {"by_tx": {"transactionHash": 1}}}
    assert master.put("/schemas/ContractEvent", change).status == 200

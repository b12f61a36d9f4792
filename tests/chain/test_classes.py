"""The chain's records are classes that everybody may read, and only the master key writes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from chain.dispatch import networks
from chain.indexing.storage import cursors as position
from chain.models import Blockchain, ContractEvent
from tests.people import sign_up
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


def test_the_id_of_a_network_never_changes(master: Api) -> None:
    """Its position, events and providers go by it."""
    made = master.post("/classes/Blockchain", {"networkId": 5}).json
    path = f"/classes/Blockchain/{made['objectId']}"
    assert master.put(path, {"networkId": 6, "name": "Other"}).error == (400, 142)
    assert master.put(path, {"networkId": {"__op": "Delete"}}).status == 400
    for same in (5, "5"):
        assert master.put(path, {"networkId": same, "name": "Main"}).status == 200
    assert Blockchain.objects.get().network_id == 5


def test_addresses_are_kept_with_their_checksum(master: Api) -> None:
    address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    made = master.post("/classes/Identity", {"walletAddress": address.lower()}).json
    stored = master.get(f"/classes/Identity/{made['objectId']}").json["walletAddress"]
    assert stored == address
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


SETTINGS = {
    "active": True,
    "confirmations": 3,
    "pollInterval": 5000,
    "finalityDepth": 12,
    "verify": "all",
}
DEFAULTS = {"active": True, "confirmations": 0, "pollInterval": 2000, "verify": "sample"}


def settings_of(master: Api, object_id: str) -> dict[str, Any]:
    shown = master.get(f"/classes/Blockchain/{object_id}").json
    return {name: shown[name] for name in SETTINGS if name in shown}


def test_the_master_key_sets_how_a_network_is_synced(master: Api) -> None:
    made = master.make("Blockchain", networkId=5)
    own = f"/classes/Blockchain/{made}"
    assert settings_of(master, made) == DEFAULTS
    assert master.put(own, {"confirmations": 3, "pollInterval": 5000}).status == 200
    assert master.put(own, {"finalityDepth": 12.0, "verify": "all"}).status == 200
    assert settings_of(master, made) == SETTINGS
    position.make(5)
    at = position.read(5)
    assert at is not None
    assert (at.confirmations, at.finality_depth, at.verify) == (3, 12, "all")
    assert Blockchain.objects.get().poll_interval == 5000
    assert master.put(own, {"active": False}).status == 200
    assert networks() == []
    assert position.read(5) is None


def test_a_network_may_be_made_with_its_settings(master: Api) -> None:
    made = master.make("Blockchain", networkId=5, **SETTINGS | {"active": False})
    assert settings_of(master, made) == SETTINGS | {"active": False}
    row = Blockchain.objects.get()
    assert (row.active, row.confirmations, row.poll_interval, row.finality_depth, row.data) == (
        *(False, 3, 5000, 12),
        {},
    )


@pytest.mark.parametrize("nothing", [None, {"__op": "Delete"}])
def test_a_setting_that_is_removed_has_its_default_again(master: Api, nothing: Any) -> None:
    made = master.make("Blockchain", networkId=5, **SETTINGS | {"active": False})
    assert master.put(f"/classes/Blockchain/{made}", dict.fromkeys(SETTINGS, nothing)).status == 200
    assert settings_of(master, made) == DEFAULTS
    other = master.make("Blockchain", networkId=6, **dict.fromkeys(SETTINGS))
    assert settings_of(master, other) == DEFAULTS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("active", value) for value in (1, "true", {"__op": "Increment", "amount": 1})),
        *(("confirmations", value) for value in (-1, 1.5, "3", True, 2**31, 2**60, [3])),
        *(("pollInterval", value) for value in (0, -1, "2s", 2**31)),
        *(("verify", value) for value in ("", "none", "ALL", 5, ["all"], True)),
        *(("finalityDepth", value) for value in (-1, 2**31, {"blocks": 3})),
    ],
)
def test_a_setting_that_can_not_be_is_refused_by_name(master: Api, field: str, value: Any) -> None:
    made = master.make("Blockchain", networkId=5)
    refused = master.put(f"/classes/Blockchain/{made}", {field: value, "name": "new"})
    assert refused.error == (400, 111)
    assert field in refused.json["error"]
    assert master.post("/classes/Blockchain", {"networkId": 6, field: value}).error == (400, 111)
    assert settings_of(master, made) == DEFAULTS
    assert [row.name for row in Blockchain.objects.all()] == [None]


def test_clients_neither_see_nor_query_the_settings_of_a_network(client: Api, master: Api) -> None:
    made = master.make("Blockchain", networkId=5, **SETTINGS)
    user = sign_up("ann")
    open_to_all = {action: {"*": True} for action in ("find", "get", "count", "update")}
    for permissions in (None, {**open_to_all, "protectedFields": {"*": []}}):
        if permissions is not None:
            body = {"className": "Blockchain", "classLevelPermissions": permissions}
            assert master.put("/schemas/Blockchain", body).status == 200
        for caller in (client, user):
            shown = [
                caller.get(f"/classes/Blockchain/{made}").json,
                *caller.get("/classes/Blockchain").json["results"],
                *caller.get("/classes/Blockchain", keys=",".join(SETTINGS)).json["results"],
            ]
            assert len(shown) == 3
            for obj in shown:
                assert not obj.keys() & SETTINGS.keys()
            for name, value in SETTINGS.items():
                response = caller.get("/classes/Blockchain", where={name: value})
                assert response.error == (400, 119)
                assert caller.get("/classes/Blockchain", order=name).error == (400, 119)


def test_what_was_stored_for_settings_without_effect_is_gone_after_the_upgrade(
    client: Api, master: Api
) -> None:
    made = master.make("Blockchain", networkId=5, note="own")
    Blockchain.objects.update(data=dict.fromkeys(SETTINGS, "old") | {"note": "own"})
    with connection.cursor() as cursor:
        for migration in ("0003_network_settings", "0007_verification"):
            cursor.execute(import_module(f"chain.migrations.{migration}").CLEAR)
    assert settings_of(master, made) == DEFAULTS
    assert Blockchain.objects.get().data == {"note": "own"}
    assert client.get(f"/classes/Blockchain/{made}").json["note"] == "own"


def test_who_may_edit_a_network_may_not_change_how_it_is_synced(client: Api, master: Api) -> None:
    made = master.make("Blockchain", networkId=5)
    permissions = {action: {"*": True} for action in ("find", "get", "create", "update")}
    body = {"className": "Blockchain", "classLevelPermissions": permissions}
    assert master.put("/schemas/Blockchain", body).status == 200
    assert client.put(f"/classes/Blockchain/{made}", {"name": "new"}).status == 200
    for name, value in (SETTINGS | {"active": None}).items():
        refused = client.put(f"/classes/Blockchain/{made}", {name: value})
        assert refused.error == (400, 119)
        assert name in refused.json["error"]
        assert client.post("/classes/Blockchain", {"networkId": 6, name: value}).error == (400, 119)
    own = client.post("/classes/Blockchain", {"networkId": 7}).json["objectId"]
    assert settings_of(master, made) == settings_of(master, own) == DEFAULTS


def test_an_index_can_be_declared_on_events(master: Api) -> None:
    change = {"className": "ContractEvent", "indexes": {"by_tx": {"transactionHash": 1}}}
    assert master.put("/schemas/ContractEvent", change).status == 200

"""Contracts are registered by what they are, and their logs are read by what is registered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from hexbytes import HexBytes

from chain import rpc
from chain.core.blocks.events import EventRow
from chain.core.node import Log
from chain.indexing import contracts
from chain.indexing.contract_versions import contracts_changed
from chain.indexing.storage.events import store_events
from chain.models import ContractEvent, Cursor, SmartContract
from chain.rpc.web3_library import web3
from tests.chain.indexed_network import Network, listen, network
from tests.evm.artefacts import Contract, artefact, cut, put_diamond
from tests.evm.node import Node
from tests.rest import Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
GEM = {"name": "Gem", "address": ADDRESS, "networkId": 5}


@pytest.fixture
def world(node: Node) -> Iterator[Network]:
    with network(node) as results:
        node.automine(True)
        yield results


def logs_of(world: Network, contract: Contract) -> list[Log]:
    """What the contract has logged."""
    catalogue = contracts.catalogue(world.network_id).only([contract.address])
    return rpc.attempt(
        world.network_id, lambda node: node.logs(catalogue.wanted, 0, world.node.head)
    )


def read(world: Network, contract: Contract) -> list[EventRow]:
    return contracts.catalogue(world.network_id).read(logs_of(world, contract))


def decoded(world: Network, contract: Contract) -> list[tuple[str | None, Any]]:
    return [(row.event_name, json.loads(row.args)) for row in read(world, contract)]


def refreshed(world: Network, logs: list[Log] | None = None) -> bool:
    return rpc.attempt(
        world.network_id, lambda node: contracts.refresh(world.network_id, node, logs or [])
    )


# -- Registering ----------------------------------------------------------------------------------


def test_a_contract_needs_name_address_and_network(master: Api) -> None:
    for name in GEM:
        body = {key: value for key, value in GEM.items() if key != name}
        reply = master.post("/classes/SmartContract", body)
        assert reply.error == (400, 142)
        assert name in reply.json["error"]


@pytest.mark.parametrize(
    ("abi", "place"),
    [
        ("[]", "abi: "),
        ([1], "abi[0]"),
        ([{"type": "evnt"}], "abi[0].type"),
        ([{"type": "event", "name": "a b"}], "abi[0].name"),
        ([{"type": "event", "name": "A", "anonymous": 1}], "abi[0].anonymous"),
        ([{"type": "event", "name": "A", "inputs": {}}], "abi[0].inputs"),
        ([{"type": "event", "name": "A", "inputs": [{"type": "uint7"}]}], "abi[0].inputs[0].type"),
        ([{"type": "event", "name": "A", "inputs": [{"type": "tuple"}]}], "abi[0].inputs[0]"),
        (
            [{"type": "event", "name": "A", "inputs": [{"type": "uint8[4096][4096]"}]}],
            "abi[0].inputs[0].type",
        ),
        (
            [{"type": "event", "name": "A", "inputs": [{"type": "uint8", "indexed": True}] * 4}],
            "abi[0].inputs",
        ),
        (
            [{"type": "receive"}, {"type": "function", "name": "f", "outputs": [{"type": "x"}]}],
            "abi[1].outputs[0].type",
        ),
    ],
)
def test_what_is_wrong_with_an_abi_is_named_by_its_place(master: Api, abi: Any, place: str) -> None:
    reply = master.post("/classes/SmartContract", GEM | {"abi": abi})
    assert reply.error == (400, 111)
    assert place in reply.json["error"]
    assert not SmartContract.objects.exists()


@pytest.mark.parametrize("name", ["Gem", "Coin", "Diamond", "Zoo", "Proxy"])
def test_what_compilers_write_is_an_abi(master: Api, name: str) -> None:
    made = master.make("SmartContract", **GEM, abi=artefact(name).abi)
    assert master.get(f"/classes/SmartContract/{made}").json["abi"] == artefact(name).abi


def test_a_contract_stays_at_its_place(master: Api) -> None:
    own = f"/classes/SmartContract/{master.make('SmartContract', **GEM)}"
    assert (
        master.put(own, {"address": ADDRESS.lower(), "networkId": "5", "name": "Gems"}).status
        == 200
    )
    for change in ({"address": "0x" + "11" * 20}, {"networkId": 6}):
        assert master.put(own, change).error == (400, 142)
    for name in GEM:
        assert master.put(own, {name: {"__op": "Delete"}}).status == 400
    assert master.put(own, {"abi": {"__op": "Add", "objects": [1]}}).error == (400, 111)
    assert master.put(own, {"abi": {"__op": "Delete"}}).status == 200
    assert master.post("/classes/SmartContract", GEM).error == (400, 137)
    assert master.post("/classes/SmartContract", GEM | {"networkId": 6}).status == 201


def test_numbers_may_be_written_as_javascript_does(master: Api) -> None:
    fields = GEM | {"networkId": 5.0, "startBlock": 7.0}
    own = f"/classes/SmartContract/{master.make('SmartContract', **fields)}"
    assert [master.get(own).json[name] for name in ("networkId", "startBlock")] == [5, 7]
    assert master.put(own, {"startBlock": {"__op": "Delete"}}).status == 200
    for wrong in (7.5, -1, "7", 2**53, True):
        refused = master.put(own, {"startBlock": wrong})
        assert refused.error == (400, 111)
        assert "startBlock" in refused.json["error"]


def test_names_that_no_index_bears_are_refused(master: Api) -> None:
    long = "x" * 3000
    assert master.post("/classes/SmartContract", GEM | {"name": long}).error == (400, 111)
    for name in ("contractName", "eventName", "address"):
        assert master.post("/classes/ContractEvent", {name: long}).error == (400, 111)


def test_the_read_only_master_key_and_clients_register_nothing(client: Api, reader: Api) -> None:
    assert client.post("/classes/SmartContract", GEM).error == (400, 119)
    assert reader.post("/classes/SmartContract", GEM).error == (400, 119)


def test_every_change_gives_the_network_another_version(master: Api) -> None:
    made = master.make("SmartContract", **GEM)
    observed = [Cursor.objects.get(pk=5).contracts]
    for change in ({"note": "x"}, {"listening": False}, {"startBlock": 7}):
        master.put(f"/classes/SmartContract/{made}", change)
        observed.append(Cursor.objects.get(pk=5).contracts)
    master.delete(f"/classes/SmartContract/{made}")
    observed.append(Cursor.objects.get(pk=5).contracts)
    assert observed == sorted(set(observed))


# -- The catalogue --------------------------------------------------------------------------------


def test_only_what_is_listened_to_is_requested(master: Api) -> None:
    other = "0x" + "11" * 20
    assert contracts.catalogue(5).wanted.addresses == ()
    made = master.make("SmartContract", **GEM)
    master.make("SmartContract", name="Facet", address=other, networkId=5, kind="facet")
    master.make("SmartContract", name="Far", address=other, networkId=6)
    assert contracts.catalogue(5).wanted.addresses == (ADDRESS.lower(),)
    assert contracts.catalogue(6).only([other.upper()]).wanted.addresses == (other,)
    assert contracts.catalogue(6).only([ADDRESS]).wanted.addresses == ()
    master.put(f"/classes/SmartContract/{made}", {"listening": False})
    assert contracts.catalogue(5).wanted.addresses == ()


def test_the_catalogue_is_read_once(master: Api) -> None:
    master.make("SmartContract", **GEM)
    assert contracts.catalogue(5) is contracts.catalogue(5)


@pytest.mark.django_db(transaction=True)
def test_who_looks_whose_code_it_runs_makes_no_one_forget_what_logs_mean(master: Api) -> None:
    event = {"type": "event", "name": "Ping", "inputs": []}
    master.make("SmartContract", **GEM, abi=[event])
    over = threading.Event()

    def look() -> set[int]:
        while not over.is_set():
            SmartContract.objects.update(behind_looked_at=timezone.now())
        return set()

    def ask() -> set[int]:
        results = set()
        try:
            for _ in range(100):
                contracts_changed({"networkId": 5})
                [contract] = contracts.catalogue(5).contracts.values()
                results.add(len(contract.abis[0]))
        finally:
            over.set()
        return results

    assert at_once([look, ask]) == [set(), {1}]


def test_logs_are_counted_by_contract_within_their_transaction(world: Network) -> None:
    listen(world)
    coin = world.node.deployed("Coin")
    listen(world, coin, "Coin")
    world.gem.transact("spam", 3, gas=1_000_000)
    world.gem.transact("spam", 2, gas=1_000_000)
    parsed = read(world, world.gem)
    assert [row.ordinal for row in parsed][-5:] == [0, 1, 2, 0, 1]
    assert {row.contract_name for row in parsed} == {"Gem"}
    assert [row.log_index for row in parsed[-5:-2]] == [0, 1, 2]


def test_rows_that_no_rule_has_seen_do_not_stop_their_network(master: Api) -> None:
    for number, address in enumerate((ADDRESS, "nowhere", "0x1", ADDRESS + "00")):
        made = master.make("SmartContract", **GEM | {"address": f"0x{number + 1:040x}"})
        SmartContract.objects.filter(pk=made).update(
            address=address, name="x" * 3000, abi={"not": [{"an": "abi"}, None, 1]}
        )
    [contract] = contracts.catalogue(5).contracts.values()
    assert (contract.address, len(contract.name)) == (ADDRESS, 200)
    assert contract.vocabulary.read(["0x" + "ab" * 32], "0x")[0] is None


# -- What logs mean (F18) -------------------------------------------------------------------------


def test_a_minted_token_is_what_the_specification_says(world: Network) -> None:
    listen(world)
    to = world.node.accounts[1]
    world.gem.transact("mintWith", to, [("color", 1, "red"), ("weight", 2, "7")])
    minter = web3().Web3.to_checksum_address(world.node.accounts[0])
    (transfer_name, transfer), (minted_name, minted) = decoded(world, world.gem)
    assert (transfer_name, minted_name) == ("Transfer", "GemforceMinted")
    assert transfer == {
        "from": "0x" + "00" * 20,
        "to": web3().Web3.to_checksum_address(to),
        "tokenId": minted["tokenId"],
    }
    assert isinstance(minted["tokenId"], str)
    assert minted["minter"] in (minter, web3().Web3.to_checksum_address(to))
    assert minted["metadata"] == [
        {"key": "color", "attributeType": 1, "value": "red"},
        {"key": "weight", "attributeType": 2, "value": "7"},
    ]


def zoo_of(world: Network, *without: str) -> Contract:
    zoo = world.node.deployed("Zoo")
    listen(world, zoo.with_abi(artefact("Zoo").without(*without)), "Zoo")
    for method in (
        "hidden",
        "indexedThings",
        "animals",
        "extremes",
        "fixedBytes",
        "kinds",
        "overloads",
        "unnamed",
    ):
        zoo.transact(method)
    return zoo


def test_every_kind_of_event_is_read(world: Network) -> None:
    zoo = zoo_of(world)
    results = decoded(world, zoo)
    assert all(name is not None for name, _ in results)
    by_name: dict[str, list[Any]] = {}
    for name, args in results:
        by_name.setdefault(str(name), []).append(args)
    assert by_name["Hidden"] == [{"number": "7", "text": "no topic of its own"}]
    assert by_name["Extremes"] == [
        {"largest": str(2**256 - 1), "smallest": str(-(2**255)), "minusOne": "-1"}
    ]
    assert by_name["Widths"] == [
        {
            "unsigned48": 2**48 - 1,
            "unsigned56": str(2**56 - 1),
            "signed48": -(2**47),
            "signed56": str(-(2**55)),
            "small": 255,
        }
    ]
    assert by_name["Same"] == [{"number": "1"}, {"text": "one"}, {"number": "1", "text": "both"}]
    assert by_name["Empty"] == [{}]
    assert by_name["Kinds"] == [{"kind": 2, "kinds": [0, 1, 2]}]
    assert by_name["IndexedThings"][0]["text"] == web3().Web3.keccak(text="text").to_0x_hex()
    assert set(by_name["Unnamed"][0]) == {"0", "1", "2"}
    assert by_name["Animals"][0]["animals"][1] == {"name": "тюлень 🦭", "weight": str(2**256 - 1)}


def test_web3_reads_the_same(world: Network) -> None:
    zoo = zoo_of(world)
    reader = web3().Web3().eth.contract(abi=zoo.abi)
    events = {event.topic: event for event in reader.events if not event.abi.get("anonymous")}
    compared = 0
    for log, row in zip(logs_of(world, zoo), read(world, zoo), strict=True):
        event = events.get(log.topics[0]) if log.topics else None
        # Of overloads web3 takes one, it has no names for arguments without, and it takes the hash
        # of a tuple for the tuple.
        if event is None or row.event_name in ("Same", "Unnamed", "IndexedAnimal"):
            continue
        theirs = event().process_log(
            {
                "address": log.address,
                "topics": [HexBytes(topic) for topic in log.topics],
                "data": HexBytes(log.data),
                "blockNumber": log.height,
                "blockHash": HexBytes(log.block_hash),
                "transactionHash": HexBytes(log.transaction_hash),
                "transactionIndex": 0,
                "logIndex": log.index,
            }
        )
        assert shown(dict(theirs["args"]), json.loads(row.args)) == json.loads(row.args)
        compared += 1
    assert compared == 8


def shown(value: Any, like: Any) -> Any:
    """A value of web3 as JSON has it; of numbers ``like`` says whether they are texts."""
    if isinstance(like, dict):
        return {key: shown(value[key], item) for key, item in like.items()}
    if isinstance(like, list):
        return [shown(item, other) for item, other in zip(value, like, strict=True)]
    if isinstance(value, bytes):
        return "0x" + bytes(value).hex()
    return str(value) if isinstance(like, str) else value


def test_what_no_abi_explains_is_an_event_without_a_name(world: Network) -> None:
    zoo = zoo_of(world, "Unlisted")
    zoo.transact("unlisted", 5)
    zoo.transact("raw", [b"\x01" * 32, b"\x02" * 32], b"\x03")
    zoo.transact("raw", [], b"")
    *_, unlisted, raw, nothing = decoded(world, zoo)
    assert unlisted[0] is None
    assert unlisted[1]["data"] == f"0x{5:064x}"
    assert raw == (
        None,
        {
            "topics": ["0x" + "01" * 32, "0x" + "02" * 32],
            "data": "0x03",
            "undecoded": "unknown event",
        },
    )
    assert nothing == (None, {"topics": [], "data": "0x", "undecoded": "unknown event"})


def test_text_of_any_bytes_is_stored(world: Network, client: Api) -> None:
    zoo = zoo_of(world)
    zoo.transact("words", b"a\x00\xff\xed\xa0\x80\\u0000\n\t")
    rows = read(world, zoo)
    store_events(world.network_id, rows, after_seq=0)
    query = "/classes/ContractEvent?order=-logIndex&limit=1&where=" + json.dumps(
        {"eventName": "Words"}
    )
    [result] = client.get(query).json["results"]
    assert result["args"] == {"text": "a\ufffd\ufffd\ufffd\ufffd\ufffd\\u0000\n\t"}
    assert result["networkId"] == str(world.network_id)


def test_a_token_of_another_kind_than_registered_stays_raw(world: Network) -> None:
    coin = world.node.deployed("Coin")
    listen(world, coin.with_abi(artefact("Gem").abi), "Coin")
    coin.transact("mint", world.node.accounts[1], 5)
    (name, args) = decoded(world, coin)[-1]
    assert name is None
    assert args["undecoded"] == "not what its ABI says"


# -- Proxies and diamonds -------------------------------------------------------------------------


def test_events_of_a_proxy_are_those_of_its_implementation(world: Network) -> None:
    first, second = world.node.deployed("BoxV1"), world.node.deployed("BoxV2")
    proxy = world.node.deployed("Proxy", first.address)
    listen(world, proxy, "Box")
    for contract, name in ((first, "BoxV1"), (second, "BoxV2")):
        made = listen(world, contract, name)
        SmartContract.objects.filter(pk=made.pk).update(listening=False)
    assert refreshed(world)
    assert not refreshed(world)
    world.node.mined(proxy.with_abi(first.abi).transact("store", 5))
    assert decoded(world, proxy)[-1] == ("Stored", {"value": "5"})
    world.node.mined(proxy.transact("upgradeTo", second.address))
    world.node.mined(proxy.with_abi(second.abi).transact("store", 6))
    name, args = decoded(world, proxy)[-1]
    assert name is None
    assert refreshed(world, logs_of(world, proxy))
    assert not refreshed(world, logs_of(world, proxy))
    name, args = decoded(world, proxy)[-1]
    assert (name, args["value"], args["note"]) == ("StoredBy", "6", "second version")
    # What was logged before is still read by the implementation of then.
    assert ("Stored", {"value": "5"}) in decoded(world, proxy)
    assert ("Upgraded", {"implementation": second.address}) in decoded(world, proxy)


def test_the_follower_learns_of_a_new_implementation_by_itself(world: Network) -> None:
    first, second = world.node.deployed("BoxV1"), world.node.deployed("BoxV2")
    proxy = world.node.deployed("Proxy", first.address)
    listen(world, proxy, "Box")
    listen(world, second, "BoxV2")
    world.follow()
    world.node.automine(False)
    proxy.transact("upgradeTo", second.address, gas=500_000)
    proxy.with_abi(second.abi).transact("store", 6, gas=500_000)
    world.node.mine()
    world.follow()
    names = ContractEvent.objects.filter(contract_name="Box").order_by("block_number", "log_index")
    assert [*names.values_list("event_name", flat=True)][-2:] == ["Upgraded", "StoredBy"]


def test_events_of_a_diamond_are_those_of_its_facets(world: Network) -> None:
    diamond = put_diamond(world.node, "BadgeFacet")
    listen(world, diamond.contract, "Diamond")
    for name, facet in diamond.facets.items():
        listen(world, facet, name)
    counter = world.node.deployed("CounterFacet")
    listen(world, counter, "CounterFacet")
    assert refreshed(world)
    diamond.as_("BadgeFacet").transact("award", world.node.accounts[1], 3, "well done")
    name, args = decoded(world, diamond.contract)[-1]
    assert (name, args["points"], args["reason"]) == ("Awarded", "3", "well done")
    diamond.as_("CutFacet").transact("diamondCut", [cut(counter)], "0x" + "00" * 20, b"")
    diamond.as_("CounterFacet").transact("count")
    assert decoded(world, diamond.contract)[-1][0] is None
    assert refreshed(world, logs_of(world, diamond.contract))
    *_, cutting, counted = decoded(world, diamond.contract)
    assert (cutting[0], counted[0]) == ("DiamondCut", "Counted")


def test_a_contract_that_runs_its_own_code_is_looked_at_once(world: Network) -> None:
    listen(world)
    assert not refreshed(world)
    before = world.proxy.requests
    assert not refreshed(world)
    assert world.proxy.requests == before

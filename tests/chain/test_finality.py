"""How final events are, computed when they are read."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from chain.indexing.head import indexer
from chain.indexing.storage.events import store_events
from chain.models import ContractEvent, Cursor
from tests.chain.indexed_network import listen, network
from tests.chain.test_storing import NETWORK, row
from tests.evm.node import Node
from tests.rest import Api

pytestmark = pytest.mark.django_db

BLOCKS = range(1, 11)


@pytest.fixture
def events(db: None) -> None:
    """Events in the blocks 1 to 10 of a network: 4 are final, 7 are safe, 9 are read."""
    store_events(NETWORK, [row(block) for block in BLOCKS], after_seq=0)
    Cursor.objects.create(network_id=NETWORK, number=9, head=12, safe=7, finalized=4)


def block_numbers(api: Api, **where: Any) -> list[int]:
    rows = api.results("ContractEvent", where=json.dumps(where), order="blockNumber")
    return [item["blockNumber"] for item in rows]


def of_blocks(api: Api) -> dict[int, str | None]:
    rows = api.results("ContractEvent", order="blockNumber")
    return {item["blockNumber"]: item.get("finality") for item in rows}


@pytest.mark.usefixtures("events")
def test_events_say_how_final_they_are(client: Api) -> None:
    assert of_blocks(client) == {
        **dict.fromkeys(range(1, 5), "final"),
        **dict.fromkeys(range(5, 8), "safe"),
        **dict.fromkeys(range(8, 11), "latest"),
    }
    [item] = ContractEvent.objects.filter(block_number=4)
    assert client.get(f"/classes/ContractEvent/{item.pk}").json["finality"] == "final"
    Cursor.objects.update(number=10, finalized=9, safe=10)
    assert of_blocks(client)[9] == "final"
    assert of_blocks(client)[10] == "safe"


@pytest.mark.usefixtures("events")
def test_events_are_found_counted_and_summed_up_by_it(client: Api, master: Api) -> None:
    assert block_numbers(client, finality="final") == [1, 2, 3, 4]
    assert block_numbers(client, finality={"$in": ["safe", "latest"]}) == [5, 6, 7, 8, 9, 10]
    assert block_numbers(client, finality={"$ne": "final"}, blockNumber={"$lt": 8}) == [5, 6, 7]
    assert block_numbers(client, finality={"$exists": False}) == []
    where = json.dumps({"finality": "safe"})
    assert client.get("/classes/ContractEvent", where=where, count=1, limit=0).json["count"] == 3
    [first] = client.results(
        "ContractEvent", order="finality,blockNumber", limit=1, keys="finality"
    )
    assert first["finality"] == "final"
    pipeline = json.dumps([{"$group": {"_id": "$finality", "count": {"$sum": 1}}}])
    groups = master.get("/aggregate/ContractEvent", pipeline=pipeline).json["results"]
    counts = {item["objectId"]: item["count"] for item in groups}
    assert counts == {"final": 4, "safe": 3, "latest": 3}


LEVELS = ("latest", "safe", "final")
HEIGHTS = [(9, 7, 4), (9, 4, 7), (9, None, 4), (9, 7, None), (9, None, None), (None, 7, 4)]
HEIGHTS += [(3, 7, 5), (0, 0, 0), (10, 10, 10)]


@pytest.mark.parametrize("heights", HEIGHTS)
@pytest.mark.usefixtures("events")
def test_each_way_to_search_by_it_agrees_with_what_is_shown(
    client: Api, master: Api, heights: tuple[int | None, int | None, int | None]
) -> None:
    """Alone, in alternatives, negated, counted, summed up and joined."""
    number, safe, finalized = heights
    Cursor.objects.update(number=number, safe=safe, finalized=finalized)
    store_events(5, [row(block) for block in (1, 6, 20)], after_seq=0)
    Cursor.objects.create(network_id=5, number=20, safe=19, finalized=2)
    for wrong in (None, "no number", "31337 ", "031337"):
        master.make("ContractEvent", networkId=wrong, blockNumber=5)
    master.make("ContractEvent", networkId=str(NETWORK))
    master.make("ContractEvent", networkId="5", blockNumber=-1)
    shown = {
        result["objectId"]: result.get("finality") for result in client.results("ContractEvent")
    }
    for size in range(4):
        for levels in combinations(LEVELS, size):
            chosen = {id_ for id_, level in shown.items() if level in levels}
            within = {"finality": {"$in": [*levels]}}
            for where in (
                within,
                {"$and": [within, {"objectId": {"$exists": True}}]},
                {"$or": [within, {"objectId": "none"}]},
                {"$nor": [{"finality": {"$nin": [*levels]}}]},
                *([{"finality": levels[0]}, {"finality": {"$eq": levels[0]}}] if size == 1 else []),
            ):
                text = json.dumps(where)
                object_ids = {
                    result["objectId"] for result in client.results("ContractEvent", where=text)
                }
                assert object_ids == chosen, where
                counted = client.get("/classes/ContractEvent", where=text, count=1, limit=0)
                assert counted.json["count"] == len(chosen), where
            pipeline = json.dumps([{"$match": within}, {"$group": {"_id": None, "n": {"$sum": 1}}}])
            groups = master.get("/aggregate/ContractEvent", pipeline=pipeline).json["results"]
            assert [result["n"] for result in groups] == [len(chosen)] * bool(chosen)
        missing = json.dumps({"finality": {"$in": [None, *LEVELS[:1]]}})
        object_ids = {
            result["objectId"] for result in client.results("ContractEvent", where=missing)
        }
        assert object_ids == {id_ for id_, level in shown.items() if level in (None, "latest")}


@pytest.mark.parametrize(
    "condition", ["finalized", 7, {"$in": ["final", "other"]}, {"$ne": "Final"}, {"$nin": [True]}]
)
@pytest.mark.usefixtures("events")
def test_what_finality_never_is_is_refused(client: Api, master: Api, condition: Any) -> None:
    """It would find nothing, or everything, and say nothing."""
    match = {"finality": condition}
    for where in (match, {"$or": [match, {"blockNumber": 1}]}, {"$nor": [match]}):
        reply = client.get("/classes/ContractEvent", where=json.dumps(where))
        assert reply.error == (400, 102)
        assert reply.json["error"] == "where.finality: expected latest, safe or final"
    pipeline = json.dumps([{"$match": match}])
    assert master.get("/aggregate/ContractEvent", pipeline=pipeline).status == 400


@pytest.mark.usefixtures("events")
def test_heights_above_what_is_read_make_nothing_final(client: Api) -> None:
    Cursor.objects.update(number=3, safe=100, finalized=100)
    assert block_numbers(client, finality="final") == [1, 2, 3]
    assert block_numbers(client, finality="latest") == [4, 5, 6, 7, 8, 9, 10]


@pytest.mark.usefixtures("events")
def test_unknown_heights_make_nothing_final(client: Api) -> None:
    Cursor.objects.update(safe=None, finalized=None)
    assert set(of_blocks(client).values()) == {"latest"}
    Cursor.objects.update(number=None)
    assert set(of_blocks(client).values()) == {None}
    Cursor.objects.all().delete()
    assert set(of_blocks(client).values()) == {None}


@pytest.mark.usefixtures("events")
def test_each_network_has_heights_of_its_own(client: Api) -> None:
    store_events(5, [row(1), row(2)], after_seq=0)
    Cursor.objects.create(network_id=5, number=2, safe=1, finalized=0)
    assert block_numbers(client, networkId="5", finality="final") == []
    assert block_numbers(client, networkId="5", finality="safe") == [1]
    assert block_numbers(client, finality="final") == [1, 2, 3, 4]


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("network", ["no number", "9" * 30, "", None, "31337 "])
def test_an_event_without_a_network_or_a_block_has_none(master: Api, network: str | None) -> None:
    made = master.make("ContractEvent", networkId=network, blockNumber=1)
    assert "finality" not in master.get(f"/classes/ContractEvent/{made}").json
    made = master.make("ContractEvent", networkId=str(NETWORK))
    assert "finality" not in master.get(f"/classes/ContractEvent/{made}").json


@pytest.mark.parametrize(
    "fields",
    [
        {"finality": "final"},
        {"finality": None},
        {"finality": {"__op": "Delete"}},
        {"finality": {"__op": "Increment", "amount": 1}},
        {"finality.x": 1},
    ],
)
@pytest.mark.parametrize("class_name", ["ContractEvent", "Blockchain"])
def test_no_one_sets_it(master: Api, client: Api, class_name: str, fields: dict[str, Any]) -> None:
    made = master.make(class_name, networkId=5 if class_name == "Blockchain" else "5")
    path = f"/classes/{class_name}"
    assert master.put(f"{path}/{made}", fields).error == (400, 105)
    assert "finality" in master.put(f"{path}/{made}", fields).json["error"]
    assert master.post(path, {"networkId": 6} | fields).error[0] == 400
    assert client.put(f"{path}/{made}", fields).error == (400, 119)
    requests = [{"method": "PUT", "path": f"/api{path}/{made}", "body": fields}]
    [answer] = master.post("/batch", {"requests": requests}).json
    assert answer["error"]["code"] == 105
    assert master.put(f"{path}/{made}", {"note": "own"}).status == 200
    assert master.put(f"{path}/{made}", {"note": {"__op": "Delete"}, "n.a": 1}).status == 200
    assert "finality" not in master.get(f"{path}/{made}").json


@pytest.mark.parametrize("kind", [1, -1, "text"])
def test_no_index_is_made_on_it(master: Api, kind: Any) -> None:
    change = {"className": "ContractEvent", "indexes": {"wrong": {"finality": kind}}}
    refused = master.put("/schemas/ContractEvent", change)
    assert refused.error == (400, 255)
    assert "indexes.wrong.finality" in refused.json["error"]
    assert "wrong" not in master.get("/schemas/ContractEvent").json.get("indexes", {})


def test_the_description_of_the_interface_offers_it_for_reading_alone(master: Api) -> None:
    schemas = master.get("/openapi.json").json["components"]["schemas"]
    named = {name for name, item in schemas.items() if "finality" in item.get("properties", {})}
    assert {"ContractEvent", "Blockchain"} <= named
    assert not {item for item in named if item.startswith(("ContractEvent", "Blockchain"))} - {
        "ContractEvent",
        "Blockchain",
    }


@pytest.mark.usefixtures("events")
def test_networks_say_which_heights_are_safe_and_final(client: Api, master: Api) -> None:
    made = master.make("Blockchain", networkId=NETWORK)
    other = master.make("Blockchain", networkId=5)
    path = "/classes/Blockchain"
    heights = {"head": 12, "readUpTo": 9, "safe": 7, "final": 4}
    assert client.get(f"{path}/{made}").json["finality"] == heights
    assert "finality" not in client.get(f"{path}/{other}").json
    assert [result["objectId"] for result in client.results("Blockchain", order="createdAt")] == [
        made,
        other,
    ]
    where = json.dumps({"finality.final": {"$gte": 4}})
    assert [result["objectId"] for result in client.results("Blockchain", where=where)] == [made]
    Cursor.objects.update(safe=100, finalized=None, head=None)
    assert client.get(f"{path}/{made}").json["finality"] == {"readUpTo": 9, "safe": 9}
    Cursor.objects.update(number=None)
    assert "finality" not in client.get(f"{path}/{made}").json


@pytest.mark.django_db(transaction=True)
def test_events_become_final_as_their_network_grows(node: Node, client: Api) -> None:
    with network(node, finality_depth=4) as world:
        listen(world)
        world.follow()
        world.mint()
        block = node.head

        def finality() -> str:
            world.follow()
            [event] = client.results("ContractEvent", where=json.dumps({"blockNumber": block}))
            shown: str = event["finality"]
            return shown

        assert finality() == "latest"
        node.mine(2)
        indexer.forget()
        assert finality() == "safe"
        node.mine(2)
        indexer.forget()
        assert finality() == "final"
        [shown] = client.results("Blockchain")
        assert shown["finality"] == {
            "head": node.head,
            "readUpTo": node.head,
            "safe": node.head - 2,
            "final": node.head - 4,
        }

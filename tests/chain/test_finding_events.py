"""What clients usually ask of events is answered from an index, however much else is stored."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection

from chain.core.blocks.events import EventRow
from chain.indexing.storage.events import remove_events, store_events
from chain.models import Cursor
from tests.rest import Api

pytestmark = pytest.mark.django_db

CONTRACTS = 5
NAMES = ("Transfer", "Transfer", "Approval", "GemforceMinted")
ROWS, BATCH, PER_BLOCK = 6000, 300, 20


def address(number: int) -> str:
    return f"0x{number:040x}"


def hash_of(number: int) -> str:
    return f"0x{number * 7919:064x}"


@pytest.fixture
def stored() -> None:
    rows = [
        EventRow(
            f"Gem{number % CONTRACTS}",
            NAMES[number % 4] if number % 500 else None,
            address(number % CONTRACTS),
            hash_of(number // 2),
            1000 + number // PER_BLOCK,
            hash_of(10**6 + number // PER_BLOCK),
            number % PER_BLOCK,
            0,
            number % 2,
            json.dumps({"tokenId": str(number)}),
        )
        for number in range(ROWS)
    ]
    for start in range(0, ROWS, BATCH):
        store_events(5, rows[start : start + BATCH], after_seq=None)
    store_events(6, rows[:BATCH], after_seq=None)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chain_contract_event")


def scans() -> int:
    """How often the whole table was read in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'chain_contract_event'"
        )
        return int(cursor.fetchone()[0])


QUERIES: dict[str, tuple[Any, str | None]] = {
    "nothing": ({}, None),
    "the newest": ({}, "-blockNumber"),
    "the newest stored": ({}, "-createdAt"),
    "by time of storage": ({}, "-timestamp"),
    "of a network": ({"networkId": "5"}, "-blockNumber"),
    "of another network": ({"networkId": "6"}, "-blockNumber"),
    "of a contract": ({"contractName": "Gem1"}, "-blockNumber"),
    "of a contract by name": ({"contractName": "Gem1", "eventName": "Approval"}, "-blockNumber"),
    "of an address": ({"address": address(2)}, "-blockNumber"),
    "of a kind": ({"eventName": "GemforceMinted"}, "-blockNumber"),
    "of no kind": ({"eventName": "Burned"}, None),
    "undecoded": ({"eventName": {"$exists": False}}, "-blockNumber"),
    "of a transaction": ({"transactionHash": hash_of(77)}, "logIndex"),
    "of transactions": ({"transactionHash": {"$in": [hash_of(7), hash_of(8)]}}, None),
    "of a block": ({"networkId": "5", "blockNumber": 1100}, "logIndex"),
    "of blocks": (
        {"networkId": "5", "blockNumber": {"$gte": 1100, "$lt": 1110}},
        "blockNumber,logIndex",
    ),
    "since a block, in order": (
        {"networkId": "5", "blockNumber": {"$gt": 1200}},
        "blockNumber,logIndex",
    ),
}


@pytest.mark.usefixtures("stored")
def test_no_usual_question_reads_the_whole_table(client: Api) -> None:
    for request, (where, order) in QUERIES.items():
        query = {"where": json.dumps(where), "limit": "50"} | ({"order": order} if order else {})
        before = scans()
        reply = client.get(f"/classes/ContractEvent?{urlencode(query)}")
        assert reply.status == 200, reply.json
        assert scans() == before, request
    before = scans()
    client.get(f"/classes/ContractEvent?{urlencode({'where': json.dumps({'args.x': 1})})}")
    assert scans() > before, "the database doesn't count"


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("more", [{}, {"networkId": "5"}, {"contractName": "Gem1"}])
def test_what_is_not_final_is_found_without_reading_the_whole_table(
    client: Api, more: dict[str, str]
) -> None:
    top = 1000 + ROWS // PER_BLOCK - 1
    for network_id in (5, 6):
        Cursor.objects.create(network_id=network_id, number=top, safe=top - 2, finalized=top - 4)
    with connection.cursor() as cursor:
        # A table this small is read as a whole at times, by what PostgreSQL knows of its pages.
        cursor.execute("ANALYZE chain_cursor")
        cursor.execute("SET LOCAL enable_seqscan = off")
    for expected, blocks in (
        ("latest", 2),
        ("safe", 2),
        ({"$in": ["safe", "latest"]}, 4),
    ):
        where = json.dumps({"finality": expected, **more})
        share = CONTRACTS if "contractName" in more else 1
        before, rows_before = scans(), rows_read()
        for query in (
            {"count": 1, "limit": 0},
            {"order": "-blockNumber", "limit": 50, "count": 1},
        ):
            reply = client.get(f"/classes/ContractEvent?{urlencode({'where': where, **query})}")
            assert reply.json["count"] == blocks * PER_BLOCK // share
        assert scans() == before, expected
        assert rows_read() - rows_before < ROWS / CONTRACTS, expected


def rows_read() -> int:
    """How many rows were read by indexes in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE relname = 'chain_contract_event'"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.usefixtures("stored")
def test_events_are_found_counted_and_grouped(client: Api, master: Api) -> None:
    remove_events(5, 1000 + ROWS // PER_BLOCK - 2, after_seq=0)
    left = ROWS - PER_BLOCK
    path = "/classes/ContractEvent?"
    of_five = json.dumps({"networkId": "5"})
    assert client.get(path + urlencode({"where": of_five, "count": 1, "limit": 0})).json == {
        "results": [],
        "count": left,
    }
    newest = client.get(path + urlencode({"where": of_five, "order": "-blockNumber,-logIndex"}))
    places = [(result["blockNumber"], result["logIndex"]) for result in newest.json["results"]]
    assert places == sorted(places, reverse=True)
    assert places[0] == (1000 + ROWS // PER_BLOCK - 2, PER_BLOCK - 1)
    [result] = client.get(
        path + urlencode({"where": json.dumps({"args.tokenId": "4321", "networkId": "5"})})
    ).json["results"]
    assert result["args"] == {"tokenId": "4321"}
    pipeline = [
        {"$match": {"networkId": "5"}},
        {"$group": {"_id": "$contractName", "count": {"$sum": 1}}},
    ]
    groups = master.get(
        f"/aggregate/ContractEvent?{urlencode({'pipeline': json.dumps(pipeline)})}"
    ).json["results"]
    assert {result["objectId"]: result["count"] for result in groups} == {
        f"Gem{number}": left // CONTRACTS for number in range(CONTRACTS)
    }


@pytest.mark.usefixtures("stored")
def test_events_are_included_through_pointers(client: Api, master: Api) -> None:
    [event] = client.get("/classes/ContractEvent?limit=1").json["results"]
    pointer = {"__type": "Pointer", "className": "ContractEvent", "objectId": event["objectId"]}
    master.post("/classes/Receipt", {"event": pointer})
    [receipt] = master.get("/classes/Receipt?include=event").json["results"]
    assert receipt["event"]["args"] == event["args"]

"""Events are stored exactly once, and sent to subscribers in the order of the chain."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from msgspec.structs import replace

from chain.core.blocks.events import EventRow
from chain.indexing.storage.events import make_ready, remove_events, store_events, store_ready
from chain.models import ContractEvent, OutboxEntry
from tests.rest import Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db

NETWORK = 31337
ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def row(block: int, index: int = 0, fork: str = "a", **changed: Any) -> EventRow:
    values = {
        "contract_name": "Gem",
        "event_name": "Transfer",
        "address": ADDRESS,
        "transaction_hash": f"0x{block:062x}{index:02x}",
        "block_number": block,
        "block_hash": f"0x{fork}{block:063x}",
        "log_index": index,
        "transaction_index": 0,
        "ordinal": 0,
        "args": '{"tokenId":"1"}',
    }
    return EventRow(**values | changed)


MANY = [
    row(block, index, token_transfer=index % 2 == 0)
    for block in range(100, 110)
    for index in range(30)
]


def outbox() -> list[tuple[int, str, dict[str, Any]]]:
    rows = OutboxEntry.objects.filter(network_id=NETWORK).order_by("seq")
    return [(item.seq, item.op, json.loads(item.payload)) for item in rows]


def places() -> list[tuple[int, str, int, int]]:
    return [(seq, op, payload["blockNumber"], payload["logIndex"]) for seq, op, payload in outbox()]


def test_what_is_stored_again_is_there_once_and_is_reported_once() -> None:
    rows = [row(1), row(2), row(2, 1)]
    assert store_events(NETWORK, rows, after_seq=0) == 3
    ids = set(ContractEvent.objects.values_list("object_id", flat=True))
    assert store_events(NETWORK, [*rows, row(3)], after_seq=3) == 1
    assert store_events(NETWORK, [], after_seq=4) == 0
    assert ContractEvent.objects.count() == 4
    assert ids < set(ContractEvent.objects.values_list("object_id", flat=True))
    assert places() == [
        (1, "added", 1, 0),
        (2, "added", 2, 0),
        (3, "added", 2, 1),
        (4, "added", 3, 0),
    ]


@pytest.mark.parametrize("more", [0, 300])
def test_an_event_that_comes_back_has_the_contents_that_are_read_then(more: int) -> None:
    """What was removed may have been wrong."""
    further_rows = [row(100, index) for index in range(more)]
    store_events(
        NETWORK,
        [row(1, args='{"tokenId":"7"}', transaction_hash="0xfalse"), *further_rows],
        after_seq=0,
    )
    [before] = ContractEvent.objects.filter(block_number=1)
    remove_events(NETWORK, 0, after_seq=1 + more)
    assert store_events(NETWORK, [row(1), *further_rows], after_seq=2 + 2 * more) == 1 + more
    [event] = ContractEvent.objects.filter(block_number=1)
    assert event.object_id == before.object_id
    assert (event.args, event.transaction_hash) == ({"tokenId": "1"}, row(1).transaction_hash)
    _, op, payload = outbox()[2 + 2 * more]
    assert (op, payload["args"]) == ("added", {"tokenId": "1"})


def test_a_log_that_stands_twice_in_one_answer_is_stored_once() -> None:
    assert store_events(NETWORK, [row(1), row(1)], after_seq=0) == 1


def test_rows_in_any_order_are_reported_in_the_order_of_the_chain() -> None:
    store_events(NETWORK, [row(3), row(1, 1), row(1, 0), row(2)], after_seq=10)
    assert [place[2:] for place in places()] == [(1, 0), (1, 1), (2, 0), (3, 0)]
    assert [place[0] for place in places()] == [11, 12, 13, 14]


@pytest.mark.parametrize("count", [1, 300])
def test_history_is_shown_to_no_caller(count: int) -> None:
    assert store_events(NETWORK, MANY[:count], after_seq=None) == count
    assert store_events(NETWORK, MANY[:count], after_seq=None) == 0
    assert places() == []


@pytest.mark.parametrize("sizes", [(1, 2), (300, 1), (150, 150), (0, 250), (0,)])
def test_parts_that_were_made_ready_apart_are_stored_together(sizes: tuple[int, ...]) -> None:
    parts = [
        [row(1000 * number + block) for block in range(size)] for number, size in enumerate(sizes)
    ]
    # A provider may say the same twice.
    ready = [make_ready([*rows, *rows[:1]]) for rows in parts]
    assert [part.number for part in ready] == [*sizes]
    assert all(part.by_address.get(ADDRESS, 0) == part.number for part in ready)
    with transaction.atomic():
        assert store_ready(NETWORK, ready) == sum(sizes)
    with transaction.atomic():
        assert store_ready(NETWORK, ready) == 0
    stored = set(ContractEvent.objects.values_list("block_number", flat=True))
    assert stored == {item.block_number for rows in parts for item in rows}
    assert places() == []


def test_many_at_once_are_stored_as_few_are() -> None:
    strange = row(9, contract_name="a\tb\\", event_name=None, args='{"note":"\\t, \\\\"}')
    rows = [*MANY, strange, MANY[0]]
    assert store_events(NETWORK, rows, after_seq=0) == 301
    assert store_events(NETWORK, rows, after_seq=301) == 0
    ids = dict(ContractEvent.objects.values_list("transaction_hash", "object_id"))
    stored = ContractEvent.objects.get(block_number=9)
    assert (stored.contract_name, stored.event_name, stored.args) == (
        "a\tb\\",
        None,
        {"note": "\t, \\"},
    )
    assert remove_events(NETWORK, 0, after_seq=301) == 301
    assert store_events(NETWORK, rows, after_seq=602) == 301
    assert [seq for seq, *_ in places()] == [*range(1, 904)]
    now = ContractEvent.objects.filter(canonical=True)
    assert dict(now.values_list("transaction_hash", "object_id")) == ids


def test_what_is_removed_is_reported_last_first_and_comes_back_as_itself() -> None:
    rows = [row(1), row(2), row(2, 1), row(3)]
    store_events(NETWORK, rows, after_seq=0)
    ids = dict(ContractEvent.objects.values_list("transaction_hash", "object_id"))
    assert remove_events(NETWORK, 1, after_seq=4) == 3
    assert remove_events(NETWORK, 1, after_seq=7) == 0
    assert places()[4:] == [(5, "removed", 3, 0), (6, "removed", 2, 1), (7, "removed", 2, 0)]
    assert ContractEvent.objects.filter(canonical=True).count() == 1
    other = [row(2, fork="b"), row(3, fork="b")]
    assert store_events(NETWORK, other, after_seq=7) == 2
    remove_events(NETWORK, 1, after_seq=9)
    assert store_events(NETWORK, rows, after_seq=11) == 3
    now = ContractEvent.objects.filter(canonical=True)
    assert dict(now.values_list("transaction_hash", "object_id")) == ids


def test_networks_do_not_meet() -> None:
    store_events(NETWORK, [row(1)], after_seq=0)
    assert store_events(1, [row(1)], after_seq=0) == 1
    assert remove_events(1, 0, after_seq=1) == 1
    assert ContractEvent.objects.filter(canonical=True, network_id=str(NETWORK)).count() == 1


def test_what_is_reported_is_what_clients_read(client: Api) -> None:
    strange = row(
        7, event_name=None, args='{"note":"tab\\t, \\\\ and \\u2028"}', contract_name="a\tb\\"
    )
    store_events(NETWORK, [row(6, 3, token_transfer=True), strange], after_seq=0)
    read = client.get("/classes/ContractEvent?order=blockNumber").json["results"]
    payloads = [payload for _, _, payload in outbox()]
    assert [item.pop("ordinal") for item in payloads] == [0, 0]
    assert [item.pop("tokenTransfer", None) for item in payloads] == [True, None]
    assert payloads == read
    assert read[0]["args"] == {"tokenId": "1"}
    assert "eventName" not in read[1]
    assert read[1]["contractName"] == "a\tb\\"
    assert read[1]["args"] == {"note": "tab\t, \\ and \u2028"}


def test_a_hash_can_not_be_more_than_one_column() -> None:
    broken = row(1, transaction_hash="0x1\t2")
    with pytest.raises(ValueError, match="hash"):
        store_events(NETWORK, [*MANY, broken], after_seq=0)
    assert store_events(NETWORK, [row(2)], after_seq=0) == 1


def test_what_the_caller_undoes_is_not_stored() -> None:
    with transaction.atomic():
        store_events(NETWORK, [row(1)], after_seq=0)
        transaction.set_rollback(True)
    assert not ContractEvent.objects.exists()
    assert store_events(NETWORK, [row(1)], after_seq=0) == 1


@pytest.mark.django_db(transaction=True)
def test_those_who_store_the_same_at_once_store_it_once() -> None:
    rows = [row(block, index) for block in range(20) for index in range(20)]

    def store(number: int) -> int:
        chosen = rows if number % 2 else rows[::-1]
        with transaction.atomic():
            return store_events(NETWORK, chosen, after_seq=0)

    counts = at_once([partial(store, number) for number in range(6)])
    assert sorted(counts) == [0, 0, 0, 0, 0, 400]
    assert ContractEvent.objects.count() == OutboxEntry.objects.count() == 400


@pytest.mark.parametrize("count", [3, 300])
def test_the_time_of_a_block_is_stored_and_shown_as_a_date(client: Api, count: int) -> None:
    time = "2026-01-31T12:00:00.123Z"
    rows = [replace(item, block_timestamp=time) for item in MANY[: count - 1]]
    store_events(NETWORK, [*rows, row(99)], after_seq=0)
    date = {"__type": "Date", "iso": time}
    shown = client.results("ContractEvent", limit=count, order="blockNumber,logIndex")
    expected = [None, *[date] * (count - 1)]
    assert [item.get("blockTimestamp") for item in shown] == expected
    assert [payload.get("blockTimestamp") for _, _, payload in outbox()] == expected

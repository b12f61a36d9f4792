"""Where the feeds of final and safe events start: before the first row that isn't decided."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from chain.indexing.storage import outbox_reader
from chain.indexing.storage.events import remove_events, store_events
from chain.models import ContractEvent, Cursor, OutboxEntry
from objects.database.statements import fetch
from tests.chain.test_storing import NETWORK, row

pytestmark = pytest.mark.django_db

OTHER = 31338


class _Network:
    def __init__(self, network_id: int) -> None:
        self.network_id = network_id
        self.cursor = Cursor.objects.create(network_id=network_id, number=0, hash="0x")

    def add(self, blocks: list[int], fork: str = "a") -> None:
        rows = [row(block, index, fork) for block in blocks for index in range(2)]
        self._grow(store_events(self.network_id, rows, after_seq=self.cursor.outbox))

    def remove(self, above: int) -> None:
        self._grow(remove_events(self.network_id, above, after_seq=self.cursor.outbox))

    def reach(self, number: int, safe: int | None, finalized: int | None) -> None:
        Cursor.objects.filter(pk=self.network_id).update(
            number=number, safe=safe, finalized=finalized
        )

    def _grow(self, more: int) -> None:
        self.cursor.outbox += more
        Cursor.objects.filter(pk=self.network_id).update(outbox=self.cursor.outbox)

    def expected(self, level: outbox_reader.Level) -> int:
        """From the rows alone: the row before the first whose event is above the height."""
        self.cursor.refresh_from_db()
        top = self.cursor.safe if level == "safe" else self.cursor.finalized
        height = -1 if top is None else min(top, self.cursor.number or 0)
        standing = dict(
            ContractEvent.objects.filter(
                network_id=str(self.network_id), canonical=True, block_number__gt=height
            ).values_list("object_id", "block_number")
        )
        rows = OutboxEntry.objects.filter(network_id=self.network_id, op="added")
        last: dict[str, int] = {}
        for seq, event in rows.order_by("seq").values_list("seq", "event_id"):
            last[event] = seq
        undecided = [seq for event, seq in last.items() if event in standing]
        return min([seq - 1 for seq in undecided], default=self.cursor.outbox)


def _check(*networks: _Network) -> None:
    for level in get_args(outbox_reader.Level):
        assert outbox_reader.settled_marks(level) == {
            network.network_id: network.expected(level) for network in networks
        }


def test_events_of_low_blocks_that_are_stored_last() -> None:
    """More of them than are sampled to guess where the first row is."""
    network = _Network(NETWORK)
    network.add([1])
    network.add([500, 501])
    network.add([*range(10, 200)])
    network.reach(501, 5, 5)
    _check(network)
    assert outbox_reader.settled_marks("final") == {NETWORK: 2}


def test_an_event_that_was_removed_and_came_back() -> None:
    network = _Network(NETWORK)
    network.add([1, 2])
    network.remove(1)
    network.add([*range(3, 100)], "b")
    network.add([2])
    network.reach(100, 1, 1)
    _check(network)


def test_events_without_rows_and_rows_that_are_gone() -> None:
    network = _Network(NETWORK)
    store_events(NETWORK, [row(block) for block in range(1, 150)], after_seq=None)
    network.reach(400, 2, 2)
    _check(network)
    network.add([*range(200, 300)])
    _check(network)
    OutboxEntry.objects.filter(seq__lte=50).delete()
    _check(network)


@pytest.mark.parametrize("seed", range(6))
def test_marks_of_random_histories(seed: int) -> None:
    chance = random.Random(seed)
    networks = [_Network(NETWORK), _Network(OTHER)]
    tops = {NETWORK: 1, OTHER: 5000}
    for step in range(12):
        network = chance.choice(networks)
        top = tops[network.network_id]
        if chance.random() < 0.3:
            top = max(1, top - chance.randrange(60))
            network.remove(top)
        more = chance.randrange(1, 120)
        blocks = [*range(top + 1, top + more)]
        network.add(chance.sample(blocks, len(blocks)), f"{step:x}")
        tops[network.network_id] = top + more
        final = chance.choice([None, chance.randrange(1, top + more)])
        network.reach(top + more, chance.choice([None, top + more]), final)
        _check(*networks)


def test_few_rows_are_read_while_nothing_becomes_final() -> None:
    network = _Network(NETWORK)
    network.add([*range(1, 501)])
    network.reach(500, 3, 3)
    before = _scans()
    assert outbox_reader.settled_marks("final") == {NETWORK: 6}
    assert _scans() - before < 300  # there are 994 events that aren't final


def _scans() -> int:
    [(number,)] = fetch(
        "SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'chain_outbox'",
        (),
        prepare=False,
    )
    return int(number)

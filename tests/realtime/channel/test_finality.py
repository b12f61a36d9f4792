"""Connections to final or safe events receive each once, when its block is."""

from __future__ import annotations

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import transaction

from chain.indexing.storage import outbox_reader
from objects.database.statements import fetch
from realtime.channel.pages import ROWS
from tests.realtime.channel.chains import Chain
from tests.realtime.channel.channel import ProcessHarness
from tests.realtime.channel.oracle import Row, expected, rows_of
from tests.realtime.channel.test_messages import of
from tests.realtime.channel.test_random_histories import ResumingClient
from tests.threads import wait_until_somebody_waits_for_us

pytestmark = pytest.mark.django_db

FINAL = "&finality=final"
SAFE = "&finality=safe"


@pytest.mark.slow
def test_an_event_is_sent_when_its_block_is_final(harness: ProcessHarness, chain: Chain) -> None:
    final, safe = harness.connect(of(chain, FINAL)), harness.connect(of(chain, SAFE))
    latest, plain = harness.connect(of(chain, "&finality=latest")), harness.connect(of(chain))
    chain.add(1, 2, block=5)
    chain.add(3, block=6)
    chain.reach(6, 4, 3)
    assert latest.tokens(3) == plain.tokens(3) == [1, 2, 3]
    safe.expect_nothing()
    final.expect_nothing()
    chain.reach(6, 5, 4)
    assert safe.tokens(2) == [1, 2]
    final.expect_nothing()
    chain.reach(7, 6, 5)
    assert safe.tokens(1) == [3]
    assert final.tokens(2) == [1, 2]
    chain.reach(7, 7, 7)
    assert final.tokens(1) == [3]
    safe.expect_nothing()
    plain.expect_nothing()


def test_the_message_has_the_specified_form(harness: ProcessHarness, chain: Chain) -> None:
    final, plain = harness.connect(of(chain, FINAL)), harness.connect(of(chain))
    chain.add(1, block=5)
    chain.reach(5, 5, 5)
    message = final.next()
    assert message == plain.next()
    assert message.keys() == {"event", "data"}


def test_a_final_height_above_the_indexed_blocks_makes_nothing_final(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, FINAL))
    chain.add(1, block=5)
    chain.reach(4, 100, 100)
    client.expect_nothing()
    chain.reach(5, 100, 100)
    assert client.tokens(1) == [1]


def test_an_event_not_final_at_the_handshake_is_sent_later(
    harness: ProcessHarness, chain: Chain
) -> None:
    chain.add(1, block=1)
    chain.add(2, block=2)
    chain.add(3, block=3)
    chain.reach(3, 2, 1)
    client = harness.connect(of(chain, FINAL))
    client.expect_nothing()
    chain.reach(3, 3, 2)
    assert client.tokens(1) == [2]
    chain.reach(3, 3, 3)
    assert client.tokens(1) == [3]


def test_an_event_removed_before_it_is_final_is_never_sent(
    harness: ProcessHarness, chain: Chain
) -> None:
    clients = [harness.connect(of(chain, f"{FINAL}&reorg={reorg}")) for reorg in (0, 1)]
    chain.add(1, 2, block=5)
    chain.reach(5, 4, 4)
    chain.remove(4)
    chain.add(2, block=5, fork="b")
    chain.add(3, block=6, fork="b")
    for client in clients:
        client.expect_nothing()
    chain.reach(6, 6, 6)
    for client in clients:
        assert client.tokens(2) == [2, 3]


def test_a_block_that_returns_is_sent_once(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, f"{FINAL}&reorg=1"))
    chain.add(1, block=5)
    chain.reach(5, 4, 4)
    chain.remove(4)
    chain.add(1, block=5)
    client.expect_nothing()
    chain.reach(5, 5, 5)
    assert client.tokens(1) == [1]


def test_a_safe_event_that_is_removed(harness: ProcessHarness, chain: Chain) -> None:
    plain, reorg = harness.connect(of(chain, SAFE)), harness.connect(of(chain, f"{SAFE}&reorg=1"))
    final = harness.connect(of(chain, f"{FINAL}&reorg=1"))
    chain.add(1, block=5)
    chain.add(2, block=6)
    chain.reach(6, 5, 4)
    assert plain.tokens(1) == reorg.tokens(1) == [1]
    chain.remove(4)
    chain.reach(4, 4, 4)
    assert reorg.tokens(1) == [-1]
    plain.expect_nothing()
    chain.add(1, 2, block=5, fork="b")
    chain.reach(5, 5, 4)
    assert reorg.tokens(2) == [1, 2]
    assert plain.tokens(1) == [2]
    final.expect_nothing()
    chain.reach(5, 5, 5)
    assert final.tokens(2) == [1, 2]


def test_an_operator_removes_events_below_the_final_height(
    harness: ProcessHarness, chain: Chain
) -> None:
    plain, reorg = harness.connect(of(chain, FINAL)), harness.connect(of(chain, f"{FINAL}&reorg=1"))
    chain.add(1, 2, block=5)
    chain.reach(5, 5, 5)
    assert plain.tokens(2) == reorg.tokens(2) == [1, 2]
    chain.remove(4)
    chain.reach(4, 4, 4)
    assert reorg.tokens(2) == [-2, -1]
    chain.add(2, 3, block=5, fork="b")
    chain.reach(5, 5, 5)
    assert reorg.tokens(2) == [2, 3]
    assert plain.tokens(1) == [3]


def test_networks_do_not_wait_for_each_other(
    harness: ProcessHarness, chain: Chain, other: Chain
) -> None:
    client = harness.connect(f"network={chain.network_id},{other.network_id}{FINAL}")
    chain.add(1, block=5)
    other.add(2, block=7)
    other.reach(7, 7, 7)
    assert client.tokens(1) == [2]
    chain.reach(5, 5, 5)
    assert client.tokens(1) == [1]


def test_other_feeds_do_not_wait_while_a_feed_starts(harness: ProcessHarness, chain: Chain) -> None:
    """Where it starts takes as long as there are events that aren't final."""
    latest = harness.connect(of(chain))
    chain.add(1, block=1)
    assert latest.tokens(1) == [1]
    chain.add(2, block=2)
    chain.reach(2, 1, 1)
    assert latest.tokens(1) == [2]
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            fetch("LOCK TABLE chain_contract_event IN ACCESS EXCLUSIVE MODE", (), prepare=False)
            coming = threads.submit(harness.connect, of(chain, FINAL))
            wait_until_somebody_waits_for_us()
            chain.write(lambda _: _repeat_newest(chain.network_id))
            assert latest.tokens(1) == [2]
            assert not coming.done()
            transaction.set_rollback(True)
        client = coming.result(60)
    client.expect_nothing()
    chain.reach(2, 2, 2)
    assert client.tokens(2) == [2, 2]


def _repeat_newest(network_id: int) -> int:
    """Another row like the newest one, without touching the table of events."""
    rows = fetch(
        "INSERT INTO chain_outbox (network_id, seq, op, event_id, payload, created_at)"
        " SELECT network_id, seq + 1, op, 'repeated', payload, created_at FROM chain_outbox"
        " WHERE network_id = %s ORDER BY seq DESC LIMIT 1 RETURNING 1",
        (network_id,),
        prepare=False,
    )
    return len(rows)


# -- Coming back -----------------------------------------------------------------------------------


def test_a_client_resumes_at_any_process(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, f"{FINAL}&since=now"))
    client.next()
    chain.add(1, block=1)
    chain.add(2, block=2)
    chain.add(3, block=3)
    chain.reach(3, 3, 1)
    assert client.tokens(1) == [1]
    client.leave()
    again = second.connect(of(chain, f"{FINAL}&since={client.cursor}"))
    assert again.next()["event"] == "hello"
    again.expect_nothing()
    chain.reach(3, 3, 2)
    assert again.tokens(1) == [2]
    again.leave()
    chain.reach(3, 3, 3)
    last = harness.connect(of(chain, f"{FINAL}&since={again.cursor}"))
    last.next()
    assert last.tokens(1) == [3]


def test_since_0_sends_every_stored_final_event(harness: ProcessHarness, chain: Chain) -> None:
    chain.add(1, block=1)
    chain.add(2, block=2)
    chain.reach(2, 1, 1)
    chain.remove(1)
    chain.add(3, block=2, fork="b")
    chain.add(4, block=3, fork="b")
    chain.reach(3, 3, 2)
    client = harness.connect(of(chain, f"{FINAL}&since=0"))
    client.next()
    assert client.tokens(2) == [1, 3]
    chain.reach(3, 3, 3)
    assert client.tokens(1) == [4]


def test_heights_that_advance_while_a_client_catches_up(
    harness: ProcessHarness, chain: Chain
) -> None:
    """Pages end before the first row that isn't decided, and are read again from there on."""
    count = 2 * ROWS + 50
    for first in range(1, count + 1, 50):
        chain.add(*range(first, first + 50), block=first)
    for final in (ROWS // 2, ROWS + 1, count):
        chain.reach(count, count, final)
        client = harness.connect(of(chain, f"{FINAL}&since=0"))
        client.next()
        # The last block that is final begins at a multiple of fifty.
        assert client.tokens((final - 1) // 50 * 50 + 50) == [
            *range(1, (final - 1) // 50 * 50 + 51)
        ]
        client.leave()


def test_a_cursor_at_a_position_that_is_not_final_is_a_reset(
    harness: ProcessHarness, chain: Chain
) -> None:
    latest = harness.connect(of(chain, "&since=now"))
    latest.next()
    chain.add(1, block=5)
    chain.reach(5, 4, 4)
    assert latest.tokens(1) == [1]
    client = harness.connect(of(chain, f"{FINAL}&since={latest.cursor}"))
    assert client.next()["event"] == "hello"
    assert client.next()["data"]["reason"] == "ahead"
    chain.reach(5, 5, 5)
    assert client.tokens(1) == [1]


def test_a_restored_backup_is_a_reset(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, f"{FINAL}&since=now"))
    client.next()
    chain.add(1, block=5)
    chain.restored()
    assert client.next()["data"]["reason"] == "epoch"
    chain.reach(5, 5, 5)
    assert client.tokens(1) == [1]


def test_rows_removed_before_they_are_final_are_a_reset(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, f"{FINAL}&since=now"))
    client.next()
    chain.add(1, block=5)
    chain.add(2, block=6)
    harness.poll()
    chain.prune(1)
    chain.reach(6, 6, 6)
    assert client.next()["data"]["reason"] == "expired"
    assert client.tokens(1) == [2]


def test_networks_without_settled_rows_are_not_read(
    harness: ProcessHarness, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.connect(of(chain, FINAL))
    reads: list[Any] = []
    read = outbox_reader.settled_after
    monkeypatch.setattr(
        outbox_reader, "settled_after", lambda *given: (reads.append(given[0]), read(*given))[1]
    )
    chain.add(1, block=5)
    chain.reach(5, 4, 4)
    harness.poll()
    harness.poll()
    mine = [positions for positions in reads if chain.network_id in positions]
    assert len(mine) == 1


# -- Random histories ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clients_that_reconnect_miss_nothing(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain, seed: int
) -> None:
    rng = random.Random(seed)
    wishes = [(level, reorg) for level in ("safe", "final") for reorg in (False, True)] * 2
    clients = [
        ResumingClient(chain, reorg=reorg, more=f"&finality={level}") for level, reorg in wishes
    ]
    history = _History(chain, random.Random(seed))
    writer = threading.Thread(target=history.run)
    writer.start()
    while writer.is_alive():
        client = rng.choice(clients)
        if client.connection is None:
            client.connect(rng.choice((harness, second)))
        else:
            client.read(rng.randrange(20))
            if rng.random() < 0.5:
                client.disconnect()
    writer.join()
    for client, (level, reorg) in zip(clients, wishes, strict=True):
        expected_events = expected(history.rows_of(level), reorg=reorg)
        if client.connection is None:
            client.connect(rng.choice((harness, second)))
        for _ in range(len(expected_events) - len(client.tokens)):
            client.take()
        assert client.tokens == expected_events
        assert client.connection is not None
        client.connection.expect_nothing()


class _History:
    """A chain that grows, reorganises and becomes final, and what each removal found."""

    def __init__(self, chain: Chain, rng: random.Random) -> None:
        self._chain = chain
        self._rng = rng
        self._heights = {"safe": 0, "final": 0}
        self._removals: dict[int, dict[str, int]] = {}  # by number of the row

    def run(self) -> None:
        height, tokens = 0, 0
        blocks: dict[int, list[int]] = {}
        for step in range(120):
            floor = self._heights["final"]
            if height > floor and self._rng.random() < 0.25:
                depth = self._rng.randrange(1, min(height - floor, 4) + 1)
                before = self._chain.newest
                results = dict(self._heights)
                self._chain.remove(height - depth)
                for seq in range(before + 1, self._chain.newest + 1):
                    self._removals[seq] = results
                again = [
                    item for n in range(height - depth + 1, height + 1) for item in blocks.pop(n)
                ]
                height -= depth
                self._heights["safe"] = min(self._heights["safe"], height)
                self._reach(height)
                height += 1
                blocks[height] = self._rng.sample(again, self._rng.randrange(len(again) + 1))
            else:
                height += 1
                new = self._rng.randrange(4)
                blocks[height] = [*range(tokens + 1, tokens + new + 1)]
                tokens += new
            if blocks[height]:
                self._chain.add(*blocks[height], block=height, fork=f"{step:x}")
            if self._rng.random() < 0.5:
                final = self._rng.randrange(floor, max(floor, height - 3) + 1)
                safe = self._rng.randrange(final, height + 1)
                self._heights = {"final": final, "safe": max(safe, self._heights["safe"])}
            self._reach(height)

    def _reach(self, number: int) -> None:
        self._chain.reach(number, self._heights["safe"], self._heights["final"])

    def rows_of(self, level: str) -> list[Row]:
        """The rows that a connection of this finality gets, from the simulation alone."""
        raw = self._chain.rows(
            "SELECT seq, op, payload FROM chain_outbox WHERE network_id = %s ORDER BY seq"
        )
        events = [(int(seq), op, json.loads(payload)) for seq, op, payload in raw]
        rows = rows_of((op, payload) for _, op, payload in raw)
        counted = []
        for place, (_, _, event) in enumerate(events):
            ends = [
                later
                for later, kind, item in events[place:]
                if kind == "removed" and item["objectId"] == event["objectId"]
            ]
            heights = self._removals[ends[0]] if ends else self._heights
            if event["blockNumber"] <= heights[level]:
                counted.append(rows[place])
            elif not ends:
                break
        return counted

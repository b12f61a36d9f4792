"""Workers die at any moment, nodes and Redis go and come back: each event is stored once (F7, F8,
F19)."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.chain.faults import oracle
from tests.chain.faults.installation import Installation, until
from tests.evm.artefacts import Contract
from tests.evm.node import Node, running_node

pytestmark = [pytest.mark.process, pytest.mark.slow]

EVENTS = 100_000
A_BLOCK = 500
KILLS = 10
_GAS = ("--gas-limit", "3000000000")


def test_a_hundred_thousand_events_are_stored_once_whatever_dies(
    installation: Installation,
) -> None:
    """Half of them are history when the contract is registered, the others come meanwhile."""
    chance = random.Random(20)
    with running_node(7001, *_GAS) as node:
        gem = node.deployed("Gem")
        node.automine(False)
        spam(gem, EVENTS // 2)
        node.mine(100)
        installation.follow(node, gem)
        installation.with_processes("chain", "backfill", "beat")
        adversary = Miner(gem, EVENTS // 2)
        adversary.start()
        for number in range(KILLS):
            before = installation.events(node.chain_id)
            grown_or_a_while(installation, node, before)
            time.sleep(chance.uniform(0, 0.3))  # the moment doesn't matter; it should vary
            role = chance.choice(("chain", "backfill"))
            installation.kill(role)
            installation.start(role)
            if number == 3:
                with adversary.paused():
                    node.stop()
                    time.sleep(1)  # an outage of this length
                    node.start()
                    node.automine(False)
            if number == 6:
                installation.redis.stop()
                time.sleep(1)  # the same
                installation.redis.start()
        adversary.join()
        until_done(installation, node)
        assert_exact(installation, gem, EVENTS)


def test_two_workers_follow_a_chain_that_reorganises_while_they_are_killed(
    installation: Installation,
) -> None:
    chance = random.Random(21)
    with running_node(7002, *_GAS) as node:
        gem = node.deployed("Gem")
        node.automine(False)
        node.mine(80)
        installation.follow(node, gem)
        installation.with_processes("chain", "backfill", "beat")
        installation.start("chain", "second")
        until_done(installation, node)
        for number in range(60):
            for _ in range(chance.randrange(3)):
                gem.transact("spam", chance.randrange(1, 5), gas=500_000)
            node.mine(chance.randrange(1, 4))
            if chance.random() < 0.3:
                depth = chance.randrange(1, 13)
                node.reorg(depth, [(gem.request("spam", 2), 0)] * chance.randrange(2))
                node.mine()
            if number % 12 == 11:
                killed = chance.choice(("chain", "second"))
                installation.kill(killed)
                installation.start("chain", killed)
            time.sleep(chance.uniform(0, 0.3))  # as long as blocks take here
        until_done(installation, node)
        assert installation.value(
            "SELECT count(*) FROM chain_reorganisation WHERE network_id = %s", node.chain_id
        )
        assert_exact(installation, gem)
        assert_told(installation, gem)


class Miner(threading.Thread):
    """Mines blocks full of events, until there are enough."""

    def __init__(self, gem: Contract, events: int) -> None:
        super().__init__()
        self._gem = gem
        self._left = events
        self._lock = threading.Lock()

    def run(self) -> None:
        while self._left:
            with self._lock:
                spam(self._gem, A_BLOCK)
            self._left -= A_BLOCK
            time.sleep(0.15)

    def paused(self) -> threading.Lock:
        return self._lock


def spam(gem: Contract, events: int) -> None:
    for _ in range(events // A_BLOCK):
        gem.transact("spam", A_BLOCK, gas=A_BLOCK * 5_000 + 200_000)
        gem.node.mine()


def grown_or_a_while(installation: Installation, node: Node, before: int) -> None:
    """So that something is stored between most of the kills."""
    end = time.monotonic() + 5
    while installation.events(node.chain_id) == before and time.monotonic() < end:
        time.sleep(0.05)


def until_done(installation: Installation, node: Node) -> None:
    try:
        until(lambda: installation.is_done(node))
    except AssertionError:
        raise AssertionError(installation.said(node.chain_id)) from None


def assert_exact(installation: Installation, gem: Contract, events: int | None = None) -> None:
    """The stored events are those of the chain, no more, no less, no other arguments."""
    expected = oracle.on_chain(gem)
    assert events is None or len(expected) == events
    rows = installation.rows(
        f"SELECT {oracle.COLUMNS} FROM chain_contract_event WHERE network_id = %s AND canonical",
        str(gem.node.chain_id),
    )
    stored = oracle.stored(rows)
    assert stored.keys() == expected.keys()
    assert stored == expected


def assert_told(installation: Installation, gem: Contract) -> None:
    """Who has followed the outbox from its beginning has the events of the chain as well."""
    rows = installation.rows(
        "SELECT seq, op, payload FROM chain_outbox WHERE network_id = %s ORDER BY seq",
        gem.node.chain_id,
    )
    assert oracle.replayed(rows) == oracle.on_chain(gem)

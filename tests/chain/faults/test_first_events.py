"""What is registered is read at once, and the schedule isn't needed for it."""

from __future__ import annotations

import pytest
import redis

from backend.kernel.process import heartbeats
from tests.chain.faults.installation import Installation, until
from tests.evm.node import running_node

WORKERS = (heartbeats.CHAIN, heartbeats.BACKFILL)

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_the_history_of_a_contract_is_read_without_a_tick_of_beat(
    installation: Installation,
) -> None:
    with running_node(7301) as node:
        gems = [node.deployed("Gem") for _ in range(2)]
        for gem in gems:
            node.mined(gem.transact("spam", 10))
        node.mine(100)
        start_workers(installation)
        assert "beat" not in installation.running
        installation.follow(node)
        # The first one has the network polled for the first time, the second one finds it polled.
        for number, gem in enumerate(gems, 1):
            installation.listen(gem, f"Gem{number}")
            until(lambda number=number: installation.events(node.chain_id) == 10 * number)
        until(lambda: installation.is_done(node))


def start_workers(installation: Installation) -> None:
    """Start them; returns when they take tasks, which expire."""
    with redis.Redis.from_url(installation.folder.redis_url) as client:
        client.delete(*(f"heartbeat:{role}" for role in WORKERS))  # of earlier ones
        installation.with_processes(*WORKERS)
        until(lambda: all(heartbeats.latest(client, role) for role in WORKERS))

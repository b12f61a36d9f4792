"""The process with the subscriptions is killed: polling at the interval goes on."""

from __future__ import annotations

import pytest

from chain.core.blocks.heads import PROOF
from tests.chain.faults.installation import Installation, until
from tests.evm.node import running_node

pytestmark = [pytest.mark.process, pytest.mark.slow]

_IS_DEFERRED = (
    "SELECT next_poll_at > polled_at + interval '250 ms' FROM chain_cursor WHERE network_id = %s"
)


def test_a_network_whose_subscription_was_killed_is_polled(installation: Installation) -> None:
    with running_node(7302) as node:
        gem = node.deployed("Gem")
        installation.follow(node, gem, wssEndpoint=node.socket_url)
        installation.with_processes("chain", "backfill", "beat")
        until(lambda: installation.is_done(node))
        for _ in range(PROOF + 1):
            node.mine()
            until(lambda: installation.is_done(node))
        until(lambda: installation.value(_IS_DEFERRED, node.chain_id))
        installation.kill("chain")
        installation.rows("UPDATE chain_blockchain SET wss_endpoint = NULL RETURNING 1")
        node.mine()
        installation.start("chain")
        until(lambda: installation.is_done(node))
        until(lambda: not installation.value(_IS_DEFERRED, node.chain_id))
        node.mine()
        until(lambda: installation.is_done(node))

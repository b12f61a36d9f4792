"""Transactions that are started over REST are followed by real workers, which are killed, lose
their queue and meet reorganisations: each record ends as the chain says, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chain.faults.installation import Installation, until
from tests.evm.node import Node, running_node

pytestmark = [pytest.mark.process, pytest.mark.slow]

COUNT = 60


@pytest.fixture
def node(installation: Installation) -> Iterator[Node]:
    """A node whose network real workers follow; it mines on request."""
    with running_node(7500 + installation.value("SELECT count(*) FROM chain_blockchain")) as node:
        node.automine(False)
        node.mine(5)
        installation.follow(node)
        installation.with_processes("chain", "beat")
        yield node


def start(installation: Installation, node: Node, tx_hash: str) -> str:
    """Start to follow it; the id of its record."""
    body = {"networkId": node.chain_id, "hash": tx_hash}
    status, answer = installation.call("POST", "/functions/monitorTransaction", body)
    assert status == 200, answer
    return str(answer["result"]["objectId"])


def sent(node: Node, count: int) -> list[str]:
    senders = node.accounts
    request = {"to": senders[0], "value": 1, "gas": 21_000}
    return [node.send({"from": senders[n % 8], **request}) for n in range(count)]


def states(installation: Installation, node: Node) -> dict[str, tuple[str, str | None]]:
    rows = installation.rows(
        "SELECT hash, status, block_hash FROM chain_transaction WHERE network_id = %s",
        str(node.chain_id),
    )
    return {tx_hash: (status, block_hash) for tx_hash, status, block_hash in rows}


def truth(node: Node, hashes: list[str]) -> dict[str, tuple[str, str | None]]:
    results: dict[str, tuple[str, str | None]] = {}
    for tx_hash in hashes:
        receipt = node.receipt(tx_hash)
        results[tx_hash] = ("pending", None) if receipt is None else _end(receipt["blockHash"])
    return results


def _end(block_hash: str) -> tuple[str, str | None]:
    return "confirmed", block_hash


def test_one_is_confirmed_at_once_and_another_with_its_block(
    installation: Installation, node: Node
) -> None:
    mined, waiting = sent(node, 2)
    node.mine()
    (late,) = sent(node, 1)
    for tx_hash in (mined, waiting, late):
        start(installation, node, tx_hash)
    until(lambda: [item for item, _ in states(installation, node).values()].count("confirmed") == 2)
    assert states(installation, node)[late] == ("pending", None)
    node.mine()
    until(lambda: states(installation, node) == truth(node, [mined, waiting, late]))
    attempts = installation.value(
        "SELECT max(attempts) FROM chain_transaction WHERE network_id = %s", str(node.chain_id)
    )
    assert attempts <= 1, "its block has ended it, not a later check"


def test_workers_that_die_and_a_queue_that_is_lost_lose_no_transaction(
    installation: Installation, node: Node
) -> None:
    hashes: list[str] = []
    for turn in range(3):
        hashes += sent(node, COUNT // 3)
        for tx_hash in hashes:
            start(installation, node, tx_hash)  # most of them again
        node.mine(2)
        installation.kill("chain")
        if turn == 1:
            installation.redis.stop()
            installation.redis.start()
        if turn == 2:
            node.reorg(2)
            node.mine(3)
        installation.with_processes("chain")
    hashes += sent(node, 5)
    for tx_hash in hashes[-5:]:
        start(installation, node, tx_hash)
    node.mine(3)

    until(lambda: states(installation, node) == truth(node, hashes))
    confirmed = [item for item, _ in states(installation, node).values()].count("confirmed")
    assert len(hashes) - COUNT // 3 - 5 <= confirmed <= len(hashes)
    for role in ("chain", "beat", "web"):
        assert installation.running[role].poll() is None

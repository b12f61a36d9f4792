"""Transactions of a chain that an adversary mines, forks, shortens and forgets, while workers check
them, the network is read, and blocks become final: in the end each record says what the chain says.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from chain import monitor
from chain.models import Transaction
from chain.rpc.pool import forget
from tests.chain.indexed_network import Network, network
from tests.chain.monitored import Followed, follow
from tests.evm import faults
from tests.evm.node import Node, NodeError
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db

# Of anvil's own accounts, which everybody knows.
KEYS = (
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
)
NOBODY = "0x" + "00" * 19 + "99"
DEEPEST = 6
TICK = 20
"""Seconds between two things that happen."""


class Adversary:
    """One who does something at each tick, decided by chance."""

    def __init__(self, world: Network, seed: int) -> None:
        self.world = world
        self.node = world.node
        self.chance = random.Random(seed)
        self.followed: list[Followed] = []
        self.signed: list[str] = []
        self.shortest = self.node.head
        self.seconds = 0

    def tick(self) -> None:
        self.seconds += TICK
        moves = (
            (self.send, 5),
            (self.send_again, 3),
            (self.mine, 5),
            (self.reorganise, 2),
            (self.shorten, 1),
            (self.drop, 1),
            (self.read, 5),
            (self.check, 5),
            (self.check_while_it_moves, 2),
            (self.finalize, 1),
        )
        self.chance.choices([move for move, _ in moves], [weight for _, weight in moves])[0]()

    def send(self) -> None:
        signed = self.node.signed(self.chance.choice(KEYS), {"to": NOBODY, "gas": 21_000})
        try:
            sent = self.node.send_raw(signed)
        except NodeError:
            return  # anvil has lost count of the account's nonces
        transaction = follow(self.node.chain_id, sent)
        if signed not in self.signed:  # after a reorganisation a nonce may be used once more
            self.signed.append(signed)
            self.followed.append(transaction)

    def send_again(self) -> None:
        """What was in blocks that are gone, and what was dropped; it comes into other blocks."""
        for signed in self.signed:
            with suppress(NodeError):
                self.node.send_raw(signed)

    def mine(self) -> None:
        self.node.mine(self.chance.randint(1, 3))

    def reorganise(self) -> None:
        depth = min(self.chance.randint(1, DEEPEST), self.node.head - self.shortest)
        if depth > 0:
            self.node.reorg(depth)
            self.node.mine()

    def shorten(self) -> None:
        depth = min(self.chance.randint(1, DEEPEST), self.node.head - self.shortest)
        if depth > 0:
            self.node.rollback(depth)
            self.node.mine(depth + 1)

    def drop(self) -> None:
        if self.followed:
            self.node.drop(self.chance.choice(self.followed).row.hash or "")

    def read(self) -> None:
        self.world.follow()

    def check(self) -> None:
        if self.followed:
            self.followed[0].check(self.seconds)

    def check_while_it_moves(self) -> None:
        move = self.chance.choice((self.mine, self.reorganise))
        method = self.chance.choice(("eth_getTransactionReceipt", "eth_getBlockByNumber"))
        hook = self.chance.choice((faults.before, faults.after))
        self.world.proxy.on(method, hook(move), times=1)
        self.check()
        self.read()
        self.world.proxy.be_good()

    def finalize(self) -> None:
        monitor.finalize(self.node.chain_id)

    def settle(self) -> None:
        """Let the chain outgrow all others, and everything that is due be done."""
        self.node.mine(3 * DEEPEST)
        for _ in range(4):
            self.seconds += 40
            self.read()
            self.check()
            monitor.finalize(self.node.chain_id)

    def verify(self) -> None:
        assert Transaction.objects.count() == len(self.followed)
        for item in self.followed:
            row = item.row
            receipt = self.node.receipt(row.hash or "")
            if receipt is None:
                assert row.status == "pending"
                assert (row.block_hash, row.gas_used) == (None, None)
                assert row.next_check_at is not None
            else:
                assert row.status == "confirmed"
                assert row.block_hash == receipt["blockHash"]
                assert row.block_number == int(receipt["blockNumber"], 16)
                assert row.finality in ("included", "safe", "finalized")
                assert row.next_check_at is None


def rounds(node: Node, seed: int, ticks: int) -> Adversary:
    forget()
    with network(node, finality_depth=3 * DEEPEST) as world:
        node.mine(4 * DEEPEST)
        world.follow()
        adversary = Adversary(world, seed)
        for _ in range(ticks):
            adversary.tick()
        adversary.settle()
        adversary.verify()
    return adversary


def test_each_record_says_in_the_end_what_the_chain_says(node: Node) -> None:
    rounds(node, seed=1, ticks=90)
    assert Transaction.objects.filter(reorg_count__gt=1, status="confirmed").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(2, 6), *[DRAWN] * 4])
def test_whatever_the_adversary_does(node: Node, seed: int | str) -> None:
    rounds(node, seed_of(seed), ticks=90)

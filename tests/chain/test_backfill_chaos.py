"""What is stored is what the chain says, in any order of what happens.

An adversary lets the chain grow and be reorganised, contracts be registered, removed and switched
off and on, rows be lost and altered, while the past is read, audited and pruned. At the end
everything is compared with the node.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from chain.core.failures import NodeFailure
from chain.indexing.head import follow
from chain.indexing.history.backfill import advance
from chain.indexing.history.progress import Lost
from chain.indexing.repair import audits
from chain.indexing.storage import retention
from chain.models import Backfill, ContractEvent, Cursor, OutboxEntry, SmartContract
from tests.chain.backfills import (
    change,
    changed,
    listen,
    new_network,
    on_chain,
    open_ranges,
    stored,
)
from tests.evm.node import Node
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db(transaction=True)

_EVERYTHING = 10**9  # a block that no chain has


class Adversary:
    def __init__(self, node: Node, seed: int) -> None:
        self.rng = random.Random(seed)
        self.node = node
        self.network_id = new_network(node)
        self.gem, self.coin = node.deployed("Gem"), node.deployed("Gem")
        self.contract: SmartContract | None = None
        node.automine(False)
        for _ in range(6):
            self.grow()
        # What the network calls final is 64 blocks below its head.
        node.mine(60)
        follow(self.network_id)
        self.register()

    def acts(self) -> list[Callable[[], object]]:
        return [
            *(self.grow, self.grow, self.reorganise, self.follow, self.follow, self.backfill),
            *(self.register, self.remove, self.switch, self.examine, self.audit, retention.prune),
        ]

    def follow(self) -> None:
        follow(self.network_id)

    def audit(self) -> None:
        audits.audit(self.network_id)

    def grow(self) -> None:
        self.rng.choice((self.gem, self.coin)).transact("spam", self.rng.randint(1, 4))
        self.node.mine(self.rng.randint(1, 12))

    def reorganise(self) -> None:
        instead = self.rng.choice((self.gem, self.coin)).request("spam", 2)
        self.node.reorg(self.rng.randint(1, 5), [(instead, 0)])

    def backfill(self) -> None:
        advance(self.network_id, 0.01)

    def register(self) -> None:
        if self.contract is None:
            self.contract = listen(self.gem, start=self.rng.choice((0, None, 5)))

    def remove(self) -> None:
        if self.contract is not None:
            self.contract.delete()
            changed(self.network_id)
            self.contract = None

    def switch(self) -> None:
        if self.contract is not None:
            change(self.contract, listening=self.rng.random() < 0.5)

    def examine(self) -> None:
        # Otherwise the chain or the contracts are about to be indexed again.
        with suppress(NodeFailure, Lost):
            audits.examine(self.network_id, 0, _EVERYTHING, repairing=True)

    def harm(self) -> None:
        for item in self.rng.sample([*ContractEvent.objects.filter(canonical=True)], 6):
            if self.rng.random() < 0.5:
                item.delete()
            else:
                ContractEvent.objects.filter(pk=item.pk).update(args={"tokenId": "wrong"})

    def make_peace(self) -> None:
        self.register()
        assert self.contract is not None
        change(self.contract, listening=True, start_block=0)
        self.node.mine(10)
        follow(self.network_id)
        while open_ranges(self.network_id):
            Backfill.objects.update(paused_until=None)
            assert advance(self.network_id)


at_length = [pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4, 5, *[DRAWN] * 5)]


@pytest.mark.parametrize("seed", [1, 2, *at_length])
def test_in_the_end_everything_is_stored_once(node: Node, seed: int | str) -> None:
    adversary = Adversary(node, seed_of(seed))
    network_id = adversary.network_id
    for number in range(50):
        adversary.rng.choice(adversary.acts())()
        if number == 20:
            listen(adversary.coin, name="Coin")
    adversary.make_peace()
    cursor = Cursor.objects.get()
    assert cursor.number == node.head
    assert stored() == on_chain(node)
    report = audits.examine(network_id, 0, _EVERYTHING)
    assert (report.is_clean, report.events) == (True, len(stored()))

    adversary.harm()
    assert audits.examine(network_id, 0, _EVERYTHING, repairing=True).mended == 6
    assert stored() == on_chain(node)
    assert audits.examine(network_id, 0, _EVERYTHING).is_clean
    numbers = [*OutboxEntry.objects.order_by("seq").values_list("seq", flat=True)]
    assert numbers == [*range(1, Cursor.objects.get().outbox + 1)]

"""The chains that are read: anvil's, filled with as many events as are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.evm.artefacts import Contract
from tests.evm.node import Node, running_node

CHAIN_ID = 31337
EVENTS_A_BLOCK = 500
_GAS = ("--gas-limit", "3000000000")
_FINAL = 200
"""Blocks mined after the events: more than any contender wants before it takes them as final."""


@dataclass(frozen=True)
class Filled:
    """A chain with events of one contract."""

    node: Node
    gem: Contract
    first: int
    last: int
    events: int


@contextmanager
def filled(events: int, *, dynamic: bool = False) -> Iterator[Filled]:
    """A chain with so many Transfer events (``dynamic``: GemforceMinted), 500 a block."""
    with running_node(CHAIN_ID, *_GAS) as node:
        gem = node.deployed("Gem")
        node.automine(False)
        blocks = events // EVENTS_A_BLOCK
        first = node.head + 1
        method, arguments = ("spamMinted", [2]) if dynamic else ("spam", [])
        for _ in range(blocks):
            gem.transact(method, EVENTS_A_BLOCK, *arguments, gas=EVENTS_A_BLOCK * 10_000 + 200_000)
            node.mine()
        last = node.head
        node.mine(_FINAL)
        node.automine(True)
        yield Filled(node, gem, first, last, blocks * EVENTS_A_BLOCK)

"""An adversary mines, reorganises and rolls back while the chain is read, between any two answers,
and processes crash before they commit: what is stored and sent is always the chain."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest
from django.db import connection

from chain.core.failures import NodeFailure
from chain.indexing import head as following
from chain.models import Reorganisation
from tests.chain.indexed_network import Network, listen, network
from tests.evm.node import Node
from tests.evm.proxy import Call
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db

RACES = 0.08  # of the calls
CRASHES = 0.15  # of the steps
DEEPEST = 60

CRASHING = """
CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('chaos.crash', true) = 'on' THEN RAISE 'crash'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER crash AFTER UPDATE OF number ON chain_cursor FOR EACH ROW EXECUTE FUNCTION crash()
"""


class Adversary:
    """Mines a network's chain and reorganises it, except for what is final."""

    def __init__(self, world: Network, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.base = world.node.head
        self.highest = self.base
        self.did: Counter[str] = Counter()

    def act(self) -> None:
        kind = self.random.random()
        head = self.world.node.head
        self.highest = max(self.highest, head)
        room = head - max(self.base, self.highest - DEEPEST)
        if kind < 0.55 or room < 2:
            self.did["minted"] += 1
            self.world.send(self.random.randrange(1, 4))
            self.world.node.mine()
        elif kind < 0.65:
            self.world.node.mine()
        elif kind < 0.86:
            self._reorganise(self._depth(room))
        else:
            self.did["rolled back"] += 1
            self.world.node.rollback(self._depth(room) - 1 or 1)

    def _depth(self, room: int) -> int:
        deep = room if self.random.random() < 0.05 else min(room, 7)
        return self.random.randrange(1, deep + 1)

    def _reorganise(self, depth: int) -> None:
        self.did["reorganised"] += 1
        self.world.node.reorg(
            depth,
            [
                (self.world.gem.request("spam", self.random.randrange(1, 4)), place)
                for place in range(depth)
                if self.random.random() < 0.3
            ],
        )

    def race(self, call: Call) -> Any:
        """Before a call is answered, something may happen."""
        if self.random.random() < RACES:
            self.did["raced"] += 1
            self.act()
        return call.forward()


def rounds(node: Node, seed: int, count: int) -> Adversary:
    """So many rounds, the chain compared after every second one."""
    node.mine(3)
    with network(node) as world:
        listen(world)
        world.follow()
        adversary = Adversary(world, seed)
        with connection.cursor() as cursor:
            cursor.execute(CRASHING)
        for number in range(count):
            for _ in range(adversary.random.randrange(1, 5)):
                adversary.act()
            world.proxy.on("*", adversary.race)
            for _ in range(3):
                _step(adversary)
            world.proxy.be_good()
            if number % 2:
                _outgrow(world)
                world.follow()
                world.check()
        adversary.did["repaired"] = Reorganisation.objects.count()
        return adversary


def _step(adversary: Adversary) -> None:
    crashes = adversary.random.random() < CRASHES
    _let_crash(crashes)
    try:
        with suppress(NodeFailure, following.Elsewhere):
            following.step(adversary.world.network_id)
    except psycopg.errors.RaiseException:
        assert crashes
        adversary.did["crashed"] += 1
    finally:
        _let_crash(False)


def _let_crash(on: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('chaos.crash', %s, false)", ["on" if on else "off"])


def _outgrow(world: Network) -> None:
    """A shorter chain of the same blocks is a node that's behind, not another chain."""
    world.node.mine(max(1, (world.cursor.number or 0) - world.node.head + 1))


def test_a_little_chaos(node: Node) -> None:
    did = rounds(node, seed=5, count=14).did
    assert all(did[item] for item in ("minted", "reorganised", "raced", "crashed", "repaired"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, DRAWN])
def test_much_chaos(node: Node, seed: int | str) -> None:
    did = rounds(node, seed_of(seed), count=250).did
    assert did["repaired"] > 25
    assert did["raced"] > 50
    assert did["crashed"] > 5

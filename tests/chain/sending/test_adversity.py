"""Sending among nodes that err, blocks that go away and answers that get lost: each action whose
hash was returned is done once, and none that was refused is done."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from backend.kernel.errors import ScriptFailed, ServiceUnavailable
from chain.rpc import pool
from chain.sending.outgoing import send
from tests.chain.sending.desk import Desk
from tests.evm.artefacts import Contract
from tests.evm.proxy import Call, Dropped, RpcError, proxied
from tests.random_seeds import DRAWN, seed_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ACTIONS = 40


class Adversary:
    """Errs at random, by a seed."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self.desk = desk
        self.random = Random(seed)

    def hear(self, call: Call) -> Any:
        """What becomes of a transaction that is handed over."""
        fate = self.random.random()
        if fate < 0.15:
            raise Dropped
        if fate < 0.3:
            call.forward()
            raise Dropped
        if fate < 0.4:
            raise RpcError(-32000, "insufficient funds for gas * price + value")
        if fate < 0.45:
            raise RpcError(-32000, "transaction underpriced")
        return call.forward()

    def act(self) -> None:
        """What happens between two actions."""
        node, fate = self.desk.node, self.random.random()
        if fate < 0.4:
            node.mine(self.random.randint(1, 2))
        elif fate < 0.5:
            node.reorg(self.random.randint(1, 3))
        elif fate < 0.6:
            waiting = [row for row in self.desk.rows if row.state == "sent"]
            if waiting:
                node.rpc("anvil_dropTransaction", self.random.choice(waiting).hash)
        if self.random.random() < 0.5:
            pool.forget()
            self.desk.look_after(self.random.choice((0, 15, 30, 150)))


@pytest.mark.parametrize("seed", [1, DRAWN])
def test_each_action_is_done_once_or_refused(desk: Desk, seed: int | str) -> None:
    coin = desk.node.deployed("Coin")
    desk.node.mine(4)
    desk.node.automine(False)
    done, refused = [], []
    try:
        with proxied(desk.node) as proxy:
            desk.behind(proxy.url)
            adversary = Adversary(desk, seed_of(seed))
            proxy.on("eth_sendRawTransaction", adversary.hear)
            for number in range(1, ACTIONS + 1):
                pool.forget()
                (done if mint(desk, coin, number) else refused).append(number)
                adversary.act()
            proxy.be_good()
            pool.forget()
            settle(desk)
    finally:
        desk.node.automine(True)
    owned = {number: coin.call("balanceOf", owner(number)) for number in (*done, *refused)}
    assert {number for number in done if owned[number] != 1} == set()
    assert {number for number in refused if owned[number] != 0} == set()
    assert done
    assert refused


def owner(number: int) -> str:
    return f"0x{number:040x}"


def mint(desk: Desk, coin: Contract, number: int) -> bool:
    """Whether the action is the service's to do from now on."""
    data = coin.data("mint", owner(number), 1)
    try:
        send(desk.network_id, coin.address, data, purpose="test")
    except (ScriptFailed, ServiceUnavailable):
        return False
    return True


def settle(desk: Desk) -> None:
    """Let everything come to its end."""
    for _ in range(40):
        desk.look_after(31)
        desk.node.mine()
        if not {"signed", "sent"} & set(desk.states):
            return
    raise AssertionError([(row.nonce, row.state, row.trouble) for row in desk.rows])

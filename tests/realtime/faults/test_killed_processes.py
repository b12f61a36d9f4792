"""Processes and engines die in the middle of a stream of events: every client that comes back with
its cursor has each event once, in order."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.chain.faults.installation import Installation
from tests.chain.faults.installation import until as until_true
from tests.evm.node import Node, running_node
from tests.ports import free_port
from tests.realtime.channel.oracle import OUTBOX, Row, expected, rows_of
from tests.realtime.faults.listeners import Listener, ended, until

pytestmark = [pytest.mark.process, pytest.mark.slow]

EVENTS = 10_000
A_BLOCK = 250
CLIENTS = 24
_GAS = ("--gas-limit", "3000000000")


class Realtime:
    """Two realtime processes, which are where clients come to by turns."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.ports = {"first": free_port(), "second": free_port()}
        self.chance = random.Random(6)
        for key in self.ports:
            self.start(key)

    def start(self, key: str) -> None:
        self.installation.start(
            "realtime",
            f"realtime {key}",
            REALTIME_BIND=f"127.0.0.1:{self.ports[key]}",
            WS_MAX_PER_ADDRESS="0",
        )

    def kill(self, key: str) -> None:
        self.installation.kill(f"realtime {key}")

    async def connect(self, path: str) -> ClientConnection:
        port = self.chance.choice([*self.ports.values()])
        return await connect(f"ws://127.0.0.1:{port}{path}", compression=None, open_timeout=15)


def test_ten_thousand_events_reach_everybody_once_whatever_dies(
    installation: Installation,
) -> None:
    with running_node(7106, *_GAS) as node:
        gem = node.deployed("Gem")
        node.automine(False)
        node.mine(5)
        installation.follow(node, gem)
        installation.with_processes("chain", "backfill", "beat")
        until_true(lambda: installation.is_done(node))
        realtime = Realtime(installation)
        clients, rows = asyncio.run(_stream(installation, realtime, node, gem))
        assert len(expected(rows, reorg=False)) >= EVENTS
        for client in clients:
            assert client.hellos > 1, "it was never cut off"
            assert client.resets == []
            reorg = "reorg" in client.query
            assert client.told == expected(rows, reorg=reorg)


async def _stream(
    installation: Installation, realtime: Realtime, node: Node, gem: Any
) -> tuple[list[Listener], list[Row]]:
    """The clients at the end, when each has received everything, and what there was to send.

    Engines and processes end with the threads that have started them: here, after this.
    """
    clients = [
        Listener(
            realtime.connect,
            f"network={node.chain_id}{'&reorg=1' if number % 3 == 2 else ''}",
            since="0",
        )
        for number in range(CLIENTS)
    ]
    tasks = [asyncio.create_task(client.listen()) for client in clients]
    await until(lambda: all(client.hellos for client in clients))
    faults = _faults(installation, realtime)
    for number in range(EVENTS // A_BLOCK):
        await asyncio.to_thread(_block, node, gem)
        if number % 5 == 4:
            await asyncio.to_thread(next(faults, lambda: None))
        if number % 10 == 7:
            await asyncio.to_thread(_reorganise, node)
    await asyncio.to_thread(until_true, lambda: installation.is_done(node))
    rows = await asyncio.to_thread(_outbox, installation, node.chain_id)
    lengths = {
        False: len(expected(rows, reorg=False)),
        True: len(expected(rows, reorg=True)),
    }
    await until(lambda: all(len(item.frames) >= lengths["reorg" in item.query] for item in clients))
    await ended(tasks)
    return clients, rows


def _faults(installation: Installation, realtime: Realtime) -> Any:
    """What happens, one after the other: each is a function that does it."""

    def replaced(key: str) -> None:
        realtime.kill(key)
        realtime.start(key)

    def redis() -> None:
        installation.redis.stop()
        installation.redis.start()

    def postgres() -> None:
        installation.postgres.stop()
        installation.postgres.start()

    def follower() -> None:
        installation.kill("chain")
        installation.start("chain")

    yield lambda: replaced("first")
    yield redis
    yield follower
    yield lambda: replaced("second")
    yield postgres
    yield lambda: (replaced("first"), replaced("second"))
    yield follower


def _block(node: Node, gem: Any) -> None:
    gem.transact("spam", A_BLOCK, gas=A_BLOCK * 5_000 + 200_000)
    node.mine()


def _reorganise(node: Node) -> None:
    """The last block goes, and its transaction comes back in another one."""
    block = node.block()
    raws = [node.rpc("eth_getRawTransactionByHash", sent) for sent in block["transactions"]]
    node.rollback(1)
    node.mine()
    for raw in raws:
        node.send_raw(raw)
    node.mine()


def _outbox(installation: Installation, network: int) -> list[Row]:
    return rows_of(installation.rows(OUTBOX, network))

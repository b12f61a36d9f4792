"""Clients come and go at two processes while a chain grows and reorganises: each gets each
event once, in order."""

from __future__ import annotations

import random
import threading

import pytest

from tests.realtime.channel.chains import Chain
from tests.realtime.channel.channel import Client, ProcessHarness
from tests.realtime.channel.oracle import OUTBOX, expected, rows_of, token_of

pytestmark = pytest.mark.django_db

STEPS = 120


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_reconnect_miss_nothing(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain, seed: int
) -> None:
    rng = random.Random(seed)
    clients = [ResumingClient(chain, reorg=bool(number % 2)) for number in range(6)]
    writer = threading.Thread(target=_history, args=(chain, random.Random(seed)))
    writer.start()
    while writer.is_alive():
        client = rng.choice(clients)
        if client.connection is None:
            client.connect(rng.choice((harness, second)))
        else:
            client.read(rng.randrange(20))
            if rng.random() < 0.5:
                client.disconnect()
    writer.join()
    rows = rows_of(chain.rows(OUTBOX))
    for client in clients:
        expected_events = expected(rows, reorg=client.reorg)
        if client.connection is None:
            client.connect(rng.choice((harness, second)))
        for _ in range(len(expected_events) - len(client.tokens)):
            client.take()
        assert client.tokens == expected_events
        assert client.connection is not None
        client.connection.expect_nothing()


class ResumingClient:
    """A client that reconnects with the last received id."""

    def __init__(self, chain: Chain, *, reorg: bool, more: str = "") -> None:
        self.reorg = reorg
        self.tokens: list[int] = []
        self.connection: Client | None = None
        self._query = f"network={chain.network_id}&reorg={int(reorg)}{more}"
        self._cursor = "0"

    def connect(self, harness: ProcessHarness) -> None:
        self.connection = harness.connect(f"{self._query}&since={self._cursor}")
        hello = self.connection.next()
        assert hello["event"] == "hello"
        self._cursor = hello["id"]

    def read(self, most: int) -> None:
        """Receive the available messages, at most this many."""
        assert self.connection is not None
        for _ in range(most):
            if not self.connection.has_more():
                return
            self.take()

    def take(self) -> None:
        """Receive the next message, waiting for it."""
        assert self.connection is not None
        message = self.connection.next()
        assert message["event"] == "Transfer", message
        self.tokens.append(token_of(message))
        self._cursor = message["id"]

    def disconnect(self) -> None:
        assert self.connection is not None
        self.connection.leave()
        self.connection = None


def _history(chain: Chain, rng: random.Random) -> None:
    height, tokens = 0, 0
    blocks: dict[int, list[int]] = {}
    for step in range(STEPS):
        if height and rng.random() < 0.25:
            depth = rng.randrange(1, min(height, 4) + 1)
            chain.remove(height - depth)
            # Their transactions come again, some of them, in one block.
            again = [item for n in range(height - depth + 1, height + 1) for item in blocks.pop(n)]
            height -= depth - 1
            blocks[height] = rng.sample(again, rng.randrange(len(again) + 1))
        else:
            height += 1
            new = rng.randrange(4)
            blocks[height] = [*range(tokens + 1, tokens + new + 1)]
            tokens += new
        if blocks[height]:
            chain.add(*blocks[height], block=height, fork=f"{step:x}")

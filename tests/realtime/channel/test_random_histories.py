"""Clients come and go at two processes while a chain grows and reorganises: each gets each
event once, in order."""

from __future__ import annotations

import random
import threading

import pytest

from tests.realtime.channel.chains import Chain
from tests.realtime.channel.channel import Client, House
from tests.realtime.channel.oracle import OUTBOX, expected, rows_of, token_of

pytestmark = pytest.mark.django_db

STEPS = 120


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_come_and_go_miss_nothing(
    house: House, second: House, chain: Chain, seed: int
) -> None:
    chance = random.Random(seed)
    guests = [Guest(chain, reorg=bool(number % 2)) for number in range(6)]
    writer = threading.Thread(target=_history, args=(chain, random.Random(seed)))
    writer.start()
    while writer.is_alive():
        guest = chance.choice(guests)
        if guest.client is None:
            guest.come(chance.choice((house, second)))
        else:
            guest.read(chance.randrange(20))
            if chance.random() < 0.5:
                guest.go()
    writer.join()
    rows = rows_of(chain.rows(OUTBOX))
    for guest in guests:
        expected_events = expected(rows, reorg=guest.reorg)
        if guest.client is None:
            guest.come(chance.choice((house, second)))
        for _ in range(len(expected_events) - len(guest.tokens)):
            guest.take()
        assert guest.tokens == expected_events
        assert guest.client is not None
        guest.client.is_told_nothing()


class Guest:
    """A client that comes back with the last id that it got."""

    def __init__(self, chain: Chain, *, reorg: bool, more: str = "") -> None:
        self.reorg = reorg
        self.tokens: list[int] = []
        self.client: Client | None = None
        self._query = f"network={chain.network_id}&reorg={int(reorg)}{more}"
        self._cursor = "0"

    def come(self, house: House) -> None:
        self.client = house.connect(f"{self._query}&since={self._cursor}")
        hello = self.client.next()
        assert hello["event"] == "hello"
        self._cursor = hello["id"]

    def read(self, most: int) -> None:
        """Take what is there, as far as it goes."""
        assert self.client is not None
        for _ in range(most):
            if not self.client.has_more():
                return
            self.take()

    def take(self) -> None:
        """Take the next message, which may still be on its way."""
        assert self.client is not None
        message = self.client.next()
        assert message["event"] == "Transfer", message
        self.tokens.append(token_of(message))
        self._cursor = message["id"]

    def go(self) -> None:
        assert self.client is not None
        self.client.leave()
        self.client = None


def _history(chain: Chain, chance: random.Random) -> None:
    height, tokens = 0, 0
    blocks: dict[int, list[int]] = {}
    for step in range(STEPS):
        if height and chance.random() < 0.25:
            depth = chance.randrange(1, min(height, 4) + 1)
            chain.remove(height - depth)
            # Their transactions come again, some of them, in one block.
            again = [item for n in range(height - depth + 1, height + 1) for item in blocks.pop(n)]
            height -= depth - 1
            blocks[height] = chance.sample(again, chance.randrange(len(again) + 1))
        else:
            height += 1
            new = chance.randrange(4)
            blocks[height] = [*range(tokens + 1, tokens + new + 1)]
            tokens += new
        if blocks[height]:
            chain.add(*blocks[height], block=height, fork=f"{step:x}")

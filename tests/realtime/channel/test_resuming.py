"""Clients that come back get what they have missed, each event once and in order."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs

import pytest

from realtime.channel.catch_up import catch_up
from realtime.channel.pages import ROWS
from realtime.core.cursors import Cursor, Marks
from realtime.core.event_queries import parse
from tests.realtime.channel.chains import Chain
from tests.realtime.channel.channel import House
from tests.realtime.channel.test_messages import of

pytestmark = pytest.mark.django_db


def test_hello_comes_first_and_says_what_there_is(house: House, chain: Chain) -> None:
    chain.add(1, 2, block=1)
    client = house.connect(of(chain, "&since=now"))
    hello = client.next()
    assert hello["event"] == "hello"
    assert hello["data"]["networks"][str(chain.network_id)] == {"oldest": 1, "newest": 2}
    assert f".{chain.network_id}:2." in hello["id"]
    client.is_told_nothing()


def test_hello_has_the_networks_that_were_named(house: House, chain: Chain) -> None:
    chain.add(1, block=1)
    networks = house.connect("network=999&since=now").next()["data"]["networks"]
    assert str(chain.network_id) not in networks


def test_detailed_messages_say_where_the_event_is(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since="))
    client.next()
    chain.add(7, block=5)
    message = client.next()
    assert message["event"] == "Transfer"
    assert message["data"]["tokenId"] == "7"
    assert (message["networkId"], message["blockNumber"]) == (str(chain.network_id), 5)
    assert message["contractName"] == "Gem"
    assert message["transactionHash"].startswith("0x")
    assert "removed" not in message


def test_who_comes_back_is_told_what_was_missed(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    client.leave()
    chain.add(3, 4, block=2)
    again = house.connect(of(chain, f"&since={client.cursor}"))
    assert again.next()["event"] == "hello"
    chain.add(5, block=3)
    assert again.tokens(3) == [3, 4, 5]


def test_each_message_is_a_place_to_go_on_from(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now"))
    cursors = [client.next()["id"]]
    chain.add(*range(1, 6), block=1)
    cursors += [client.next()["id"] for _ in range(5)]
    for missed, cursor in enumerate(cursors):
        again = house.connect(of(chain, f"&since={cursor}"))
        again.next()
        assert again.tokens(5 - missed) == [*range(missed + 1, 6)]


def test_another_process_goes_on(house: House, second: House, chain: Chain) -> None:
    second.connect(of(chain))
    client = house.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    again = second.connect(of(chain, f"&since={client.cursor}"))
    again.next()
    chain.add(3, block=2)
    assert again.tokens(1) == [3]


def test_the_beginning_is_what_is_kept(house: House, chain: Chain) -> None:
    chain.add(*range(1, 6), block=1)
    chain.prune(2)
    client = house.connect(of(chain, "&since=0"))
    assert client.next()["data"]["networks"][str(chain.network_id)]["oldest"] == 3
    assert client.tokens(3) == [3, 4, 5]


def test_many_pages_are_told_in_order_and_then_what_happens(house: House, chain: Chain) -> None:
    count = ROWS * 3 + 17
    for block in range(1, count, 100):
        chain.add(*range(block, min(block + 100, count + 1)), block=block)
    early = house.connect(of(chain, "&since=0"))
    late = house.connect(of(chain, "&since=0"))
    early.next()
    late.next()
    chain.add(count + 1, block=count + 1)
    assert early.tokens(count + 1) == [*range(1, count + 2)]
    assert late.tokens(count + 1) == [*range(1, count + 2)]
    # Pages are read once for both.
    assert house.feed().pages.read <= 8


def test_filters_hold_for_what_was_missed(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now&contract=Coin&event=*"))
    cursor = client.next()["id"]
    chain.add(1, block=1)
    chain.add(2, block=2, contract_name="Coin")
    chain.add(3, block=3, contract_name="Coin", event_name="Minted")
    again = house.connect(of(chain, f"&contract=Coin&event=*&since={cursor}"))
    again.next()
    assert again.tokens(2) == [2, 3]


def test_a_network_that_comes_later_is_told_from_its_beginning(house: House, chain: Chain) -> None:
    client = house.connect("since=now")
    cursor = client.next()["id"]
    client.leave()
    from tests.realtime.channel.chains import Chain as NewChain

    late = NewChain(chain._aside)
    late.add(1, block=1)
    again = house.connect(f"since={cursor}&network={late.network_id}")
    again.next()
    assert again.tokens(1) == [1]


# -- What can't be sent any more ------------------------------------------------------------------


def test_what_is_not_kept_any_more_is_a_reset(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now"))
    cursor = client.next()["id"]
    client.leave()
    chain.add(1, 2, 3, block=1)
    chain.prune(2)
    # Kept by the process itself as long as it runs.
    house.pump.channel.skip(chain.network_id, 3)
    again = house.connect(of(chain, f"&since={cursor}"))
    assert again.next()["event"] == "hello"
    reset = again.next()
    assert (reset["event"], reset["data"]["reason"]) == ("reset", "expired")
    chain.add(4, block=2)
    assert again.tokens(1) == [4]
    last = house.connect(of(chain, f"&since={reset['id']}"))
    last.next()
    assert last.tokens(1) == [4]


def test_a_restored_backup_is_a_reset_for_who_comes_back(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now"))
    cursor = client.next()["id"]
    client.leave()
    chain.restored()
    house.look()
    again = house.connect(of(chain, f"&since={cursor}"))
    again.next()
    assert again.next()["data"]["reason"] == "epoch"


def test_a_restored_backup_is_a_reset_for_who_is_connected(house: House, chain: Chain) -> None:
    detailed, plain = house.connect(of(chain, "&since=now")), house.connect(of(chain))
    detailed.next()
    chain.restored()
    house.look()
    assert detailed.next()["data"]["reason"] == "epoch"
    chain.add(1, block=1)
    assert detailed.tokens(1) == plain.tokens(1) == [1]


class Reader:
    """A connection whose client reads when it is let."""

    def __init__(self, query: str) -> None:
        self.subscription = parse(parse_qs(query))
        self.starts: dict[int, int] = {}
        self.tail = ""
        self.frames: list[bytes] = []
        self.reads = asyncio.Event()

    @property
    def is_behind(self) -> bool:
        return bool(self.frames) and not self.reads.is_set()

    def enqueue(self, frame: bytes) -> None:
        self.frames.append(frame)

    def fell_behind(self, positions: Marks) -> None:
        raise AssertionError("it reads what it is told")

    async def drain(self) -> None:
        await self.reads.wait()


def test_a_restored_backup_is_a_reset_for_who_is_catching_up(house: House, chain: Chain) -> None:
    chain.add(1, 2, 3, block=1)
    feed = house.feed()
    house.look()

    async def begun() -> tuple[Reader, asyncio.Task[None]]:
        reader = Reader(of(chain, "&since=0"))
        cursor = Cursor(feed.channel.epoch, {}, {})
        catching_up = asyncio.create_task(catch_up(feed, reader, cursor))
        while not reader.frames:
            await asyncio.sleep(0.005)
        return reader, catching_up

    async def finished() -> None:
        reader.reads.set()
        await task

    reader, task = house.run(begun())
    chain.restored()
    house.look()
    house.run(finished())
    assert [json.loads(frame)["event"] for frame in reader.frames] == ["Transfer", "reset"]


def test_a_place_that_was_never_reached_is_a_reset(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=now"))
    chain.add(1, block=1)
    client.next()
    cursor = client.next()["id"].replace(f"{chain.network_id}:1", f"{chain.network_id}:9")
    again = house.connect(of(chain, f"&since={cursor}"))
    again.next()
    assert again.next()["data"]["reason"] == "ahead"


def test_a_cursor_of_another_version_is_a_reset(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&since=9.something"))
    assert client.next()["event"] == "hello"
    assert client.next()["event"] == "reset"

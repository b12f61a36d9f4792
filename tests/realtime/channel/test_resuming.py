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
from tests.realtime.channel.channel import ProcessHarness
from tests.realtime.channel.test_messages import of

pytestmark = pytest.mark.django_db


def test_hello_is_first_and_has_the_oldest_and_newest_rows(
    harness: ProcessHarness, chain: Chain
) -> None:
    chain.add(1, 2, block=1)
    client = harness.connect(of(chain, "&since=now"))
    hello = client.next()
    assert hello["event"] == "hello"
    assert hello["data"]["networks"][str(chain.network_id)] == {"oldest": 1, "newest": 2}
    assert f".{chain.network_id}:2." in hello["id"]
    client.expect_nothing()


def test_hello_has_only_the_requested_networks(harness: ProcessHarness, chain: Chain) -> None:
    chain.add(1, block=1)
    networks = harness.connect("network=999&since=now").next()["data"]["networks"]
    assert str(chain.network_id) not in networks


def test_detailed_messages_have_the_position_of_the_event(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since="))
    client.next()
    chain.add(7, block=5)
    message = client.next()
    assert message["event"] == "Transfer"
    assert message["data"]["tokenId"] == "7"
    assert (message["networkId"], message["blockNumber"]) == (str(chain.network_id), 5)
    assert message["contractName"] == "Gem"
    assert message["transactionHash"].startswith("0x")
    assert "removed" not in message


def test_a_client_that_resumes_gets_the_missed_events(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    client.leave()
    chain.add(3, 4, block=2)
    again = harness.connect(of(chain, f"&since={client.cursor}"))
    assert again.next()["event"] == "hello"
    chain.add(5, block=3)
    assert again.tokens(3) == [3, 4, 5]


def test_the_cursor_of_each_message_can_be_resumed(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, "&since=now"))
    cursors = [client.next()["id"]]
    chain.add(*range(1, 6), block=1)
    cursors += [client.next()["id"] for _ in range(5)]
    for missed, cursor in enumerate(cursors):
        again = harness.connect(of(chain, f"&since={cursor}"))
        again.next()
        assert again.tokens(5 - missed) == [*range(missed + 1, 6)]


def test_another_process_resumes_a_cursor(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain
) -> None:
    second.connect(of(chain))
    client = harness.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    again = second.connect(of(chain, f"&since={client.cursor}"))
    again.next()
    chain.add(3, block=2)
    assert again.tokens(1) == [3]


def test_since_0_starts_at_the_oldest_stored_row(harness: ProcessHarness, chain: Chain) -> None:
    chain.add(*range(1, 6), block=1)
    chain.prune(2)
    client = harness.connect(of(chain, "&since=0"))
    assert client.next()["data"]["networks"][str(chain.network_id)]["oldest"] == 3
    assert client.tokens(3) == [3, 4, 5]


def test_many_pages_are_sent_in_order_and_then_live_events(
    harness: ProcessHarness, chain: Chain
) -> None:
    count = ROWS * 3 + 17
    for block in range(1, count, 100):
        chain.add(*range(block, min(block + 100, count + 1)), block=block)
    early = harness.connect(of(chain, "&since=0"))
    late = harness.connect(of(chain, "&since=0"))
    early.next()
    late.next()
    chain.add(count + 1, block=count + 1)
    assert early.tokens(count + 1) == [*range(1, count + 2)]
    assert late.tokens(count + 1) == [*range(1, count + 2)]
    # Pages are read once for both.
    assert harness.feed().pages.read <= 8


def test_filters_apply_to_missed_events(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, "&since=now&contract=Coin&event=*"))
    cursor = client.next()["id"]
    chain.add(1, block=1)
    chain.add(2, block=2, contract_name="Coin")
    chain.add(3, block=3, contract_name="Coin", event_name="Minted")
    again = harness.connect(of(chain, f"&contract=Coin&event=*&since={cursor}"))
    again.next()
    assert again.tokens(2) == [2, 3]


def test_a_network_added_later_is_sent_from_its_first_row(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect("since=now")
    cursor = client.next()["id"]
    client.leave()
    from tests.realtime.channel.chains import Chain as NewChain

    late = NewChain(chain._aside)
    late.add(1, block=1)
    again = harness.connect(f"since={cursor}&network={late.network_id}")
    again.next()
    assert again.tokens(1) == [1]


# -- What can't be sent any more ------------------------------------------------------------------


def test_a_cursor_before_the_oldest_stored_row_is_a_reset(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since=now"))
    cursor = client.next()["id"]
    client.leave()
    chain.add(1, 2, 3, block=1)
    chain.prune(2)
    # Kept by the process itself as long as it runs.
    harness.pump.channel.skip(chain.network_id, 3)
    again = harness.connect(of(chain, f"&since={cursor}"))
    assert again.next()["event"] == "hello"
    reset = again.next()
    assert (reset["event"], reset["data"]["reason"]) == ("reset", "expired")
    chain.add(4, block=2)
    assert again.tokens(1) == [4]
    last = harness.connect(of(chain, f"&since={reset['id']}"))
    last.next()
    assert last.tokens(1) == [4]


def test_a_restored_backup_is_a_reset_for_clients_that_resume(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since=now"))
    cursor = client.next()["id"]
    client.leave()
    chain.restored()
    harness.poll()
    again = harness.connect(of(chain, f"&since={cursor}"))
    again.next()
    assert again.next()["data"]["reason"] == "epoch"


def test_a_restored_backup_is_a_reset_for_connected_clients(
    harness: ProcessHarness, chain: Chain
) -> None:
    detailed, plain = harness.connect(of(chain, "&since=now")), harness.connect(of(chain))
    detailed.next()
    chain.restored()
    harness.poll()
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

    def catch_up_from(self, positions: Marks) -> None:
        raise AssertionError("the client reads its messages")

    async def drain(self) -> None:
        await self.reads.wait()


def test_a_restored_backup_is_a_reset_for_clients_catching_up(
    harness: ProcessHarness, chain: Chain
) -> None:
    chain.add(1, 2, 3, block=1)
    feed = harness.feed()
    harness.poll()

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

    reader, task = harness.run(begun())
    chain.restored()
    harness.poll()
    harness.run(finished())
    assert [json.loads(frame)["event"] for frame in reader.frames] == ["Transfer", "reset"]


def test_a_position_that_was_never_reached_is_a_reset(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since=now"))
    chain.add(1, block=1)
    client.next()
    cursor = client.next()["id"].replace(f"{chain.network_id}:1", f"{chain.network_id}:9")
    again = harness.connect(of(chain, f"&since={cursor}"))
    again.next()
    assert again.next()["data"]["reason"] == "ahead"


def test_a_cursor_of_another_version_is_a_reset(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, "&since=9.something"))
    assert client.next()["event"] == "hello"
    assert client.next()["event"] == "reset"

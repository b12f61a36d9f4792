"""What a reorganisation brings back is not sent twice; subscribers with reorg=1 get removals."""

from __future__ import annotations

import pytest

from tests.realtime.channel.chains import ANN, Chain
from tests.realtime.channel.channel import ProcessHarness
from tests.realtime.channel.test_messages import of

pytestmark = pytest.mark.django_db


def test_an_event_that_returns_unchanged_is_sent_once(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain))
    chain.add(1, 2, 3, block=1)
    chain.remove(0)
    # In another block, in another order, and one that is new.
    chain.add(3, 1, 4, block=1, fork="b")
    chain.remove(0)
    chain.add(1, 2, 3, block=1)
    assert client.tokens(4) == [1, 2, 3, 4]


def test_an_event_that_returns_with_other_contents_is_sent(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain))
    chain.add(1, block=1)
    chain.remove(0)
    chain.add(1, block=1, fork="b", args={"from": ANN, "to": ANN, "tokenId": "1"})
    assert client.tokens(2) == [1, 1]


def test_an_event_before_the_connection_is_sent_when_it_returns(
    harness: ProcessHarness, chain: Chain
) -> None:
    chain.add(1, block=1)
    client = harness.connect(of(chain))
    chain.remove(0)
    chain.add(1, block=2, fork="b")
    chain.remove(1)
    chain.add(1, block=3, fork="c")
    assert client.tokens(1) == [1]


def test_a_client_that_resumes_gets_no_event_twice(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    client.leave()
    chain.remove(0)
    chain.add(2, 1, 3, block=1, fork="b")
    for process in (harness, second):
        again = process.connect(of(chain, f"&since={client.cursor}"))
        again.next()
        assert again.tokens(1) == [3]


def test_with_reorg_removals_and_returns_are_sent(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, "&reorg=1"))
    chain.add(1, 2, block=1)
    chain.remove(0)
    chain.add(1, block=1, fork="b")
    assert client.tokens(5) == [1, 2, -2, -1, 1]


def test_a_removal_has_the_event_and_its_position(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain, "&reorg=1&since=now"))
    client.next()
    chain.add(1, block=9)
    added = client.next()
    chain.remove(0)
    removed = client.next()
    assert removed.pop("removed") is True
    assert removed.pop("id") != added.pop("id")
    assert removed == added


def test_the_removal_of_an_unsent_event_is_not_sent(harness: ProcessHarness, chain: Chain) -> None:
    plain, asking = harness.connect(of(chain)), harness.connect(of(chain, "&reorg=1"))
    chain.add_history(1, 2, block=1)
    chain.remove(0)
    asking.expect_nothing()
    chain.add(1, block=1, fork="b")
    assert plain.tokens(1) == asking.tokens(1) == [1]


def test_networks_are_reorganised_independently(
    harness: ProcessHarness, chain: Chain, other: Chain
) -> None:
    client = harness.connect(of(other, "&reorg=1"))
    for item in (chain, other):
        item.add(1, block=1)
    chain.remove(0)
    assert client.tokens(1) == [1]

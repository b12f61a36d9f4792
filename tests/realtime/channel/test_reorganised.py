"""What a reorganisation brings back is not sent twice; subscribers with reorg=1 get removals."""

from __future__ import annotations

import pytest

from tests.realtime.channel.chains import ANN, Chain
from tests.realtime.channel.channel import House
from tests.realtime.channel.test_messages import of

pytestmark = pytest.mark.django_db


def test_what_comes_back_as_it_was_is_told_once(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    chain.add(1, 2, 3, block=1)
    chain.remove(0)
    # In another block, in another order, and one that is new.
    chain.add(3, 1, 4, block=1, fork="b")
    chain.remove(0)
    chain.add(1, 2, 3, block=1)
    assert client.tokens(4) == [1, 2, 3, 4]


def test_what_comes_back_with_other_contents_is_told(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    chain.add(1, block=1)
    chain.remove(0)
    chain.add(1, block=1, fork="b", args={"from": ANN, "to": ANN, "tokenId": "1"})
    assert client.tokens(2) == [1, 1]


def test_what_was_told_before_a_connection_is_told_to_it_when_it_comes_back(
    house: House, chain: Chain
) -> None:
    chain.add(1, block=1)
    client = house.connect(of(chain))
    chain.remove(0)
    chain.add(1, block=2, fork="b")
    chain.remove(1)
    chain.add(1, block=3, fork="c")
    assert client.tokens(1) == [1]


def test_a_client_that_comes_back_is_not_told_again_what_it_knows(
    house: House, second: House, chain: Chain
) -> None:
    client = house.connect(of(chain, "&since=now"))
    client.next()
    chain.add(1, 2, block=1)
    assert client.tokens(2) == [1, 2]
    client.leave()
    chain.remove(0)
    chain.add(2, 1, 3, block=1, fork="b")
    for process in (house, second):
        again = process.connect(of(chain, f"&since={client.cursor}"))
        again.next()
        assert again.tokens(1) == [3]


def test_who_asks_is_told_what_is_removed_and_what_comes_back(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&reorg=1"))
    chain.add(1, 2, block=1)
    chain.remove(0)
    chain.add(1, block=1, fork="b")
    assert client.tokens(5) == [1, 2, -2, -1, 1]


def test_a_removal_says_what_was_where(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&reorg=1&since=now"))
    client.next()
    chain.add(1, block=9)
    added = client.next()
    chain.remove(0)
    removed = client.next()
    assert removed.pop("removed") is True
    assert removed.pop("id") != added.pop("id")
    assert removed == added


def test_nobody_is_told_the_removal_of_what_nobody_was_told(house: House, chain: Chain) -> None:
    plain, asking = house.connect(of(chain)), house.connect(of(chain, "&reorg=1"))
    chain.add_history(1, 2, block=1)
    chain.remove(0)
    asking.is_told_nothing()
    chain.add(1, block=1, fork="b")
    assert plain.tokens(1) == asking.tokens(1) == [1]


def test_networks_are_reorganised_by_themselves(house: House, chain: Chain, other: Chain) -> None:
    client = house.connect(of(other, "&reorg=1"))
    for item in (chain, other):
        item.add(1, block=1)
    chain.remove(0)
    assert client.tokens(1) == [1]

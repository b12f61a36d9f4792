"""What a client of ``/ws`` receives, and what it can choose."""

from __future__ import annotations

import pytest

from tests.realtime.channel.chains import ANN, COIN, GEM, NOBODY, Chain
from tests.realtime.channel.channel import House

pytestmark = pytest.mark.django_db


def of(chain: Chain, more: str = "") -> str:
    """Of this network only: events of other tests' networks may still arrive."""
    return f"network={chain.network_id}{more}"


def test_a_client_that_says_nothing_is_told_exactly_the_specified_message(
    house: House, chain: Chain
) -> None:
    client = house.connect()
    chain.add(7, block=1)
    assert client.next() == {
        "event": "Transfer",
        "data": {"from": NOBODY, "to": ANN, "tokenId": "7"},
    }
    client.is_told_nothing()


def test_a_fungible_tokens_transfer_has_a_value(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    args = {"from": NOBODY, "to": ANN, "value": "1000"}
    chain.add(1, block=1, args=args, contract_name="Coin", address=COIN)
    assert client.next() == {"event": "Transfer", "data": args}


def test_events_are_told_in_order_from_the_connection_on(house: House, chain: Chain) -> None:
    chain.add(1, 2, block=1)
    client = house.connect(of(chain))
    chain.add(3, 4, 5, block=2)
    chain.add(6, block=3)
    assert client.tokens(4) == [3, 4, 5, 6]


def test_two_processes_tell_the_same(house: House, second: House, chain: Chain) -> None:
    clients = [house.connect(of(chain)), second.connect(of(chain))]
    chain.add(1, 2, block=1)
    assert [client.tokens(2) for client in clients] == [[1, 2], [1, 2]]


def test_what_is_not_committed_is_not_told(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    with pytest.raises(ZeroDivisionError):
        chain.write(lambda seq: 1 // 0)
    chain.add_history(1, block=1)
    client.is_told_nothing()
    chain.add(2, block=2)
    assert client.tokens(1) == [2]


@pytest.mark.parametrize(
    ("query", "tokens"),
    [
        ("", [1, 2]),
        ("&contract=Gem", [1]),
        (f"&contract={GEM}", [1]),
        (f"&contract={COIN.lower()}", [2]),
        ("&contract=Gem,Coin", [1, 2]),
        ("&contract=Gem&contract=Coin", [1, 2]),
        ("&event=Transfer", [1, 2]),
        ("&event=*", [1, 2, 3]),
        ("&event=Minted", [3]),
        ("&event=Minted,Transfer&contract=Gem", [1, 3]),
    ],
)
def test_filters_choose(house: House, chain: Chain, query: str, tokens: list[int]) -> None:
    client = house.connect(of(chain, query))
    chain.add(1, block=1)
    chain.add(2, block=2, contract_name="Coin", address=COIN)
    minted = {"tokenId": "3", "minter": ANN, "metadata": [{"key": "a", "attributeType": 1}]}
    chain.add(3, block=3, event_name="Minted", args=minted)
    chain.add(4, block=4, event_name=None, args={"topics": [], "undecoded": "unknown event"})
    assert client.tokens(len(tokens)) == tokens


def test_networks_are_told_apart(house: House, chain: Chain, other: Chain) -> None:
    item, both = house.connect(of(chain)), house.connect(of(chain, f",{other.network_id}"))
    other.add(1, block=1)
    chain.add(2, block=1)
    assert item.tokens(1) == [2]
    assert sorted(both.tokens(2)) == [1, 2]


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "network=mainnet", "contract=", "reorg=perhaps", "event=" + "x" * 300],
)
def test_what_can_not_be_asked_for_is_refused(house: House, query: str) -> None:
    assert house.refused(query) == 4400


@pytest.mark.parametrize("query", ["contracts=Gem", "events=Minted&network=1", "x", "Network=1"])
def test_a_misspelled_filter_is_refused_and_never_means_every_event(
    house: House, query: str
) -> None:
    assert house.refused(query) == 4400


def test_keys_in_the_address_are_no_unknown_parameters(house: House, chain: Chain) -> None:
    client = house.connect(of(chain, "&applicationId=a&javascriptKey=b&restApiKey=c&clientKey=d"))
    chain.add(1, block=1)
    assert client.tokens(1) == [1]


def test_what_a_client_says_is_ignored_but_for_pings(house: House, chain: Chain) -> None:
    client = house.connect(of(chain))
    client.say("subscribe to everything")
    client.say('{"event": "ping"}')
    assert client.next() == {"event": "pong"}
    chain.add(1, block=1)
    assert client.tokens(1) == [1]


def test_a_client_that_has_gone_leaves_nothing_behind(house: House, chain: Chain) -> None:
    clients = [house.connect(of(chain)), house.connect("since=0")]
    for client in clients:
        client.leave()
    assert [*house.pump.channel.members()] == []
    assert house.feed().catching_up == 0
    chain.add(1, block=1)
    house.look()


def test_the_status_says_how_far_each_network_was_told(house: House, chain: Chain) -> None:
    house.connect(of(chain))
    chain.add(1, 2, block=1)
    house.look()
    status = house.pump.status()
    assert status["networks"][str(chain.network_id)] == {"newest": 2, "told": 2, "lag": 0}
    assert status["messages"] == 2
    assert status["last"]["contract"] == "Gem"
    assert status["readable"]

"""What a client of ``/ws`` receives, and what it can choose."""

from __future__ import annotations

import pytest

from tests.realtime.channel.chains import ANN, COIN, GEM, NOBODY, Chain
from tests.realtime.channel.channel import ProcessHarness

pytestmark = pytest.mark.django_db


def of(chain: Chain, more: str = "") -> str:
    """Of this network only: events of other tests' networks may still arrive."""
    return f"network={chain.network_id}{more}"


def test_without_parameters_a_client_gets_exactly_the_specified_message(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect()
    chain.add(7, block=1)
    assert client.next() == {
        "event": "Transfer",
        "data": {"from": NOBODY, "to": ANN, "tokenId": "7"},
    }
    client.expect_nothing()


def test_a_fungible_tokens_transfer_has_a_value(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain))
    args = {"from": NOBODY, "to": ANN, "value": "1000"}
    chain.add(1, block=1, args=args, contract_name="Coin", address=COIN)
    assert client.next() == {"event": "Transfer", "data": args}


def test_events_after_the_connection_are_sent_in_order(
    harness: ProcessHarness, chain: Chain
) -> None:
    chain.add(1, 2, block=1)
    client = harness.connect(of(chain))
    chain.add(3, 4, 5, block=2)
    chain.add(6, block=3)
    assert client.tokens(4) == [3, 4, 5, 6]


def test_two_processes_send_the_same(
    harness: ProcessHarness, second: ProcessHarness, chain: Chain
) -> None:
    clients = [harness.connect(of(chain)), second.connect(of(chain))]
    chain.add(1, 2, block=1)
    assert [client.tokens(2) for client in clients] == [[1, 2], [1, 2]]


def test_uncommitted_events_are_not_sent(harness: ProcessHarness, chain: Chain) -> None:
    client = harness.connect(of(chain))
    with pytest.raises(ZeroDivisionError):
        chain.write(lambda seq: 1 // 0)
    chain.add_history(1, block=1)
    client.expect_nothing()
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
def test_filters_select_events(
    harness: ProcessHarness, chain: Chain, query: str, tokens: list[int]
) -> None:
    client = harness.connect(of(chain, query))
    chain.add(1, block=1)
    chain.add(2, block=2, contract_name="Coin", address=COIN)
    minted = {"tokenId": "3", "minter": ANN, "metadata": [{"key": "a", "attributeType": 1}]}
    chain.add(3, block=3, event_name="Minted", args=minted)
    chain.add(4, block=4, event_name=None, args={"topics": [], "undecoded": "unknown event"})
    assert client.tokens(len(tokens)) == tokens


def test_networks_are_distinguished(harness: ProcessHarness, chain: Chain, other: Chain) -> None:
    item, both = harness.connect(of(chain)), harness.connect(of(chain, f",{other.network_id}"))
    other.add(1, block=1)
    chain.add(2, block=1)
    assert item.tokens(1) == [2]
    assert sorted(both.tokens(2)) == [1, 2]


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "network=mainnet", "contract=", "reorg=perhaps", "event=" + "x" * 300],
)
def test_invalid_parameters_are_rejected(harness: ProcessHarness, query: str) -> None:
    assert harness.rejection_code(query) == 4400


@pytest.mark.parametrize("query", ["contracts=Gem", "events=Minted&network=1", "x", "Network=1"])
def test_a_misspelled_filter_is_rejected_and_never_matches_everything(
    harness: ProcessHarness, query: str
) -> None:
    assert harness.rejection_code(query) == 4400


def test_keys_in_the_query_string_are_not_unknown_parameters(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain, "&applicationId=a&javascriptKey=b&restApiKey=c&clientKey=d"))
    chain.add(1, block=1)
    assert client.tokens(1) == [1]


def test_messages_of_clients_are_ignored_except_pings(
    harness: ProcessHarness, chain: Chain
) -> None:
    client = harness.connect(of(chain))
    client.send("subscribe to everything")
    client.send('{"event": "ping"}')
    assert client.next() == {"event": "pong"}
    chain.add(1, block=1)
    assert client.tokens(1) == [1]


def test_a_closed_connection_leaves_nothing_behind(harness: ProcessHarness, chain: Chain) -> None:
    clients = [harness.connect(of(chain)), harness.connect("since=0")]
    for client in clients:
        client.leave()
    assert [*harness.pump.channel.members()] == []
    assert harness.feed().catching_up == 0
    chain.add(1, block=1)
    harness.poll()


def test_the_status_has_the_last_sent_row_of_each_network(
    harness: ProcessHarness, chain: Chain
) -> None:
    harness.connect(of(chain))
    chain.add(1, 2, block=1)
    harness.poll()
    status = harness.pump.status()
    assert status["networks"][str(chain.network_id)] == {"newest": 2, "told": 2, "lag": 0}
    assert status["messages"] == 2
    assert status["last"]["contract"] == "Gem"
    assert status["readable"]

"""Parameters and filters of the event channel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.core.event_queries import MOST_VALUES, BadQuery, EventSubscription, Filter, parse
from realtime.core.events import Event

GEM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
ANN = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


def event(name: str | None = "Transfer", network: int = 31337, **changed: object) -> Event:
    payload = {
        "eventName": name,
        "contractName": "Gem",
        "address": GEM,
        "args": {"from": GEM, "to": ANN, "tokenId": "1"},
        **changed,
    }
    stored = {key: value for key, value in payload.items() if value is not None}
    return Event(network, 1, "added", json.dumps(stored))


def test_the_default_is_every_transfer() -> None:
    assert parse({}) == EventSubscription(Filter(frozenset({"Transfer"}), None, None), None, False)
    assert not parse({}).is_detailed


def test_values_are_repeated_or_listed() -> None:
    subscription = parse(
        {"contract": [f"Gem, {GEM}", "Coin"], "network": ["1,10", "31337"], "event": ["A,B"]}
    )
    assert subscription.filter.contracts == {"Gem", GEM.lower(), "Coin"}
    assert subscription.filter.networks == {1, 10, 31337}
    assert subscription.filter.events == {"A", "B"}


@pytest.mark.parametrize("value", ["*", "Transfer,*"])
def test_a_star_matches_every_kind(value: str) -> None:
    assert parse({"event": [value]}).filter.events is None


@pytest.mark.parametrize(("since", "read"), [("", "now"), ("now", "now"), ("0", "0")])
def test_since_requests_detailed_messages(since: str, read: str) -> None:
    subscription = parse({"since": [since]})
    assert (subscription.since, subscription.is_detailed) == (read, True)


def test_reorg_requests_detailed_messages() -> None:
    assert parse({"reorg": ["1"]}).is_detailed
    assert not parse({"reorg": ["0"]}).is_detailed


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"network": ["one"]}, "network"),
        ({"network": ["0"]}, "network"),
        ({"network": ["99999999999999999"]}, "network"),
        ({"network": ["1;2"]}, "network"),
        ({"contract": [""]}, "contract"),
        ({"contract": ["0x1234"]}, "contract"),
        ({"contract": ["Gem,0x" + "ab" * 21]}, "contract"),
        ({"event": [","]}, "event"),
        ({"event": ["x" * 201]}, "event"),
        ({"contract": [",".join(map(str, range(MOST_VALUES + 1)))]}, "contract"),
        ({"since": ["yesterday"]}, "since"),
        ({"since": ["1.e.1:1.", "1.e.1:1."]}, "since"),
        ({"reorg": ["maybe"]}, "reorg"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_parameter(
    query: dict[str, list[str]], names: str
) -> None:
    with pytest.raises(BadQuery, match=f"^{names}: "):
        parse(query)


@pytest.mark.parametrize("name", ["contracts", "Contract", "contract ", "where", "", "x" * 500])
def test_an_unknown_parameter_is_rejected_by_name(name: str) -> None:
    with pytest.raises(BadQuery) as raised:
        parse({"network": ["1"], name: ["Gem"]})
    text = str(raised.value)
    assert text.startswith(f"{name[:40]}: unknown parameter.")
    assert "contract, network, event, since, reorg" in text
    assert len(text) < 200


def test_ignored_parameters_are_accepted() -> None:
    assert parse({"applicationId": ["x"]}, ignored=["applicationId"]) == EventSubscription()
    with pytest.raises(BadQuery, match=r"^applicationId: "):
        parse({"applicationId": ["x"]})


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ({"contract": ["Gem"]}, True),
        ({"contract": ["gem"]}, False),
        ({"contract": [GEM]}, True),
        ({"contract": [GEM.lower()]}, True),
        ({"contract": [GEM.upper().replace("0X", "0x")]}, True),
        ({"contract": [ANN]}, False),
        ({"contract": ["Coin,Gem"]}, True),
        ({"network": ["31337"]}, True),
        ({"network": ["1"]}, False),
        ({"event": ["Transfer"]}, True),
        ({"event": ["Minted"]}, False),
        ({"event": ["*"]}, True),
        ({"event": ["*"], "network": ["1"]}, False),
    ],
)
def test_filters_match_the_named_events(query: dict[str, list[str]], matches: bool) -> None:
    assert parse(query).filter.matches(event()) is matches


def test_an_undecoded_event_matches_no_filter() -> None:
    unknown = event(None, args={"topics": [], "data": "0x", "undecoded": "unknown event"})
    assert not parse({"event": ["*"]}).filter.matches(unknown)


@pytest.mark.parametrize(
    "changed",
    [
        {"args": {"node": "0x00", "owner": ANN}},
        {"args": {"from": ANN, "to": "5", "value": ANN}},
        {"args": {"from": ANN, "to": ANN, "value": ["5"]}},
        {"args": {"from": ANN, "to": ANN, "value": "5"}, "tokenTransfer": False},
        {"args": {"from": ANN, "to": "5", "tokenId": ANN}, "tokenTransfer": False},
    ],
)
def test_a_transfer_without_a_token_matches_only_every_kind(changed: dict[str, Any]) -> None:
    other = event(**changed)
    assert not parse({}).filter.matches(other)
    assert not parse({"event": ["Transfer"]}).filter.matches(other)
    assert parse({"event": ["*"]}).filter.matches(other)
    assert other.data == changed["args"]


def test_the_transfer_of_a_token_matches() -> None:
    for token_transfer in (True, None):
        assert parse({}).filter.matches(event(tokenTransfer=token_transfer))


@pytest.mark.parametrize("value", ["latest", "safe", "final"])
def test_the_finality_is_a_parameter(value: str) -> None:
    subscription = parse({"finality": [value]})
    assert subscription.finality == value
    assert not subscription.is_detailed
    assert parse({}).finality == "latest"


@pytest.mark.parametrize("values", [[""], ["finalized"], ["Final"], ["1"], ["safe,final"]])
def test_an_unknown_finality_is_rejected(values: list[str]) -> None:
    with pytest.raises(BadQuery, match=r"^finality: latest, safe or final"):
        parse({"finality": values})
    with pytest.raises(BadQuery, match=r"^finality: may be given once"):
        parse({"finality": ["final", "final"]})

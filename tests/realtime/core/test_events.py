"""The messages of the event channel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.core.events import Event, PriorRows, control, transfer

A = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
B = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
PAYLOAD = {
    "objectId": "8unWXgEmMo",
    "createdAt": "2026-11-21T12:40:35.499Z",
    "updatedAt": "2026-11-21T12:40:35.499Z",
    "networkId": "31337",
    "contractName": "Gem",
    "eventName": "Transfer",
    "address": A,
    "transactionHash": "0x" + "ab" * 32,
    "blockNumber": 7,
    "blockHash": "0x" + "cd" * 32,
    "logIndex": 3,
    "transactionIndex": 0,
    "ordinal": 1,
    "args": {"to": B, "from": A, "tokenId": "115792089237316195423570985008687907853269984665640"},
    "timestamp": {"__type": "Date", "iso": "2026-11-21T12:40:35.499Z"},
}


def event(op: str = "added", before: PriorRows | None = None, **changed: Any) -> Event:
    return Event(31337, 17, op, json.dumps({**PAYLOAD, **changed}), before or PriorRows())


def test_a_plain_message_is_exactly_the_specified_one() -> None:
    assert event().plain.decode() == (
        f'{{"event":"Transfer","data":{{"from":"{A}","to":"{B}",'
        '"tokenId":"115792089237316195423570985008687907853269984665640"}}'
    )


def test_a_detailed_message_says_where_it_is_and_where_to_go_on() -> None:
    message = json.loads(event().detailed("1.e.31337:17.31337:2"))
    assert message == {
        "event": "Transfer",
        "data": json.loads(event().plain)["data"],
        "objectId": "8unWXgEmMo",
        "networkId": "31337",
        "contractName": "Gem",
        "address": A,
        "blockNumber": 7,
        "blockHash": "0x" + "cd" * 32,
        "transactionHash": "0x" + "ab" * 32,
        "logIndex": 3,
        "id": "1.e.31337:17.31337:2",
    }


def test_what_is_removed_says_so() -> None:
    message = json.loads(event("removed").detailed("x"))
    assert message["removed"] is True
    assert message["event"] == "Transfer"
    assert message["id"] == "x"


def test_other_events_are_told_with_their_arguments() -> None:
    args = {"tokenId": "1", "minter": A, "metadata": [{"key": "k", "attributeType": 2}]}
    assert json.loads(event(eventName="Minted", args=args).plain) == {
        "event": "Minted",
        "data": args,
    }


def test_texts_of_contracts_can_not_break_out_of_a_message() -> None:
    name = 'x","id":"y\n'
    message = json.loads(event(eventName=name, contractName=name, args={name: name}).detailed("z"))
    assert (message["event"], message["contractName"]) == (name, name)
    assert (message["data"], message["id"]) == ({name: name}, "z")


def test_the_channels_own_messages_have_an_id() -> None:
    assert json.loads(control("hello", {"networks": {}}, "c")) == {
        "event": "hello",
        "data": {"networks": {}},
        "id": "c",
    }


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"from": A, "to": B, "tokenId": "7"}, {"tokenId": "7"}),
        ({"from": A, "to": B, "tokenId": 7}, {"tokenId": "7"}),
        ({"_from": A, "_to": B, "_tokenId": "7"}, {"tokenId": "7"}),
        ({"from": A, "to": B, "id": "7"}, {"tokenId": "7"}),
        ({"sender": A, "receiver": B, "token_id": "7"}, {"tokenId": "7"}),
        ({"from": A, "to": B, "value": "0"}, {"value": "0"}),
        ({"src": A, "dst": B, "wad": "12"}, {"value": "12"}),
        ({"sender": A, "recipient": B, "amount": 12}, {"value": "12"}),
        ({"0": A, "1": B, "2": "12"}, {"value": "12"}),
    ],
)
def test_a_transfer_is_told_by_the_names_that_clients_know(
    args: dict[str, Any], message: dict[str, str]
) -> None:
    assert transfer(args) == {"from": A, "to": B, **message}


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"node": "0x00", "owner": A},
        {"from": A, "to": B},
        {"from": A, "to": B, "tokenId": "1", "data": "0x"},
        {"from": A, "to": B, "tokenId": "-1"},
        {"from": A, "to": B, "tokenId": True},
        {"from": A, "to": B, "tokenId": ["1"]},
        {"from": "ann", "to": B, "tokenId": "1"},
        {"from": A, "_from": A, "tokenId": "1"},
        {"from": A, "tokenId": "1", "value": "1"},
    ],
)
def test_what_is_no_transfer_of_a_token_is_not_made_one(args: dict[str, Any]) -> None:
    assert transfer(args) is None


@pytest.mark.parametrize(
    ("op", "before", "start", "plain", "reorg"),
    [
        ("added", PriorRows(), 0, True, True),
        # Sent before this connection began.
        ("added", PriorRows(again_of=5, announced=None, gone=8), 5, True, True),
        # Sent to it, reverted, and back again.
        ("added", PriorRows(again_of=6, announced=None, gone=8), 5, False, True),
        # Sent to it, and again without having been reverted.
        ("added", PriorRows(again_of=6, announced=None, gone=None), 5, False, False),
        ("added", PriorRows(again_of=9, announced=9, gone=8), 5, False, False),
        # It was in history, which isn't sent.
        ("removed", PriorRows(), 0, False, False),
        ("removed", PriorRows(again_of=6, announced=6), 0, False, True),
        ("removed", PriorRows(again_of=6, announced=6), 7, False, True),
        # Taken back already.
        ("removed", PriorRows(again_of=6, announced=6, gone=8), 0, False, False),
        ("removed", PriorRows(again_of=9, announced=9, gone=8), 0, False, True),
    ],
)
def test_who_is_told_what_was_told_before(
    op: str, before: PriorRows, start: int, plain: bool, reorg: bool
) -> None:
    item = event(op, before)
    assert item.is_delivered(start, reorg=False) is plain
    assert item.is_delivered(start, reorg=True) is reorg


def test_a_detailed_message_has_the_time_of_its_block_and_a_plain_one_has_not() -> None:
    time = "2026-11-21T12:40:30.000Z"
    dated = event(blockTimestamp={"__type": "Date", "iso": time})
    assert json.loads(dated.detailed("x"))["blockTimestamp"] == time
    assert dated.plain == event().plain

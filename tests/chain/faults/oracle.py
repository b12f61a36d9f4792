"""What should be stored of a chain, read and decoded independently of the service, and what is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from eth_utils import to_checksum_address

from tests.evm.artefacts import Contract, topic

Place = tuple[int, int, str]
"""Height, index in the block, hash of the block."""

Event = tuple[str, str, str, str]
"""Name, transaction, address, arguments as JSON."""

COLUMNS = "block_number, log_index, block_hash, event_name, transaction_hash, address, args"


def on_chain(gem: Contract) -> dict[Place, Event]:
    """The Transfer events of a Gem, as its node tells them."""
    transfer = topic(gem.abi, "Transfer")
    results = {}
    for log in gem.node.logs(address=gem.address):
        assert log["topics"][0] == transfer
        sender, receiver, token = log["topics"][1:]
        args = {"from": _account(sender), "to": _account(receiver), "tokenId": str(int(token, 16))}
        results[_place(log["blockNumber"], log["logIndex"], log["blockHash"])] = (
            "Transfer",
            log["transactionHash"],
            gem.address,
            _text(args),
        )
    return results


def stored(rows: Iterable[tuple[Any, ...]]) -> dict[Place, Event]:
    """The same from rows of ``COLUMNS``. Each place may be there once."""
    results: dict[Place, Event] = {}
    for height, index, block_hash, name, tx_hash, address, args in rows:
        place = (height, index, block_hash)
        assert place not in results, f"{place} is stored twice"
        args = json.loads(args) if isinstance(args, str) else args
        results[place] = (name, tx_hash, address, _text(args))
    return results


def replayed(outbox: Iterable[tuple[int, str, str]]) -> dict[Place, Event]:
    """The events that a subscriber has who began with nothing and was told all of the outbox: rows
    of number, operation and payload. Each row has to make sense after those before it."""
    sent: dict[Place, Event] = {}
    expected = 1
    for seq, op, payload in outbox:
        assert seq == expected, f"{seq} follows {expected - 1}"
        expected += 1
        event = json.loads(payload)
        place = (event["blockNumber"], event["logIndex"], event["blockHash"])
        if op == "added":
            assert place not in sent, f"{seq} adds {place} again"
            sent[place] = (
                event["eventName"],
                event["transactionHash"],
                event["address"],
                _text(event["args"]),
            )
        else:
            assert op == "removed"
            assert place in sent, f"{seq} removes {place}, which wasn't there"
            del sent[place]
    return sent


@lru_cache  # few accounts have many events
def _account(word: str) -> str:
    return to_checksum_address("0x" + word[-40:])


def _place(height: str, index: str, block_hash: str) -> Place:
    return int(height, 16), int(index, 16), block_hash


def _text(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True)

"""What a client must have received, by the rows of the outbox alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

OUTBOX = "SELECT op, payload FROM chain_outbox WHERE network_id = %s ORDER BY seq"

Row = tuple[str, int, tuple[Any, ...], str]
"""Operation, token, what says that two rows tell the same, and the event."""


def rows_of(outbox: Iterable[tuple[str, str]]) -> list[Row]:
    """The rows of ``OUTBOX``, as they are compared."""
    observed = []
    for op, text in outbox:
        event = json.loads(text)
        same = (event["transactionHash"], event["ordinal"], json.dumps(event["args"]))
        observed.append((op, int(event["args"]["tokenId"]), same, event["objectId"]))
    return observed


def expected(rows: list[Row], *, reorg: bool) -> list[int]:
    """The tokens that a client receives who begins before these rows, which are all of a network;
    those of what is removed with a minus."""
    sent: list[int] = []
    message = set()
    there = set()
    for op, token, same, event in rows:
        if op == "added":
            if reorg or same not in message:
                sent.append(token)
            message.add(same)
            there.add(event)
        elif reorg and event in there:
            sent.append(-token)
            there.discard(event)
    return sent


def token_of(message: dict[str, Any]) -> int:
    """The same of a message."""
    number = int(message["data"]["tokenId"])
    return -number if message.get("removed") else number

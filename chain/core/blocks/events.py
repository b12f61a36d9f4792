"""A log as it is stored: the row of an event.

A value of an event is declared once, as an attribute of ``EventRow`` with its column. Statements,
fields of the API and audits derive from it (docs/contributing.md, Add a stored column of an event).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from chain.core.columns import column
from chain.core.node import Log


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """A log of a registered contract, decoded.

    ``args`` is JSON text. An event that no ABI explains has no ``event_name``, and its ``args`` are
    those of ``abi.logs.raw_args``. ``ordinal`` counts the logs of the contract within the
    transaction, from 0 on: together with the transaction hash it stays the same when the
    transaction comes again in another block. ``block_number``, ``block_hash`` and ``log_index``
    identify the row within its network. The
    contract's name isn't compared: it is the one that the contract had when its event was stored.
    ``block_timestamp`` is the time of the block as clients read it, None if it isn't known.
    ``token_transfer`` is whether an event ``Transfer`` is that of a token; None for other events.
    """

    contract_name: Annotated[
        str, column("text", "String", is_escaped=True, is_compared=False, null_default="''")
    ]
    event_name: Annotated[str | None, column("text", "String", is_escaped=True)]
    address: Annotated[str, column("text", "String", null_default="''")]
    transaction_hash: Annotated[str, column("text", "String", null_default="''")]
    block_number: Annotated[int, column("bigint", "Number", is_identity=True)]
    block_hash: Annotated[str, column("text", "String", is_identity=True)]
    log_index: Annotated[int, column("bigint", "Number", is_identity=True)]
    transaction_index: Annotated[int, column("bigint", "Number", null_default="-1")]
    ordinal: Annotated[int, column("bigint", null_default="0")]
    args: Annotated[str, column("jsonb", "Object", is_escaped=True)]
    block_timestamp: Annotated[str | None, column("timestamptz", "Date", keeps_known=True)] = None
    token_transfer: Annotated[bool | None, column("boolean", keeps_known=True)] = None


def event_row(
    log: Log,
    contract_name: str,
    address: str,
    event_name: str | None,
    args: str,
    ordinal: int,
    times: Mapping[str, str],
    token_transfer: bool | None,
) -> EventRow:
    """Return the row of a decoded log. ``times`` are those of blocks, by hash."""
    return EventRow(
        contract_name,
        event_name,
        address,
        log.transaction_hash,
        log.height,
        log.block_hash,
        log.index,
        int(log.transaction_index, 16),
        ordinal,
        args,
        times.get(log.block_hash),
        token_transfer,
    )

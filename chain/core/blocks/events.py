"""A log as it is stored: the row of an event."""

from __future__ import annotations

import msgspec


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """A log of a registered contract, decoded.

    ``args`` is JSON text. An event that no ABI explains has no ``event_name``, and its ``args`` are
    those of ``decoding.raw_args``. ``ordinal`` counts the logs of the contract within the
    transaction, from 0 on: together with the hash it stays the same when the transaction comes
    again in another block. Network, block and index in the block are the row's identity.
    ``block_timestamp`` is the time of the block as clients read it, None if it isn't known.
    """

    contract_name: str
    event_name: str | None
    address: str
    transaction_hash: str
    block_number: int
    block_hash: str
    log_index: int
    transaction_index: int
    ordinal: int
    args: str
    block_timestamp: str | None = None

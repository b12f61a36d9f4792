"""The columns of events and of monitored transactions, and the rows that statements return.

Columns of an event are declared in ``chain.core.blocks.events``, those of a transaction here.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from chain.core.blocks.events import EventRow
from chain.core.columns import Column, Columns

_WRITTEN: Final = Columns.of(EventRow)
EVENT: Final = Columns(
    (
        *_WRITTEN[:2],
        Column("network_id", "text", "String", is_written=False),
        *_WRITTEN[2:],
        Column("timestamp", "timestamptz", "Date", is_written=False),
    )
)
"""``ContractEvent``: the columns of ``EventRow``, and those that statements set."""

TRANSACTION: Final = Columns(
    (
        Column("hash", "text", "String", is_identity=True),
        Column("network_id", "text", "String", is_written=False),
        Column("status", "text", "String"),
        Column("attempts", "int", "Number", is_written=False),
        Column("last_checked", "timestamptz", "Date", is_written=False),
        Column("block_number", "bigint", "Number"),
        Column("gas_used", "text", "String"),
        Column("effective_gas_price", "text", "String"),
        Column("block_hash", "text", "String"),
        Column("transaction_index", "bigint", "Number"),
        Column("from_address", "text", "String", "from", keeps_known=True),
        Column("to", "text", "String", keeps_known=True),
        Column("nonce", "bigint", "Number", is_written=False),
        Column("finality", "text", "String"),
        Column("reorg_count", "int", "Number"),
        Column("pending_since", "timestamptz", "Date"),
        Column("replaced_by", "text", "String", is_written=False),
        Column("replaced_suspected", "boolean", "Boolean", is_written=False),
        Column("late_receipt", "jsonb", "Object"),
        Column("next_check_at", "timestamptz"),
    )
)
"""``Transaction``: what comes with each row is a ``Record`` of ``chain.core.transactions.states``,
written by ``chain.monitor.storage.checks``."""


def milliseconds(moment: str) -> str:
    """Return SQL for a moment in milliseconds since the epoch."""
    return f"round(date_part('epoch', {moment}) * 1000)::bigint"


def moment(value: str) -> str:
    """Return SQL for the moment that milliseconds since the epoch stand for."""
    return f"to_timestamp({value}::double precision / 1000)"


class TransactionRow(NamedTuple):
    """A row of ``chain_transaction`` as checks read it; moments are milliseconds since the epoch.

    ``due`` is ``next_check_at`` to the last digit, ``now`` the statement's time.
    """

    object_id: str
    hash: str
    status: str
    attempts: Annotated[int, "COALESCE({row}.attempts, 0)"]
    created_at: Annotated[int, milliseconds("{row}.created_at")]
    next_check_at: Annotated[int | None, milliseconds("{row}.next_check_at")]
    pending_since: Annotated[int | None, milliseconds("{row}.pending_since")]
    last_checked: Annotated[int | None, milliseconds("{row}.last_checked")]
    finality: str | None
    reorg_count: Annotated[int, "COALESCE({row}.reorg_count, 0)"]
    block_number: int | None
    block_hash: str | None
    transaction_index: int | None
    gas_used: str | None
    effective_gas_price: str | None
    from_address: str | None
    to: str | None
    nonce: int | None
    missing_since: Annotated[int | None, milliseconds("{row}.missing_since")]
    missing_checks: int
    replaced_suspected: Annotated[bool, "COALESCE({row}.replaced_suspected, false)"]
    late_receipt: str | None
    failed_checks: int
    due: Annotated[str | None, "{row}.next_check_at"]
    now: Annotated[int, milliseconds("{now}")]


class BlockRow(NamedTuple):
    """A stored block of ``chain_block`` by its height."""

    number: int
    hash: str

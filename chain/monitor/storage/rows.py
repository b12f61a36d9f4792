"""Rows of ``chain_transaction``: how they are read, and what they say."""

from __future__ import annotations

from typing import Final

import msgspec

from chain.core.transactions.sightings import Sighting
from chain.core.transactions.states import CONFIRMED, FAILED, Mined, Record
from chain.models.stored import TransactionRow
from objects.database.row_types import select_list
from objects.sql.rows import touched

TOUCHED: Final = touched("t")
"""The ``updated_at`` of a row ``t`` that clients see changed."""


def select_transactions(now: str) -> str:
    """The beginning of a statement that returns ``TransactionRow`` of ``chain_transaction t``."""
    return f"SELECT {select_list(TransactionRow, 't', now=now)} FROM chain_transaction t"


class Followed(msgspec.Struct, frozen=True, gc=False):
    """A row: its key, what the table of states knows, and what else nodes have reported. ``due`` is
    ``next_check_at`` to the last digit."""

    object_id: str
    hash: str
    record: Record
    sighting: Sighting
    failed_checks: int
    due: str | None


def followed(row: TransactionRow) -> Followed:
    """What the row says."""
    mined = None
    if (
        row.status in (CONFIRMED, FAILED)
        and row.block_hash is not None
        and row.block_number is not None
    ):
        mined = Mined(
            row.status == CONFIRMED,
            row.block_number,
            row.block_hash,
            row.transaction_index or 0,
            row.gas_used or "0",
            row.effective_gas_price,
            row.from_address or "",
            row.to,
        )
    record = Record(
        row.status,
        row.attempts,
        row.created_at,
        row.next_check_at,
        row.pending_since,
        row.last_checked,
        mined,
        row.finality,
        row.reorg_count,
        None if row.late_receipt is None else _late(row.late_receipt, row.from_address, row.to),
    )
    sighting = Sighting(
        row.nonce,
        row.from_address,
        row.to,
        row.missing_since,
        row.missing_checks,
        row.replaced_suspected,
    )
    return Followed(row.object_id, row.hash, record, sighting, row.failed_checks, row.due)


class _Late(msgspec.Struct, rename="camel"):
    """``lateReceipt`` as it is kept."""

    status: str
    block_number: int
    block_hash: str
    transaction_index: int
    gas_used: str
    effective_gas_price: str | None


def _late(text: str, from_address: str | None, to: str | None) -> Mined | None:
    try:
        late = msgspec.json.decode(text, type=_Late)
    except msgspec.ValidationError:
        return None  # brought along from elsewhere
    return Mined(
        late.status == CONFIRMED,
        late.block_number,
        late.block_hash,
        late.transaction_index,
        late.gas_used,
        late.effective_gas_price,
        from_address or "",
        to,
    )


def late_json(mined: Mined | None) -> str | None:
    """Return ``lateReceipt`` as it is stored, or None."""
    if mined is None:
        return None
    late = _Late(
        mined.status,
        mined.block_number,
        mined.block_hash,
        mined.transaction_index,
        mined.gas_used,
        mined.effective_gas_price,
    )
    return msgspec.json.encode(late).decode()

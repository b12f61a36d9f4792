"""The states of a monitored transaction: the table of docs/chain-transactions.md.

Plain values in, plain values out; times are milliseconds since the epoch. Two kinds of checks are
told apart: *timed* ones, which count, and those made because a block has come, which change
nothing unless they find a receipt. An answer that isn't one (a node that fails) is no check at
all: ``next_state`` isn't called for it, and ``pause_after`` says when to ask again.

In further fields: a transaction whose block is gone is
moved or pending again (``REORG_REOPEN``), and one that is mined after it has stalled gets a
``late`` receipt (``STALLED_REVIVE`` has it confirmed or failed then).
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from chain.core.names import address_of, hash_of
from chain.core.node import Receipt

PENDING, CONFIRMED, FAILED, STALLED = "pending", "confirmed", "failed", "stalled"
INCLUDED, SAFE, FINALIZED, ORPHANED = "included", "safe", "finalized", "orphaned"

FIRST_DELAY: Final = 15_000
LATER_DELAY: Final = 30_000
LONGEST_PENDING: Final = 3_600_000
LATE_DELAY: Final = 600_000
LATE_WATCH: Final = 86_400_000
"""How long a stalled transaction is looked for, and how often (``LATE_DELAY``)."""
SHORTEST_PAUSE: Final = 1_000
LONGEST_PAUSE: Final = 30_000
PUNCTUAL: Final = 5_000
"""A check that is late by no more counts as made when it was due, so that the lateness of each
doesn't add up over an hour."""

_LARGEST_HEIGHT: Final = 2**53
_LARGEST_WORD: Final = 2**256


class Mined(msgspec.Struct, frozen=True, gc=False):
    """What a receipt says."""

    succeeded: bool
    block_number: int
    block_hash: str
    transaction_index: int
    gas_used: str
    effective_gas_price: str | None
    from_address: str
    to: str | None

    @property
    def status(self) -> str:
        return CONFIRMED if self.succeeded else FAILED


def mined_by(receipt: Receipt) -> Mined:
    """A receipt's contents, numbers as the API has them.

    A receipt without a status is older than Byzantium (October 2017) and says no more than that
    the transaction is mined: that counts as success. Raises ``ValueError`` for one that no node in
    its right mind would give.
    """
    status = 1 if receipt.status is None else int(receipt.status, 16)
    if status not in (0, 1):
        raise ValueError("a receipt with an unknown status")
    price = receipt.effective_gas_price
    return Mined(
        succeeded=status == 1,
        block_number=_number(receipt.block_number, _LARGEST_HEIGHT),
        block_hash=hash_of(receipt.block_hash),
        transaction_index=_number(receipt.transaction_index, _LARGEST_HEIGHT),
        gas_used=decimal(receipt.gas_used),
        effective_gas_price=None if price is None else decimal(price),
        from_address=address_of(receipt.from_address.lower()),
        to=None if receipt.to is None else address_of(receipt.to.lower()),
    )


def decimal(text: str) -> str:
    """A word of the chain in decimal digits, from a node's hexadecimal ones. ``ValueError``."""
    return str(_number(text, _LARGEST_WORD))


def _number(text: str, limit: int) -> int:
    value = int(text, 16)
    if not 0 <= value < limit:
        raise ValueError("a receipt with a number out of range")
    return value


class Record(msgspec.Struct, frozen=True, gc=False):
    """A followed transaction. ``due_at`` is when it is checked next; None is never."""

    status: str
    attempts: int
    created_at: int
    due_at: int | None
    pending_since: int | None = None
    last_checked: int | None = None
    mined: Mined | None = None
    finality: str | None = None
    reorg_count: int = 0
    late: Mined | None = None

    @property
    def since(self) -> int:
        """From when its age counts: it may have been pending, mined, and pending again."""
        return self.created_at if self.pending_since is None else self.pending_since


class Choices(msgspec.Struct, frozen=True):
    """What a deployment decides about transactions that have reached a final state."""

    reopen: bool = True
    revive: bool = False


USUAL: Final = Choices()


def started(now: int) -> Record:
    """A transaction that begins to be followed: its first check is due at once."""
    return Record(PENDING, 0, now, due_at=now)


def next_state(
    record: Record,
    receipt: Mined | None,
    now: int,
    *,
    timed: bool = True,
    choices: Choices = USUAL,
) -> Record:
    """The record after a check at ``now`` that has found this receipt, or none.

    For a record that isn't pending the caller knows that its block is gone, or that it has
    stalled: other ones aren't checked. A ``finalized`` one never changes.
    """
    if record.status == PENDING:
        if receipt is not None:
            return _included(record, receipt)
        return _missed(record, now) if timed else record
    if receipt is None and not timed:
        return record
    if record.status == STALLED:
        return _late(record, receipt, now, choices)
    return _looked_for(record, receipt, now, choices)


def _included(record: Record, mined: Mined) -> Record:
    return replace(record, status=mined.status, mined=mined, finality=INCLUDED, due_at=None)


def _missed(record: Record, now: int) -> Record:
    status, due_at = PENDING, now + FIRST_DELAY
    if now - record.since > LONGEST_PENDING:
        status, due_at = STALLED, now + LATE_DELAY
    elif record.attempts > 0:
        due_at = _planned(record, now) + LATER_DELAY
    return replace(
        record, status=status, attempts=record.attempts + 1, last_checked=now, due_at=due_at
    )


def _planned(record: Record, now: int) -> int:
    due = record.due_at
    return due if due is not None and 0 <= now - due <= PUNCTUAL else now


def _looked_for(record: Record, mined: Mined | None, now: int, choices: Choices) -> Record:
    """A confirmed or failed one whose block is said to be gone."""
    if record.finality in (None, FINALIZED) or record.mined is None:
        return replace(record, due_at=None)
    was = record.mined.block_hash
    if mined is not None and mined.block_hash == was:
        # The chain has come back to it, or it was never gone.
        finality = INCLUDED if record.finality == ORPHANED else record.finality
        return replace(record, finality=finality, due_at=None)
    count = record.reorg_count + (record.finality != ORPHANED)
    if not choices.reopen:
        return replace(record, finality=ORPHANED, reorg_count=count, due_at=None)
    if mined is not None:
        return replace(_included(record, mined), reorg_count=count)
    return replace(
        record,
        status=PENDING,
        mined=None,
        finality=ORPHANED,
        reorg_count=count,
        pending_since=now,
        due_at=now + FIRST_DELAY,
    )


def _late(record: Record, mined: Mined | None, now: int, choices: Choices) -> Record:
    """Return the next state of a stalled transaction.

    It is checked until its day is over, since a receipt may disappear again.
    """
    if mined is not None and choices.revive:
        return replace(_included(record, mined), late=mined)
    is_over = now - record.since > LONGEST_PENDING + LATE_WATCH
    return replace(record, late=mined, due_at=None if is_over else now + LATE_DELAY)


def pause_after(failures: int) -> int:
    """Return the backoff in milliseconds after so many consecutive failures of a node."""
    return min(LONGEST_PAUSE, SHORTEST_PAUSE << min(max(failures - 1, 0), 10))

"""The lock of a network's cursor, and the lock of its indexer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Final

from backend.kernel.connections.advisory_locks import chain_head
from chain.indexing.storage import block_rows, cursors
from chain.indexing.storage.cursors import Position
from objects.database import locks


class Elsewhere(Exception):
    """The cursor is not where it was: another process has moved it, or contracts have changed.
    What was read is dropped, and read again from the cursor on."""


def lock(at: Position, *, halted: bool = False) -> int:
    """Lock the cursor until the transaction ends; the number of the last row of the outbox.

    Raises ``Elsewhere`` unless everything is as it was read. With ``halted`` that includes the
    reason of the halt; otherwise the network must not be halted.
    """
    row = cursors.lock(at.network_id)
    as_read = (at.number, at.hash or None, at.contracts, at.halted if halted else None)
    if row is None or (row.number, row.hash, row.contracts, row.halted) != as_read:
        raise Elsewhere
    return row.outbox


def floor(at: Position) -> int:
    """The height below which no other chain is looked for: the highest block that is final, of
    those that are kept, or the lowest one that is kept."""
    height = block_rows.floor(at.network_id, at.final)
    return (at.number or 0) if height is None else height


_PATIENCE: Final = 0.2  # seconds


@contextmanager
def alone(network_id: int) -> Iterator[bool]:
    """Whether this process is the only one in here with this network. It saves work that would
    be dropped; nothing relies on it. A process that arrives while another one is about to leave
    waits for
    that: the other may have looked before the block was there that this one has heard of."""
    end = monotonic() + _PATIENCE
    while not locks.try_lock(chain_head(network_id)):
        if monotonic() >= end:
            yield False
            return
        sleep(_PATIENCE / 10)
    try:
        yield True
    finally:
        locks.unlock(chain_head(network_id))

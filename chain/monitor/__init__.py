"""Monitor transactions until they are final (``docs/chain-transactions.md``).

``chain.core.transactions.states`` decides what becomes of one; this room calls it and stores the
result.

- ``start`` begins to monitor a hash, ``id_of`` returns the id of its record; ``claim`` assigns a
  record to the network that has its hash.
- ``check_due`` makes the checks that are due.
- ``receipts_for`` and ``record`` are called by the indexer of the network's blocks: a block that
  includes a monitored transaction ends the wait at once. ``on_reorganisation`` gets the blocks that
  were reverted.
- ``finalize`` stores how certain included transactions are, by ``certain_heights``.

Each of them may run twice at once, and may be killed at any point.
"""

from __future__ import annotations

from chain.monitor.blocks import Seen, on_reorganisation, receipts_for, record
from chain.monitor.certainty import certain_heights
from chain.monitor.checks import check_due
from chain.monitor.claims import claim
from chain.monitor.finality import finalize
from chain.monitor.registration import lock, start, started
from chain.monitor.storage.registration import id_of

__all__ = [
    "Seen",
    "certain_heights",
    "check_due",
    "claim",
    "finalize",
    "id_of",
    "lock",
    "on_reorganisation",
    "receipts_for",
    "record",
    "start",
    "started",
]

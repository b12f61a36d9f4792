"""Transactions are followed to their end (specification, section 3).

What becomes of one is decided by ``chain.core.transactions.states``; here it is asked for and
stored.

- ``start`` begins to follow a hash; ``claim`` has a record be of the network that has its hash.
- ``check_due`` makes the checks whose time has come.
- ``receipts_for`` and ``record`` are called by whoever reads the network's blocks: a block with a
  followed transaction ends it without waiting for its time. ``on_reorganisation`` is told which
  blocks are gone.
- ``finalize`` says how certain what was mined is, by ``certain_heights``.

Each of them may run twice at once, and may die in the middle.
"""

from __future__ import annotations

from chain.monitor.blocks import Seen, on_reorganisation, receipts_for, record
from chain.monitor.certainty import certain_heights
from chain.monitor.checks import check_due
from chain.monitor.claims import claim
from chain.monitor.finality import finalize
from chain.monitor.registration import lock, start, started

__all__ = [
    "Seen",
    "certain_heights",
    "check_due",
    "claim",
    "finalize",
    "lock",
    "on_reorganisation",
    "receipts_for",
    "record",
    "start",
    "started",
]

"""Index the head of a network: headers, the logs of registered contracts, monitored transactions.

Anything that reports a new block only triggers ``follow``, which asks a node and stores what it
returns as one chain: each block names its parent, each log names its block, and cursor, events and
outbox change in one transaction. If the node has another block at a stored height, the blocks above
the last common one are reverted first, in a transaction of their own. ``follow`` may run anywhere,
any number of times at once, and may be killed at any point.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from backend.kernel.errors import Timeout, TransactionConflict, UnderMaintenance
from backend.logs.setup import get_logger
from chain import rpc
from chain.core.failures import Moved, NodeFailure, Unavailable, Undecided
from chain.core.node import Node
from chain.indexing.head import commits, cursor, halts, indexer
from chain.indexing.head.cursor import Elsewhere
from chain.indexing.head.halts import index_from_scratch, resume
from chain.indexing.head.indexer import AnotherChain, Outcome
from chain.indexing.storage.outbox_reader import CHANNEL
from objects.database import maintenance

__all__ = ["CHANNEL", "Elsewhere", "Outcome", "follow", "index_from_scratch", "resume", "step"]

LONGEST: Final = 10.0
"""Seconds that ``follow`` goes on before it leaves the rest to the next call."""
_RETRIES: Final = 3

log = get_logger("chain")


def follow(network_id: int) -> bool:
    """Read what a network has got since, until nothing is left or ``LONGEST`` is over. Whether
    nothing is left, as far as a node has returned.

    Does nothing while another process is at it, or while the chain is paused. Of a halted network
    it only compares the providers with what is stored, once a minute, and resumes it when they
    agree. What a node does wrong is noted with the cursor, and never raised.
    """
    if maintenance.is_chain_paused():
        return False
    with cursor.alone(network_id) as is_alone:
        return is_alone and _follow(network_id, monotonic() + LONGEST)


def _follow(network_id: int, until: float) -> bool:
    vain = 0
    try:
        while monotonic() < until:
            try:
                if step(network_id, until=until) is Outcome.DONE:
                    return True
                vain = 0
            except (Elsewhere, Moved, TransactionConflict, Timeout) as error:
                vain += 1
                if vain == _RETRIES:
                    if not isinstance(error, Moved) or not halts.review(network_id):
                        if isinstance(error, Moved) and not isinstance(error, Undecided):
                            rpc.choose_another(network_id)
                        raise
                    vain = 0
                log.debug("read in vain", network=network_id, reason=str(error))
    except (Elsewhere, UnderMaintenance):
        pass  # the process that has moved the cursor goes on
    except NodeFailure as failure:
        commits.note_trouble(network_id, str(failure))
    return False


def step(network_id: int, *, until: float | None = None) -> Outcome:
    """Look at a network once with one of its providers, and read as far as there is something, or
    ``until`` (of ``time.monotonic``). Without a lock: what others store at once isn't stored twice.

    Raises ``Elsewhere``, and ``NodeFailure``; what was read by then is dropped, what was stored
    stays.
    """
    end = monotonic() + LONGEST if until is None else until
    other_chains: list[AnotherChain] = []

    def looked(node: Node) -> Outcome:
        try:
            return indexer.look(network_id, node, end)
        except AnotherChain as other:
            other_chains.append(other)
            raise

    try:
        seconds = max(1.0, end - monotonic())
        outcome = rpc.attempt(network_id, looked, seconds=seconds, is_patient=True)
    except Unavailable:
        if not other_chains:
            raise
        if not halts.review(network_id):
            raise other_chains[0] from None
        return Outcome.MORE
    if outcome is Outcome.HALTED:
        return Outcome.MORE if halts.review_halted(network_id) else Outcome.DONE
    return outcome

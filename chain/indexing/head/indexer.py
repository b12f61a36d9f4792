"""One look at a network with one node."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from time import monotonic
from typing import Final

from chain import rpc
from chain.core.blocks import forks
from chain.core.blocks.final_heights import Heights, heights
from chain.core.failures import Moved, TryAgain, Undecided
from chain.core.node import Header, Node
from chain.indexing import contracts, verification
from chain.indexing.head import commits, cursor, fetches
from chain.indexing.head.cursor import Elsewhere
from chain.indexing.head.fetches import STEP, Look
from chain.indexing.storage import block_rows, cursors
from chain.indexing.storage.cursors import Position
from chain.indexing.verification import Scheme
from chain.models import VERIFY_ALL

FAR: Final = 4 * STEP
"""So many final blocks ahead of the cursor are read by ranges, unless every block is checked."""
TAGS_EVERY: Final = 10.0
"""Seconds between questions for what is safe and final."""

_tags_asked: dict[int, float] = {}


class Outcome(Enum):
    """What a look has led to."""

    DONE = "nothing is left to be read at the moment"
    MORE = "there may be more"
    HALTED = "the network is halted"


class AnotherChain(TryAgain):
    """The node has another chain than the one that was read, in blocks that are final. One of both
    is wrong; another provider may say which."""


def look(network_id: int, node: Node, until: float) -> Outcome:
    """Ask the node what is new, and store it. Raises ``NodeFailure``, or ``Elsewhere``: what was
    read is dropped then."""
    at = cursors.read(network_id)
    if at is None:
        cursors.make(network_id)
        at = cursors.read(network_id)
    if at is None:
        return Outcome.DONE
    if at.halted is not None:
        return Outcome.HALTED
    if at.number is not None and at.planned != at.contracts:
        commits.plan(at)
        return Outcome.MORE
    with_tags = _is_far_behind(at) or monotonic() - _tags_asked.get(network_id, -1e9) > TAGS_EVERY
    view = fetches.look(node, at.number, with_tags=with_tags)
    # What is final follows from its height, and stays.
    verification.check_hashes(node, [view.latest], Scheme.of(at.verify))
    has_tags = with_tags and _are_ours(at, node, view)
    if at.number is None and not has_tags:
        raise TryAgain("what is called safe or final is no block of the chain")
    if at.number is None:
        return _begin(at, node, view)
    if view.latest.height < at.number:
        return _lower(at, node, view.latest, until)
    if view.ours is None:
        raise Moved("a block is not there any more")
    if view.ours.hash != at.hash:
        return _fork(at, node, view.ours, until, view.latest)
    now = at
    if has_tags:
        now = _with_finality(at, node, view)
        _tags_asked[network_id] = monotonic()
    return _read_on(now, node, view.latest, until, written=at)


def _are_ours(at: Position, node: Node, view: Look) -> bool:
    """Whether the blocks that the node calls safe and final can be blocks of the chain. A false one
    would make blocks final that aren't, and the first reorganisation halt the network."""
    is_ours = view.ours is not None and view.ours.hash == at.hash
    for header in view.tagged:
        # Where all blocks are final at once, some may have been made meanwhile.
        if header.height > view.latest.height + STEP:
            return False
        if not verification.is_plausible(node.network_id, header):
            return False
        stored = block_rows.hashes(at.network_id, header.height, header.height)
        if is_ours and stored.get(header.height, header.hash) != header.hash:
            return False
    return True


def _is_far_behind(at: Position) -> bool:
    """Whether what is final says which blocks are read by ranges: nothing is noted of it above the
    blocks that were read."""
    return at.number is None or (at.head is not None and at.head - at.number >= FAR)


def forget() -> None:
    """Begin as a new process does."""
    _tags_asked.clear()
    verification.forget()
    fetches.forget()


def _begin(at: Position, node: Node, view: Look) -> Outcome:
    """Begin with the last final block: what lies below can be read as history."""
    head = view.latest.height
    final = _heights(at, view)
    number = max(0, min(final.finalized, head - at.confirmations))
    header = view.latest if number == head else node.header(number)
    if header is None:
        raise Moved("a block is not there any more")
    verification.check_hashes(node, [header], Scheme.of(at.verify))
    if rpc.agreed(node, [header], evidence=verification.evidence) < number:
        raise Undecided("another provider has not got as far")
    node.confirm_network()
    commits.begin(at, header, head, final)
    return Outcome.MORE


def _lower(at: Position, node: Node, latest: Header, until: float) -> Outcome:
    """The node hasn't got as far as we have: it is behind, or its chain has become shorter."""
    ours = block_rows.hashes(at.network_id, latest.height, latest.height)
    if ours.get(latest.height, latest.hash) != latest.hash:
        return _fork(at, node, latest, until, latest)
    trouble = f"the node is behind: it has block {latest.height}, read is {at.number}"
    commits.note_behind(at, trouble)
    return Outcome.DONE


def _fork(at: Position, node: Node, theirs: Header, until: float, latest: Header) -> Outcome:
    """The node has another block than ours, ``theirs``: go back to the last one that both have.
    Not before its chain id was requested again: another network is no reorganisation."""
    node.confirm_network()
    scheme = Scheme.of(at.verify)
    verification.check_hashes(node, [theirs], scheme)
    floor = cursor.floor(at)
    their_headers = {theirs.height: theirs}

    def hashes(heights: Sequence[int]) -> dict[int, str]:
        their_headers.update(fetches.blocks(node, heights))
        return {height: their_headers[height].hash for height in heights}

    fork = None
    if theirs.height > floor:
        ours = partial(block_rows.hashes, at.network_id)
        fork = forks.fork_point(ours, hashes, floor=floor, top=theirs.height - 1)
    if fork is None:
        text = f"{node.provider} has another chain at block {floor}, which is final"
        raise AnotherChain(text)
    first = their_headers.get(fork + 1) or fetches.blocks(node, [fork + 1])[fork + 1]
    verification.check_hashes(node, [first], scheme)
    if rpc.agreed(node, [first], evidence=verification.evidence) <= fork:
        raise Undecided("another provider has not got as far")
    hash_ = block_rows.hashes(at.network_id, fork, fork)[fork]
    if first.parent_hash != hash_:
        raise Moved("a block doesn't follow the one before it")
    at = commits.unwind(at, fork, hash_)
    return _read_on(at, node, latest, until, written=at)


def _with_finality(at: Position, node: Node, view: Look) -> Position:
    """The position with what is final now: the node has our blocks, so they're final as well. Of
    several providers one alone makes nothing final: its blocks can be taken out, then, when the
    others are back and have other ones."""
    final = _heights(at, view)
    limit = rpc.witnessed(at.network_id)
    if limit is not None and limit < final.finalized:
        # After a pause, for example: a node with this block has all that are below it.
        header = node.header(final.finalized)
        if header is not None:
            with suppress(Moved):
                rpc.agreed(node, [header], evidence=verification.evidence)
        limit = rpc.witnessed(at.network_id)
    if limit is not None:
        final = _witnessed_heights(at, node, view, limit)
    finalized = max(final.finalized, at.finalized or 0)
    # A block that was safe stays so while it is in the chain, whichever node answers next.
    return at._replace(finalized=finalized, safe=max(final.safe, finalized, at.safe or 0))


def _witnessed_heights(at: Position, node: Node, view: Look, limit: int) -> Heights:
    """What is safe and final by what several providers say: of two the lower heights, of three
    those in the middle, and nothing above ``limit``, up to which two have the same blocks."""
    head = min(view.latest.height, limit)
    if at.finality_depth is not None or view.finalized is None:
        return heights(at.network_id, head, view.safe, view.finalized, at.finality_depth)
    tags = rpc.tags_of_others(node)
    safe = _middle([view.safe, *(safe for safe, _ in tags)])
    finalized = _middle([view.finalized, *(final for _, final in tags)])
    if finalized is None:
        if not tags:
            return Heights(0, 0)  # nobody else says so: what is final already stays it
        # Others have no tags. A block that is deep enough is final as well.
        by_depth = heights(at.network_id, head, None, None)
        finalized = min(view.finalized, by_depth.finalized)
    return heights(at.network_id, head, safe or finalized, finalized)


def _middle(values: Sequence[int | None]) -> int | None:
    """Of two values the lower one, of three the one in the middle; None of fewer."""
    numbers = sorted(value for value in values if value is not None)
    return numbers[(len(numbers) - 1) // 2] if len(numbers) > 1 else None


def _heights(at: Position, view: Look) -> Heights:
    head = view.latest.height
    return heights(at.network_id, head, view.safe, view.finalized, at.finality_depth)


def _read_on(
    at: Position, node: Node, latest: Header, until: float, *, written: Position
) -> Outcome:
    """Read from the cursor on, as far as the node has blocks that are deep enough. ``written`` is
    what the cursor says, of which something may have been found to be otherwise."""
    at = at._replace(head=latest.height)
    last = latest.height - at.confirmations
    if at.height >= last:
        commits.note_look(written, at)
        return Outcome.DONE
    catalogue = contracts.catalogue(at.network_id)
    if catalogue.version != at.contracts:
        raise Elsewhere
    while at.height < last:
        final = min(at.finalized or 0, last)
        if final - at.height >= FAR and at.verify != VERIFY_ALL:
            stretch = fetches.final_blocks(node, at, final, catalogue.wanted)
        else:
            stretch = fetches.next_blocks(node, at, latest, last, catalogue.wanted)
        if not stretch.headers:
            commits.note_look(written, at)  # other providers haven't got as far
            return Outcome.DONE
        if contracts.refresh(at.network_id, node, stretch.logs):
            return Outcome.MORE
        at = commits.advance(at, stretch, catalogue.read(stretch.logs, stretch.times))
        if monotonic() >= until:
            return Outcome.MORE
    return Outcome.DONE

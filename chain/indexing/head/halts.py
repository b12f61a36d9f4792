"""When the chain that was read turns out to be another one, below what is final.

That's no reorganisation: a provider is wrong, or the network was started from scratch, or it has
lost its finality. What is stored stays as it is, and nothing more is read. If a provider was wrong,
reading resumes automatically (``review_halted``); the rest is decided by an operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.blocks import forks
from chain.core.failures import Moved, NodeFailure, TryAgain
from chain.core.node import Header, Node
from chain.indexing import verification
from chain.indexing.head import commits, cursor, fetches
from chain.indexing.head.cursor import Elsewhere
from chain.indexing.storage import block_rows, cursors
from chain.indexing.storage.cursors import Position
from chain.indexing.verification import Scheme
from chain.models import Block, Blockchain, ContractEvent, Cursor, ProvedBlock
from chain.models.expressions import in_seconds
from chain.rpc.endpoints import given_for
from objects.database.orm import orm_queries

CHECK_EVERY: Final = 60.0
"""Seconds between comparisons of the providers of a halted network with what is stored."""

BEHIND_AFTER: Final = 60.0
"""Seconds without a successful poll after which a network may be ``behind_final``."""

log = get_logger("chain")


class CannotResume(Exception):
    """Why a network isn't resumed as it was asked for: a sentence for the operator."""


def review(network_id: int) -> bool:
    """Compare all providers of a network with the highest stored block that is final; whether that
    has changed something, so that reading may go on.

    If one of them has it, those with another are left alone for a minute (compared with theirs, no
    block would be stored), and a halted network resumes. If all of them have another, the network
    is halted. The block at the cursor is not compared: a reorganisation above the final block is
    unwound by the reader.
    """
    at = cursors.read(network_id)
    if at is None or at.number is None:
        return False
    floor = cursor.floor(at)
    names = {endpoint.name for endpoint in given_for(network_id) if endpoint.url is not None}
    common = _common_blocks(at, floor, most=len(names))
    wrong = {name for name, block in common.items() if block != floor}
    if len(wrong) < len(common):
        for name in wrong:
            rpc.leave_out(network_id, name, f"has another final block {floor} than is stored")
        return bool(wrong) if at.halted is None else _go_on(at)
    if wrong and wrong == names and at.halted is None:
        _halt(at, floor, common)
    return False


def review_halted(network_id: int) -> bool:
    """As ``review``, at most once in ``CHECK_EVERY`` seconds over all processes."""
    is_due = Q(halt_checked_at=None) | Q(halt_checked_at__lte=in_seconds(-CHECK_EVERY))
    is_due |= Q(halt_checked_at__gt=Now())  # the clock was set back
    with orm_queries():
        halted = Cursor.objects.filter(is_due, network_id=network_id, halted__isnull=False)
        claimed = halted.update(halt_checked_at=Now())
    return claimed == 1 and review(network_id)


def _halt(at: Position, floor: int, common: Mapping[str, int | None]) -> None:
    reason = (
        f"The chain at {', '.join(sorted(common))} doesn't contain the stored block {floor},"
        f" which is final. {_advice(at.network_id, floor, {*common.values()})}"
    )
    with orm_queries():
        unmoved = Cursor.objects.filter(
            network_id=at.network_id, number=at.number, hash=at.hash, halted=None
        )
        changed = unmoved.update(halted=reason, trouble=None, halt_checked_at=Now())
    if changed:
        log.error("a network is halted", network=at.network_id, reason=reason)


def _common_blocks(at: Position, floor: int, *, most: int) -> dict[str, int | None]:
    """The result of ``_common_block`` for each provider that answers, by name."""

    def compare(node: Node) -> tuple[str, int | None]:
        try:
            return node.provider, _common_block(at, floor, node)
        except TryAgain:
            raise
        except NodeFailure as failure:
            raise TryAgain(str(failure)) from None

    return dict(rpc.ask_several(at.network_id, compare, most=most))


def _common_block(at: Position, floor: int, node: Node) -> int | None:
    """The highest stored block up to ``floor`` that the node has; None if it has none of them.
    Raises ``NodeFailure``, also for a node of another network or that has not got as far."""

    def theirs(heights: Sequence[int]) -> dict[int, str]:
        return {number: header.hash for number, header in fetches.blocks(node, heights).items()}

    node.confirm_network()
    view = fetches.look(node, floor, with_tags=False)
    if view.ours is not None:
        verification.check_hashes(node, [view.ours], Scheme.of(at.verify))
    ours = partial(block_rows.hashes, at.network_id)
    if view.ours is not None and view.ours.hash == ours(floor, floor).get(floor, at.hash):
        return floor
    if view.ours is None and view.latest.height >= floor:
        raise Moved("a block is not there any more")
    lowest = block_rows.lowest(at.network_id)
    top = min(floor - 1, view.latest.height)
    common = None if lowest is None else forks.fork_point(ours, theirs, floor=lowest, top=top)
    if view.ours is None and common == view.latest.height:
        raise TryAgain("the node is behind")
    return common


def _advice(network_id: int, floor: int, common: Collection[int | None]) -> str:
    """What ends the halt, by the last blocks that the providers share with the stored chain."""
    command = f"script/manage chain_resume {network_id}"
    advice = [
        "Nothing is read any more, and nothing was changed. If the providers are wrong, nothing has"
        f" to be done: reading resumes within a minute after one of them has block {floor} again."
    ]
    advice += [
        f"If the network was reorganised below its final block, run {command} --unwind-to {block}."
        for block in sorted(block for block in common if block is not None)
    ]
    if None in common:
        advice.append(
            f"No stored header is of that chain: if it was started from scratch, run {command}"
            " --from-scratch."
        )
    return " ".join(advice)


def resume(network_id: int, *, unwind_to: int | None = None) -> None:
    """Read a halted network again, from where it was; or from ``unwind_to`` on, the last block that
    the chain that was read shares with the one that is to be read now.

    Raises ``CannotResume``; nothing has changed then.
    """
    at = _halted_position(network_id)
    if unwind_to is None:
        if not _go_on(at):
            raise CannotResume(_CHANGED)
        return
    if not 0 <= unwind_to < at.height:
        raise CannotResume(f"The network has been read up to block {at.number}.")
    try:
        header = rpc.attempt(network_id, lambda node: _shared(node, at, unwind_to))
        commits.rewind(at, header)
    except NodeFailure as failure:
        raise CannotResume(f"No provider answers: {failure}.") from failure
    except Elsewhere:
        raise CannotResume(_CHANGED) from None


def index_from_scratch(network_id: int) -> None:
    """Discard the stored chain of a network that is halted or ``behind_final``: its events are sent
    as removed, and the chain that it has now is read as that of a new network is.

    Raises ``CannotResume``; nothing has changed then.
    """
    at = cursors.read(network_id)
    if at is None or at.halted is not None or behind_final(at) is None:
        at = _halted_position(network_id)
    try:
        commits.index_from_scratch(at)
    except Elsewhere:
        raise CannotResume(_CHANGED) from None


def behind_final(at: Position) -> int | None:
    """The highest block of the network's providers, if it has been below the stored final block for
    more than a minute: they are behind, or the chain was started from scratch and is still shorter.
    None otherwise, also where no provider answers."""
    if at.number is None or at.halted is not None or at.age <= BEHIND_AFTER:
        return None
    heads = [provider.head for provider in rpc.health(at.network_id) if provider.lag is not None]
    highest = max((head for head in heads if head is not None), default=None)
    return highest if highest is not None and highest < at.final else None


def advice(network_id: int) -> str | None:
    """What may be done about a network that is ``behind_final``, for operators; None for others."""
    at = cursors.read(network_id)
    highest = None if at is None else behind_final(at)
    if at is None or highest is None:
        return None
    return (
        f"Its providers have blocks up to {highest}, and block {at.final} was final. If they are"
        " behind, nothing has to be done. If the chain was started again from its beginning:"
        f" script/manage chain_resume {network_id} --from-scratch"
    )


_CHANGED: Final = "The network has moved on meanwhile; look again."


def _halted_position(network_id: int) -> Position:
    """The position of a halted network. Raises ``CannotResume`` for any other network, so that no
    command for halts can discard a healthy index. ``cursor.lock`` repeats the check."""
    at = cursors.read(network_id)
    if at is None or at.number is None:
        raise CannotResume(_not_read(network_id))
    if at.halted is None:
        raise CannotResume(f"Network {network_id} is not halted. Nothing was changed.")
    return at


def _not_read(network_id: int) -> str:
    active = Blockchain.objects.filter(network_id=network_id).values_list("active", flat=True)
    if not active:
        return f"There is no network {network_id}."
    if not active[0]:
        return f"Network {network_id} is paused: script/manage chain_network resume {network_id}"
    return f"Network {network_id} has not been read yet."


def _go_on(at: Position) -> bool:
    """End the halt, unless the cursor or the reason has changed since they were read."""
    if at.halted is None or at.number is None:
        return False
    with orm_queries():
        unmoved = Cursor.objects.filter(
            network_id=at.network_id, number=at.number, hash=at.hash, halted=at.halted
        )
        resumed = unmoved.update(halted=None, trouble=None, next_poll_at=None)
    if resumed:
        log.warning("a halted network resumes", network=at.network_id, block=at.number)
    return resumed == 1


def _shared(node: Node, at: Position, number: int) -> Header:
    """The node's block at this height, if it is the one that was read."""
    header = node.header(number)
    if header is None:
        raise CannotResume(f"The network has no block {number}.")
    read = _read_hashes(at.network_id, number)
    for height, hash_ in read:
        their_header = header if height == number else node.header(height)
        if their_header is None or their_header.hash != hash_:
            raise CannotResume(
                f"Block {height} is another one than was read. Choose a lower block."
            )
    return header


def _read_hashes(network_id: int, number: int) -> list[tuple[int, str]]:
    """What is stored of the chain at this height, or last below: of a header, of an event, of a
    block that was proved."""
    blocks = Block.objects.filter(network_id=network_id, canonical=True, number__lte=number)
    events = ContractEvent.objects.filter(
        network_id=str(network_id), canonical=True, block_number__lte=number
    )
    proved = ProvedBlock.objects.filter(network_id=network_id, number__lte=number)
    highest = (
        blocks.order_by("-number").values_list("number", "hash")[:1],
        events.order_by("-block_number").values_list("block_number", "block_hash")[:1],
        proved.order_by("-number").values_list("number", "hash")[:1],
    )
    with orm_queries():
        return [*highest[0].union(*highest[1:])]

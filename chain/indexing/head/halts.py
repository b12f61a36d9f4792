"""When the chain that was read turns out to be another one, below what is final.

That's no reorganisation: a provider is wrong, or the network was started from scratch, or it has
lost its finality. What is stored stays as it is, and nothing more is read. If a provider was wrong,
reading resumes automatically (``review_halted``); the rest is decided by an operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.blocks import forks
from chain.core.failures import Moved, NodeFailure, TryAgain
from chain.core.node import Header, Node
from chain.indexing import verification
from chain.indexing.head import commits, cursor, fetches
from chain.indexing.head.cursor import Elsewhere, Position
from chain.indexing.verification import Scheme
from chain.models import Blockchain
from chain.models.stored import BlockRow
from chain.rpc.endpoints import given_for
from objects.database.statements import fetch, fetch_rows

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
    at = cursor.read(network_id)
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
    claimed = fetch(
        "UPDATE chain_cursor SET halt_checked_at = statement_timestamp()"
        " WHERE network_id = %(network)s AND halted IS NOT NULL AND (halt_checked_at IS NULL"
        " OR halt_checked_at <= statement_timestamp() - make_interval(secs => %(every)s)"
        # The clock was set back.
        " OR halt_checked_at > statement_timestamp()) RETURNING 1",
        {"network": network_id, "every": CHECK_EVERY},
        prepare=True,
    )
    return bool(claimed) and review(network_id)


def _halt(at: Position, floor: int, common: Mapping[str, int | None]) -> None:
    reason = (
        f"The chain at {', '.join(sorted(common))} doesn't contain the stored block {floor},"
        f" which is final. {_advice(at.network_id, floor, {*common.values()})}"
    )
    halted = fetch(
        "UPDATE chain_cursor SET halted = %(reason)s, trouble = NULL,"
        " halt_checked_at = statement_timestamp()"
        " WHERE network_id = %(network)s AND number = %(number)s AND hash = %(hash)s"
        " AND halted IS NULL RETURNING 1",
        {"reason": reason, "network": at.network_id, "number": at.number, "hash": at.hash},
        prepare=True,
    )
    if halted:
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
    ours = partial(cursor.hashes, at.network_id)
    if view.ours is not None and view.ours.hash == ours(floor, floor).get(floor, at.hash):
        return floor
    if view.ours is None and view.latest.height >= floor:
        raise Moved("a block is not there any more")
    lowest = cursor.lowest(at.network_id)
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
    at = cursor.read(network_id)
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
    at = cursor.read(network_id)
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
    command for halts can discard a healthy index. ``position.lock`` repeats the check."""
    at = cursor.read(network_id)
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
    resumed = fetch(
        "UPDATE chain_cursor SET halted = NULL, trouble = NULL, next_poll_at = NULL"
        " WHERE network_id = %(network)s AND number = %(number)s AND hash = %(hash)s"
        " AND halted = %(reason)s RETURNING 1",
        {
            "network": at.network_id,
            "number": at.number,
            "hash": at.hash,
            "reason": at.halted,
        },
        prepare=True,
    )
    if resumed:
        log.warning("a halted network resumes", network=at.network_id, block=at.number)
    return bool(resumed)


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
    rows = fetch_rows(
        BlockRow,
        "(SELECT number, hash FROM chain_block"
        "  WHERE network_id = %(network)s AND canonical AND number <= %(number)s"
        "  ORDER BY number DESC LIMIT 1)"
        " UNION "
        "(SELECT block_number, block_hash FROM chain_contract_event"
        "  WHERE network_id = %(network)s::text AND canonical AND block_number <= %(number)s"
        "  ORDER BY block_number DESC LIMIT 1)"
        " UNION "
        "(SELECT number, hash FROM chain_proved_block"
        "  WHERE network_id = %(network)s AND number <= %(number)s ORDER BY number DESC LIMIT 1)",
        {"network": network_id, "number": number},
        prepare=True,
    )
    return [(row.number, row.hash) for row in rows]

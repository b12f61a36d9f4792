"""When the chain that was read turns out to be another one, below what is final.

That's no reorganisation: a provider is wrong, or the network has been made anew, or it has lost
its finality. What is stored stays as it is, and nothing more is read until an operator has looked.
"""

from __future__ import annotations

from collections.abc import Collection

from backend.logs import get_logger
from chain import gateway
from chain.core.failures import NodeFailure
from chain.core.node import Header, Node
from chain.following import position, writing
from chain.following.position import Elsewhere, Position
from chain.gateway.endpoints import given_for
from objects.database import fetch

log = get_logger("chain")


class CannotResume(Exception):
    """Why a network isn't resumed as it was asked for: a sentence for the operator."""


def contradicted(network_id: int, providers: Collection[str]) -> None:
    """These providers have another chain, and no other has answered. Halt if there is no other:
    as long as one may answer, it's only noted."""
    at = position.read(network_id)
    if at is None or at.halted is not None:
        return
    reason = (
        f"The chain at {', '.join(sorted(providers))} is another one at block"
        f" {position.floor(at)}, which is final. Nothing is read any more, and nothing was changed."
    )
    given = [one.name for one in given_for(network_id) if one.url is not None]
    others = [one for one in given if one not in providers]
    if others:
        writing.note_trouble(network_id, reason)
        return
    halted = fetch(
        "UPDATE chain_cursor SET halted = %s, trouble = NULL"
        " WHERE network_id = %s AND number = %s AND hash = %s AND halted IS NULL RETURNING 1",
        (reason, network_id, at.number, at.hash),
        prepare=True,
    )
    if halted:
        log.error("a network is halted", network=network_id, reason=reason)


def resume(network_id: int, *, unwind_to: int | None = None) -> None:
    """Read a halted network again, from where it was; or from ``unwind_to`` on, the last block that
    the chain that was read shares with the one that is to be read now.

    Raises ``CannotResume``; nothing has changed then.
    """
    at = position.read(network_id)
    if at is None or at.number is None:
        raise CannotResume(f"Network {network_id} is not followed.")
    if unwind_to is None:
        if at.halted is None:
            raise CannotResume(f"Network {network_id} is not halted.")
        _go_on(network_id)
        return
    if not 0 <= unwind_to < at.number:
        raise CannotResume(f"The network has been read up to block {at.number}.")
    try:
        header = gateway.attempt(network_id, lambda node: _shared(node, at, unwind_to))
        writing.rewind(at, header)
    except NodeFailure as failure:
        raise CannotResume(f"No provider answers: {failure}.") from failure
    except Elsewhere:
        raise CannotResume("The network has moved on meanwhile; look again.") from None


def begin_anew(network_id: int) -> None:
    """Forget a network's chain: its events are told as removed, and the chain that it has now is
    read as that of a new network is. Raises ``CannotResume``."""
    at = position.read(network_id)
    if at is None or at.number is None:
        raise CannotResume(f"Network {network_id} is not followed.")
    try:
        writing.begin_anew(at)
    except Elsewhere:
        raise CannotResume("The network has moved on meanwhile; look again.") from None


def _go_on(network_id: int) -> None:
    fetch(
        "UPDATE chain_cursor SET halted = NULL, trouble = NULL, next_poll_at = NULL"
        " WHERE network_id = %s",
        (network_id,),
        prepare=True,
    )


def _shared(node: Node, at: Position, number: int) -> Header:
    """The node's block at this height, if it is the one that was read."""
    header = node.header(number)
    if header is None:
        raise CannotResume(f"The network has no block {number}.")
    read = _read_hashes(at.network_id, number)
    for height, hash_ in read:
        found = header if height == number else node.header(height)
        if found is None or found.hash != hash_:
            raise CannotResume(
                f"Block {height} is another one than was read. Choose a lower block."
            )
    return header


def _read_hashes(network_id: int, number: int) -> list[tuple[int, str]]:
    """What is known of the chain at this height, or last below: of a header, of an event."""
    rows = fetch(
        "(SELECT number, hash FROM chain_block"
        "  WHERE network_id = %s AND canonical AND number <= %s ORDER BY number DESC LIMIT 1)"
        " UNION "
        "(SELECT block_number, block_hash FROM chain_contract_event"
        "  WHERE network_id = %s AND canonical AND block_number <= %s"
        "  ORDER BY block_number DESC LIMIT 1)",
        (network_id, number, str(network_id), number),
        prepare=True,
    )
    return [(int(height), hash_) for height, hash_ in rows]

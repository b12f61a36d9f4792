"""Whether headers have the hashes that they state.

A header with another parent, time, filter or root than the block with its hash is refused, on
networks whose hashes can be computed. A hard fork may add a field to headers that isn't known here;
no provider has a header with the right hash then. Where only a sample is checked, such headers are
accepted after ``PATIENCE``, and from their height on until one has its hash again. History may
have headers of an older make: there, one whose hash can't be computed at all is accepted at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Final

from backend.logs.setup import get_logger
from chain.core.blocks.hashes import has_own_hash, hash_of
from chain.core.failures import Contradiction
from chain.core.node import Header, Node
from chain.indexing.verification import capabilities
from chain.indexing.verification.contradictions import note_contradiction
from chain.indexing.verification.schemes import Scheme
from chain.models import Cursor
from objects.database.orm import orm_queries

PATIENCE: Final = 600.0
"""Seconds after which headers of an unknown make are accepted."""
_TEXT: Final = "its header has another hash than it states"

_mismatches: dict[int, tuple[int, float]] = {}
"""Per network: the lowest height at which a header mismatched, and when that was first seen."""

log = get_logger("chain")


def check_hashes(node: Node, headers: Iterable[Header], scheme: Scheme) -> None:
    """Raise ``Contradiction`` if a header doesn't hash to the hash that it states, on networks
    where one did.

    A hash that can't be computed, since a field is missing or malformed, is a mismatch too, except
    in history where a sample is checked.
    """
    network_id = node.network_id
    for header in headers:
        own = hash_of(header)
        if own == header.hash.lower():
            continue
        if capabilities.has(network_id, "proves_hashes"):
            began_at, until = _bounds(network_id)
            is_history = began_at is not None and header.height <= began_at
            if scheme.every_block or (is_history and own is not None):
                note_contradiction(node, header.height, _TEXT, scheme)
                raise Contradiction(f"block {header.height}: {_TEXT}")
            if not is_history and (until is None or header.height <= until):
                _wait_or_accept(node, header.height, scheme)


def is_plausible(network_id: int, header: Header) -> bool:
    """Whether a header has the hash that it states, as far as that can be computed here. Nothing is
    noted if it hasn't."""
    if has_own_hash(header) or not capabilities.has(network_id, "proves_hashes"):
        return True
    _, until = _bounds(network_id)
    return until is not None and header.height > until


def end_mismatches(network_id: int, newest: Header) -> None:
    """Note that a block was stored: if it has its own hash, ``PATIENCE`` begins again."""
    if network_id in _mismatches and has_own_hash(newest):
        _mismatches.pop(network_id, None)


def forget() -> None:
    """Clear what this process has learned, for tests."""
    _mismatches.clear()


def _wait_or_accept(node: Node, height: int, scheme: Scheme) -> None:
    """Raise ``Contradiction`` until mismatches have lasted, then accept headers from here on."""
    mismatch = _mismatches.get(node.network_id)
    lowest, since = mismatch or (height, monotonic())
    _mismatches[node.network_id] = (min(lowest, height), since)
    if mismatch is None:
        note_contradiction(node, height, _TEXT, scheme)
    if monotonic() - since < PATIENCE:
        raise Contradiction(f"block {height}: {_TEXT}")
    _mismatches.pop(node.network_id, None)
    first = min(lowest, height)
    with orm_queries():
        Cursor.objects.filter(network_id=node.network_id).update(hashes_until=first - 1)
    log.error(
        "headers are accepted whose hashes can't be checked",
        network=node.network_id,
        block=first,
    )


def _bounds(network_id: int) -> tuple[int | None, int | None]:
    """The first block that was read as a head, and the last one with a hash; None if unknown."""
    with orm_queries():
        cursors = Cursor.objects.filter(network_id=network_id)
        return cursors.values_list("began_at", "hashes_until").first() or (None, None)

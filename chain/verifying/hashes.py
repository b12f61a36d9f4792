"""Whether headers have the hashes that they state.

A header with another parent, time, filter or root than the block with its hash is refused, on
networks whose hashes can be computed. A hard fork may add a field to headers that isn't known here;
no provider has a header with the right hash then. Where only a sample is checked, such headers are
accepted after ``PATIENCE``, and from their height on.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Final

from backend.logs import get_logger
from chain.core.block_hashes import hash_of
from chain.core.failures import Contradiction
from chain.core.node import Header, Node
from chain.verifying import capabilities
from chain.verifying.noting import note_contradiction
from chain.verifying.schemes import Scheme
from objects.database import fetch

PATIENCE: Final = 600.0
"""Seconds after which headers of unknown make are accepted."""

_lasting: dict[int, tuple[int, float]] = {}
"""Per network: the lowest height at which a header had another hash, and since when."""

log = get_logger("chain")


def check_hashes(node: Node, headers: Iterable[Header], scheme: Scheme) -> None:
    """``Contradiction`` if a header hasn't the hash that it states, on networks where one had.

    A header whose hash can't be computed, since it lacks a field, is one if every block is checked.
    """
    network_id = node.network_id
    for header in headers:
        own = hash_of(header)
        if own == header.hash.lower():
            capabilities.learn(network_id, "proves_hashes")
            if header.height >= _lasting.get(network_id, (header.height + 1, 0.0))[0]:
                del _lasting[network_id]
        elif (own is not None or scheme.every_block) and _must_have(network_id, header):
            text = "its header has another hash than it states"
            if _is_new(network_id, header.height):
                note_contradiction(node, [header.height], text, scheme)
            if scheme.every_block or not _has_lasted(network_id, header.height):
                raise Contradiction(f"block {header.height}: {text}")


def forget() -> None:
    """Begin as a new process does."""
    _lasting.clear()


def _must_have(network_id: int, header: Header) -> bool:
    if not capabilities.has(network_id, "proves_hashes"):
        return False
    rows = fetch(
        "SELECT hashes_until FROM chain_cursor WHERE network_id = %s", (network_id,), prepare=True
    )
    return not rows or rows[0][0] is None or header.height <= int(rows[0][0])


def _is_new(network_id: int, height: int) -> bool:
    lowest, since = _lasting.get(network_id, (height, monotonic()))
    _lasting[network_id] = (min(lowest, height), since)
    return height <= lowest


def _has_lasted(network_id: int, height: int) -> bool:
    """Whether headers from this height on are to be accepted; that is kept with the cursor."""
    lowest, since = _lasting[network_id]
    if monotonic() - since < PATIENCE:
        return False
    del _lasting[network_id]
    fetch(
        "UPDATE chain_cursor SET hashes_until = %s WHERE network_id = %s",
        (min(lowest, height) - 1, network_id),
        prepare=True,
    )
    log.error(
        "headers are accepted whose hashes can't be checked", network=network_id, from_=height
    )
    return True

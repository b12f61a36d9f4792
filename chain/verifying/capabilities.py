"""What the headers of a network prove, as far as that has been seen.

Not every network makes hashes and roots as Ethereum does. Where one block had a hash that was
computed from its header, or receipts with the root in it, all blocks must: the next one without is
a contradiction. That is kept with the cursor of the network.
"""

from __future__ import annotations

from time import monotonic
from typing import Final, Literal

from objects.database import fetch

Capability = Literal["proves_hashes", "proves_receipts"]

_KEPT: Final = 30.0  # seconds: another process may learn one, or a network begin from scratch
_learned: dict[tuple[int, Capability], float] = {}

_READ: Final = {
    "proves_hashes": "SELECT proves_hashes FROM chain_cursor WHERE network_id = %s",
    "proves_receipts": "SELECT proves_receipts FROM chain_cursor WHERE network_id = %s",
}
_LEARN: Final = {
    "proves_hashes": (
        "UPDATE chain_cursor SET proves_hashes = true WHERE network_id = %s AND NOT proves_hashes"
    ),
    "proves_receipts": (
        "UPDATE chain_cursor SET proves_receipts = true"
        " WHERE network_id = %s AND NOT proves_receipts"
    ),
}

# Networks whose blocks have logs that the filter and the root of receipts leave out: Polygon's
# state syncs (PIP-74 ended that for later blocks).
_WITH_UNNAMED_LOGS: Final = frozenset({137, 80002})


def has_unnamed_logs(network_id: int) -> bool:
    """Whether blocks of the network may have logs that their headers don't commit to."""
    return network_id in _WITH_UNNAMED_LOGS


def has(network_id: int, capability: Capability) -> bool:
    """Whether a block of the network has been seen of which its header proved this."""
    if monotonic() - _learned.get((network_id, capability), -_KEPT) < _KEPT:
        return True
    rows = fetch(_READ[capability], (network_id,), prepare=True)
    if not rows or rows[0][0] != "t":
        return False
    _learned[network_id, capability] = monotonic()
    return True


def learn(network_id: int, capability: Capability) -> None:
    """Note that a header of the network proved this."""
    if not has(network_id, capability):
        fetch(_LEARN[capability], (network_id,), prepare=True)


def forget() -> None:
    """Begin as a new process does."""
    _learned.clear()

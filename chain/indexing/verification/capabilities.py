"""What the headers of a network prove, as far as that has been seen.

Not every network makes hashes and roots as Ethereum does. Once a block had a hash that was computed
from its header, later headers must have theirs (``chain.indexing.verification.hashes``). Once
receipts had the
root of their header, all receipts must, where every block is checked. Both facts are columns of the
network's cursor, and are learned from blocks that are stored, which all providers agree on: a block
that one provider makes up teaches nothing. They are cleared when the network's
``verify`` isn't ``all`` any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final, Literal, NamedTuple

from chain.core.blocks.hashes import has_own_hash
from chain.core.node import Header
from chain.indexing.storage import cursors

Capability = Literal["proves_hashes", "proves_receipts"]

_FLAGS: Final = ("proves_hashes", "proves_receipts")
_KEPT: Final = 30.0  # seconds: another process may learn one, or the network be reset
_known: dict[int, _Known] = {}
_with_root: dict[int, str] = {}
"""Per network: the hash of the last block whose receipts had the root of its header."""

# Networks whose blocks have logs that the filter and the root of receipts leave out: Polygon's
# state syncs (PIP-74 ended that for later blocks).
_WITH_UNNAMED_LOGS: Final = frozenset({137, 80002})


class _Known(NamedTuple):
    read_at: float
    proved: frozenset[str]
    hashes_until: int | None


def has_unnamed_logs(network_id: int) -> bool:
    """Whether blocks of the network may have logs that their headers don't commit to."""
    return network_id in _WITH_UNNAMED_LOGS


def has(network_id: int, capability: Capability) -> bool:
    """Whether a block of the network has been seen of which its header proved this."""
    return capability in _read(network_id).proved


def is_without_hash(network_id: int, height: int) -> bool:
    """Whether headers at this height are accepted although their hashes can't be computed."""
    until = _read(network_id).hashes_until
    return until is not None and height > until


def note_root(network_id: int, header: Header) -> None:
    """Note that receipts had the root of this header."""
    _with_root[network_id] = header.hash


def learn(network_id: int, headers: Sequence[Header]) -> None:
    """Learn from consecutive blocks, in the transaction that stores them."""
    capabilities = _read(network_id)
    newest = headers[-1]
    is_own = "proves_hashes" in capabilities.proved and capabilities.hashes_until is None
    has_hash = is_own or has_own_hash(newest)
    hashes = has_hash and "proves_hashes" not in capabilities.proved
    hashes_again = (
        has_hash
        and capabilities.hashes_until is not None
        and newest.height > capabilities.hashes_until
    )
    with_root = _with_root.get(network_id)
    receipts = "proves_receipts" not in capabilities.proved and any(
        header.hash == with_root for header in headers
    )
    if hashes or hashes_again or receipts:
        cursors.learn(network_id, hashes=hashes, hashes_again=hashes_again, receipts=receipts)
        _known.pop(network_id, None)


def forget() -> None:
    """Clear what this process has learned, for tests."""
    _known.clear()
    _with_root.clear()


def _read(network_id: int) -> _Known:
    capabilities = _known.get(network_id)
    if capabilities is not None and monotonic() - capabilities.read_at < _KEPT:
        return capabilities
    learned = cursors.capabilities(network_id)
    if learned is None:
        return _Known(monotonic(), frozenset(), None)
    proved = frozenset(name for name in _FLAGS if getattr(learned, name))
    capabilities = _known[network_id] = _Known(monotonic(), proved, learned.hashes_until)
    return capabilities

"""Check what a provider returns against the headers of its blocks, before it is stored.

``verified`` does that for blocks whose headers are known, ``verified_range`` for ranges that are
read without headers. ``Scheme`` says how much is checked, by the network's setting ``verify``.

A header's bloom filter names every contract and topic that has logged in its block. So it shows
which logs are invented and, unless nearly all of its bits are set, which are missing. Everything
else in a log is checked against the receipts of its block, whose root is in the header. Whether a
network's headers can be used for that is learned from blocks in which everything agrees
(``capabilities``).
"""

from collections.abc import Sequence

from chain.core.node import Header
from chain.indexing.verification import (
    blocks,
    capabilities,
    contradictions,
    evidence,
    hashes,
    ranges,
)
from chain.indexing.verification.blocks import has_receipts, is_doubtful, verified
from chain.indexing.verification.hashes import check_hashes, is_plausible
from chain.indexing.verification.ranges import (
    WIDTH,
    check_links,
    end_of_window,
    headers,
    verified_range,
)
from chain.indexing.verification.schemes import Scheme


def have_provable_hashes(network_id: int) -> bool:
    """Whether the headers of a network have hashes that can be computed from them."""
    return capabilities.has(network_id, "proves_hashes")


def learn(network_id: int, headers: Sequence[Header]) -> None:
    """Learn what the network's headers prove from consecutive blocks, in the transaction that
    stores them. If the newest one has its own hash, waiting for mismatched headers ends."""
    capabilities.learn(network_id, headers)
    hashes.end_mismatches(network_id, headers[-1])


def forget() -> None:
    """Clear what this process has learned of networks and providers, for tests."""
    for part in (blocks, capabilities, hashes, contradictions, ranges):
        part.forget()


__all__ = [
    "WIDTH",
    "Scheme",
    "check_hashes",
    "check_links",
    "end_of_window",
    "evidence",
    "forget",
    "has_receipts",
    "have_provable_hashes",
    "headers",
    "is_doubtful",
    "is_plausible",
    "learn",
    "verified",
    "verified_range",
]

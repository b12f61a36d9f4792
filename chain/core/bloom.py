"""The bloom filter of a block's header: which contracts may have logged in it.

It never lacks a contract that has, so logs that are missing from an answer are noticed. It may
name others: each address and topic sets three of 2048 bits, and a busy block sets most of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from eth_utils import keccak

from chain.core.node import Header, Log, LogFilter

_BITS: Final = 2048
_DOUBTFUL: Final = 0.05


class Watch:
    """The contracts (and topics) whose logs are wanted, as their bits in a bloom filter."""

    def __init__(self, wanted: LogFilter) -> None:
        self._addresses = {
            address.lower(): bits_of(address.lower()) for address in wanted.addresses
        }
        self._topics = [bits_of(topic.lower()) for topic in wanted.topics]

    def silent(self, header: Header, heard: Collection[str]) -> bool:
        """Whether a contract that isn't among those heard (in lower case) must have logged.

        False also if the filter is so full that it would say so of one block in twenty without
        reason: asking again costs a request.
        """
        bloom = value_of(header)
        if not bloom or self._chance(bloom) > _DOUBTFUL:
            return False
        if self._topics and not any(bloom & bits == bits for bits in self._topics):
            return False
        return any(
            bloom & bits == bits and address not in heard
            for address, bits in self._addresses.items()
        )

    def _chance(self, bloom: int) -> float:
        """How probable it is that the filter names one of the contracts by coincidence."""
        three = (bloom.bit_count() / _BITS) ** 3
        topics = min(1.0, len(self._topics) * three) if self._topics else 1.0
        return len(self._addresses) * three * topics


def value_of(header: Header) -> int:
    """The filter as a number; 0 if the header has none."""
    try:
        return int(header.logs_bloom, 16)
    except ValueError:
        return 0


def is_complete(header: Header, logs: Iterable[Log]) -> bool:
    """Whether these may be all logs of the block, of whichever contract: they account for every bit
    of its filter. There may be others besides; some networks have logs that no filter names."""
    try:
        return not value_of(header) & ~bloom_of(logs)
    except ValueError:
        return False


def bloom_of(logs: Iterable[Log]) -> int:
    """The filter of a block with exactly these logs."""
    bloom = 0
    for log in logs:
        bloom |= bits_of(log.address.lower())
        for topic in log.topics:
            bloom |= bits_of(topic.lower())
    return bloom


@lru_cache(maxsize=65_536)
def bits_of(subject: str) -> int:
    """The bits of an address or a topic (0x… in lower case)."""
    digest = keccak(hexstr=subject)
    bits = 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") % _BITS)
    return bits

"""The bloom filter of a block's header: which contracts may have logged in it.

It never lacks a contract that has, so logs that are missing from an answer are noticed. It may
name others: each address and topic sets three of 2048 bits, and a busy block sets most of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from eth_hash.auto import keccak

from chain.core.blocks.hexadecimal import bytes_of
from chain.core.node import Header, Log, LogFilter

_BITS: Final = 2048
_LENGTHS: Final = (42, 66)


class Watch:
    """The contracts (and topics) whose logs are wanted, as their bits in a bloom filter."""

    def __init__(self, log_filter: LogFilter) -> None:
        self._addresses = {
            address.lower(): bits_of(address.lower()) for address in log_filter.addresses
        }
        self._topics = [bits_of(topic.lower()) for topic in log_filter.topics]

    def named(self, header: Header) -> list[str]:
        """The contracts (in lower case) that may have logged in the block. Those that have logged
        are always among them; without a filter none are."""
        bloom = value_of(header)
        if not bloom:
            return []
        if self._topics and not any(bloom & bits == bits for bits in self._topics):
            return []
        return [address for address, bits in self._addresses.items() if bloom & bits == bits]

    def chance(self, header: Header) -> float:
        """How probable it is that the filter names one of the contracts by coincidence."""
        three = (value_of(header).bit_count() / _BITS) ** 3
        topics = min(1.0, len(self._topics) * three) if self._topics else 1.0
        return min(1.0, len(self._addresses) * three * topics)


def value_of(header: Header) -> int:
    """The filter as a number; 0 if the header has none."""
    try:
        return int(header.logs_bloom or "0x", 16)
    except ValueError:
        return 0


def is_complete(header: Header, logs: Iterable[Log]) -> bool:
    """Whether these may be all logs of the block, of whichever contract: they account for every bit
    of its filter. There may be others; some networks have logs that no filter names."""
    try:
        return not value_of(header) & ~bloom_of(logs)
    except ValueError:
        return False


def names_all(header: Header, logs: Iterable[Log]) -> bool:
    """Whether the filter has all bits of these logs, as it must have of each log in the block."""
    try:
        return not bloom_of(logs) & ~value_of(header)
    except ValueError:
        return False


def bloom_of(logs: Iterable[Log]) -> int:
    """The filter of a block with exactly these logs."""
    subjects: set[str] = set()
    for log in logs:
        subjects.add(log.address)
        subjects.update(log.topics)
    bloom = 0
    for subject in subjects:
        bloom |= bits_of(subject.lower())
    return bloom


def bits_of(subject: str) -> int:
    """The bits of an address or a topic (0x… in lower case). ``ValueError`` for anything else."""
    if len(subject) not in _LENGTHS:
        raise ValueError("neither an address nor a topic")
    return _bits_of(subject)


@lru_cache(maxsize=65_536)
def _bits_of(subject: str) -> int:
    digest = int.from_bytes(keccak(bytes_of(subject))[:6], "big")
    return 1 << (digest >> 32) % _BITS | 1 << (digest >> 16) % _BITS | 1 << digest % _BITS

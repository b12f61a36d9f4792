"""When a block was made, by its header or by its logs.

A time is kept as the network counts it (``Moment`` in ``chain.core.node``): most count seconds,
some milli-, micro- or nanoseconds. ``wire_time`` makes a date of each, which PostgreSQL and
JavaScript can hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from chain.core.failures import TryAgain
from chain.core.node import Header, Log

_MOMENT = re.compile(r"0x0{0,64}[0-7]?[0-9a-fA-F]{1,15}")  # as ``Moment``
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# From these values on a time can't count seconds, milliseconds, microseconds: each stands for a
# moment of the year 5138, and for one before April 1973 in the next smaller unit.
_MILLISECONDS: Final = 10**11
_MICROSECONDS: Final = 10**14
_NANOSECONDS: Final = 10**17


def wire_time(time: int) -> str | None:
    """A time as clients read it, such as ``2024-01-01T00:00:00.000Z``; None for 0 and below, which
    stands for a missing one. Never after the year 5138."""
    return _wire_time(time)


@lru_cache(maxsize=4096)
def _wire_time(time: int) -> str | None:
    if not 0 < time < 2**63:
        return None
    moment = _EPOCH + timedelta(milliseconds=_milliseconds(time))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(time: int) -> int:
    if time < _MILLISECONDS:
        return time * 1000
    if time < _MICROSECONDS:
        return time
    if time < _NANOSECONDS:
        return time // 1000
    return time // 1_000_000


def times_of(logs: Iterable[Log], headers: Iterable[Header] = ()) -> dict[str, int]:
    """The times of blocks by hash, as far as these headers and the logs themselves have them.

    Raises ``TryAgain`` if a log names another second than the header of its block, or than another
    log of the block.
    """
    times = {header.hash: header.time for header in headers if header.time}
    for hash_, text in {(log.block_hash, log.block_timestamp) for log in logs}:
        time = _time(text)
        if time and _second(times.setdefault(hash_, time)) != _second(time):
            raise TryAgain("a log names another time than its block")
    return times


def undated(logs: Sequence[Log], dated: Collection[str]) -> dict[str, int]:
    """The blocks of these logs that aren't among the ``known`` ones: heights by hash."""
    return {log.block_hash: log.height for log in logs if log.block_hash not in dated}


def wire_times(times: Mapping[str, int]) -> dict[str, str]:
    """The same as clients read them."""
    texts = {hash_: wire_time(time) for hash_, time in times.items()}
    return {hash_: text for hash_, text in texts.items() if text is not None}


def _time(value: object) -> int | None:
    if not isinstance(value, str) or _MOMENT.fullmatch(value) is None:
        return None
    return int(value, 16)


def _second(time: int) -> int:
    """Headers and logs may count in different units."""
    return _milliseconds(time) // 1000

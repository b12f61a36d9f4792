"""Reading the logs of ranges of blocks that are final, within the limits of each provider.

What has been learned of a provider's limits is kept in the cache, for other readers and processes:
for a day if the provider has named a limit on blocks, for an hour if it has refused a range without
a reason and answered a smaller one. A limit that staff have entered with the provider holds in any
case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal
from urllib.parse import quote

from django.core.cache import cache
from redis.exceptions import RedisError

from chain.core.failures import (
    REFUSALS_OF_LOGS,
    Moved,
    NodeFailure,
    RangeTooLarge,
    SlowDown,
    TryAgain,
)
from chain.core.node import Log, LogFilter, Node
from chain.core.ranges import FIRST_WIDTH, MOST, SLOW, WIDEST, Ranges
from chain.models import Provider

_KEPT: Final = {"ceiling": 86_400, "limit": 3600}  # seconds
_USUAL: Final = 2_000  # characters of a log's data


class Limits:
    """How wide the ranges of one reader are, for each provider that it meets.

    ``width`` is where a reader goes on that has read these contracts before, or 0; it begins with
    ``first`` then. Several threads may use it.
    """

    def __init__(self, network_id: int, width: int = 0, first: int = FIRST_WIDTH) -> None:
        self._network_id = network_id
        self._begin = width
        self._first = first
        self._of: dict[str, Ranges] = {}
        self._lock = Lock()

    @property
    def width(self) -> int:
        """Return the smallest range, in blocks, that providers have accepted so far."""
        with self._lock:
            met = [ranges.width for ranges in self._of.values()]
        return min(met, default=self._begin or self._first)

    @property
    def are_known(self) -> bool:
        """Whether ``width`` is more than a guess."""
        with self._lock:
            return self._begin > 0 or any(ranges.has_answered for ranges in self._of.values())

    def of(self, provider: str) -> Ranges:
        with self._lock:
            if provider not in self._of:
                width = self._begin or self._first
                self._of[provider] = Ranges(width, *_learned(self._network_id, provider))
            return self._of[provider]

    def refused(self, provider: str, blocks: int, refusal: NodeFailure) -> bool:
        """Note one of ``REFUSALS_OF_LOGS``. Return whether fewer blocks may be answered: if not,
        it isn't the range that is refused."""
        ranges = self.of(provider)
        with self._lock:
            before = ranges.ceiling
            if isinstance(refusal, RangeTooLarge):
                allowed, is_structural = refusal.blocks, refusal.is_structural
                fewer = ranges.too_large(blocks, allowed, is_structural=is_structural)
            else:
                fewer = ranges.refused(blocks)
        if ranges.ceiling != before:
            _keep(self._network_id, provider, "ceiling", ranges.ceiling)
        return fewer

    @contextmanager
    def asking(self, provider: str, blocks: int) -> Iterator[Callable[[int], None]]:
        """Note how long an answer about so many blocks takes; the caller says how many logs came.
        One that takes too long to come at all asks for fewer the next time, and so does one that
        fails in any way but a limit of the rate."""
        began = monotonic()

        def answered(logs: int) -> None:
            ranges = self._of[provider]
            with self._lock:
                was_doubtful = ranges.is_doubtful
                ranges.succeeded(blocks, logs, monotonic() - began)
            if was_doubtful:
                _keep(self._network_id, provider, "limit", ranges.limit)

        try:
            yield answered
        except SlowDown:
            raise
        except TryAgain:
            ranges = self._of[provider]
            with self._lock:
                if monotonic() - began >= SLOW:
                    ranges.too_slow(blocks)
                else:
                    ranges.failed(blocks)
            raise


def read_logs(
    node: Node, limits: Limits, log_filter: LogFilter, first: int, last: int
) -> tuple[list[Log], int]:
    """The logs from ``first`` on, and the last block that they are of: ``last``, or one before it
    where the provider gives no more at once.

    Of an answer with far too many logs the first blocks are kept: the rest is read again, so memory
    is always bounded. A range that is refused is requested again at once with fewer blocks. Raises
    the refusal if not even a single block is answered: then it's the provider's fault.
    """
    while True:
        end = min(last, first + limits.of(node.provider).width - 1)
        blocks = end - first + 1
        try:
            with limits.asking(node.provider, blocks) as answered:
                logs = _within(node.logs(log_filter, first, end), first, end)
                weight = weight_of(logs)
                answered(weight)
        except REFUSALS_OF_LOGS as refusal:
            if limits.refused(node.provider, blocks, refusal):
                continue
            raise
        return (logs, end) if weight <= MOST else first_blocks(logs, end, MOST)


def weight_of(logs: Sequence[Log]) -> int:
    """How much these logs are, in logs of usual size: there are contracts that log books."""
    return max(len(logs), sum([len(log.data) for log in logs]) // _USUAL)


def first_blocks(logs: list[Log], end: int, most: int) -> tuple[list[Log], int]:
    """The logs of the first blocks, and the last of these blocks: those with up to ``most`` logs of
    usual size, or the first block that has any. ``end`` is the last block of all ``logs``."""
    weight, count = 0, 0
    for place, log in enumerate(logs):
        if place and log.block_number != logs[place - 1].block_number:
            count = place
        weight += max(1, len(log.data) // _USUAL)
        if count and weight > most:
            return logs[:count], logs[count - 1].height
    return logs, end


def _within(logs: list[Log], first: int, last: int) -> list[Log]:
    """The logs, if they are of these blocks, and those of one height of one block."""
    hashes: dict[str, str] = {}
    for log in logs:
        if hashes.setdefault(log.block_number, log.block_hash) != log.block_hash:
            raise Moved("logs of two blocks at one height")
    if logs and not first <= logs[0].height <= logs[-1].height <= last:
        raise Moved("a log of another block")
    return logs


def _learned(network_id: int, provider: str) -> tuple[int, int]:
    """The ceiling and the limit of a provider's ranges."""
    entered = Provider.objects.filter(network_id=network_id, name=provider)
    largest = entered.values_list("largest_range", flat=True).first() or WIDEST
    keys = [_key(network_id, provider, kind) for kind in ("ceiling", "limit")]
    kept: dict[str, Any] = {}
    with suppress(RedisError):  # otherwise it's learned again
        kept = cache.get_many(keys)
    ceiling, limit = (int(kept.get(key) or WIDEST) for key in keys)
    return min(largest, ceiling), limit


def _keep(network_id: int, provider: str, kind: Literal["ceiling", "limit"], blocks: int) -> None:
    with suppress(RedisError):
        cache.set(_key(network_id, provider, kind), blocks, _KEPT[kind])


def _key(network_id: int, provider: str, kind: str) -> str:
    return f"chain-range-{kind}:{network_id}:{quote(provider)}"

"""Reading the logs of ranges of blocks that are final, within the limits of each provider.

What has been learned of a provider's limit on blocks is kept for a day in the cache, for other
readers and processes; a limit that staff have entered with the provider holds in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from urllib.parse import quote

from django.core.cache import cache
from redis.exceptions import RedisError

from chain.core.failures import Moved, RangeTooLarge, SlowDown, TryAgain
from chain.core.node import Log, LogFilter, Node
from chain.core.ranges import FIRST_WIDTH, MOST, SLOW, WIDEST, Ranges
from chain.models import Provider

_KEPT = 86_400  # seconds
_USUAL = 2_000  # characters of a log's data


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
                self._of[provider] = Ranges(width, _ceiling(self._network_id, provider))
            return self._of[provider]

    def too_large(self, provider: str, blocks: int, refusal: RangeTooLarge) -> bool:
        """Note a refusal. Return whether a request for fewer blocks is possible."""
        ranges = self.of(provider)
        with self._lock:
            before = ranges.ceiling
            fewer = ranges.too_large(blocks, refusal.blocks, is_structural=refusal.is_structural)
        if ranges.ceiling < before:
            _keep(self._network_id, provider, ranges.ceiling)
        return fewer

    @contextmanager
    def asking(self, provider: str, blocks: int) -> Iterator[Callable[[int], None]]:
        """Note how long an answer about so many blocks takes; the caller says how many logs came.
        One that takes too long to come at all asks for fewer the next time."""
        began = monotonic()

        def answered(logs: int) -> None:
            with self._lock:
                self._of[provider].succeeded(blocks, logs, monotonic() - began)

        try:
            yield answered
        except SlowDown:
            raise
        except TryAgain:
            if monotonic() - began >= SLOW:
                with self._lock:
                    self._of[provider].too_slow(blocks)
            raise


def read_logs(
    node: Node, limits: Limits, log_filter: LogFilter, first: int, last: int
) -> tuple[list[Log], int]:
    """The logs from ``first`` on, and the last block that they are of: ``last``, or one before it
    where the provider gives no more at once.

    Of an answer with far too many logs the first blocks are kept: the rest is read again, so memory
    is always bounded. A range that is refused is requested again at once with fewer blocks;
    a single block with fewer contracts. Raises ``RangeTooLarge`` if not even that is answered.
    """
    while True:
        end = min(last, first + limits.of(node.provider).width - 1)
        blocks = end - first + 1
        try:
            with limits.asking(node.provider, blocks) as answered:
                logs = _within(node.logs(log_filter, first, end), first, end)
                weight = weight_of(logs)
                answered(weight)
        except RangeTooLarge as refusal:
            if limits.too_large(node.provider, blocks, refusal):
                continue
            return _by_contract(node, log_filter, first, refusal), first
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


def _by_contract(
    node: Node, log_filter: LogFilter, block: int, refusal: RangeTooLarge
) -> list[Log]:
    """The logs of one block, of fewer and fewer contracts."""
    addresses = log_filter.addresses
    if len(addresses) < 2:
        raise refusal
    logs: list[Log] = []
    for part in (addresses[: len(addresses) // 2], addresses[len(addresses) // 2 :]):
        fewer = LogFilter(part, log_filter.topics)
        try:
            logs += node.logs(fewer, block, block)
        except RangeTooLarge as again:
            logs += _by_contract(node, fewer, block, again)
    return _within(sorted(logs, key=lambda log: log.index), block, block)


def _within(logs: list[Log], first: int, last: int) -> list[Log]:
    """The logs, if they are of these blocks, and those of one height of one block."""
    hashes: dict[str, str] = {}
    for log in logs:
        if hashes.setdefault(log.block_number, log.block_hash) != log.block_hash:
            raise Moved("logs of two blocks at one height")
    if logs and not first <= logs[0].height <= logs[-1].height <= last:
        raise Moved("a log of another block")
    return logs


def _ceiling(network_id: int, provider: str) -> int:
    entered = Provider.objects.filter(network_id=network_id, name=provider)
    ceilings = [entered.values_list("largest_range", flat=True).first() or WIDEST]
    with suppress(RedisError, ValueError):  # otherwise it's learned again
        ceilings.append(int(cache.get(_key(network_id, provider)) or WIDEST))
    return min(ceilings)


def _keep(network_id: int, provider: str, ceiling: int) -> None:
    with suppress(RedisError):
        cache.set(_key(network_id, provider), ceiling, _KEPT)


def _key(network_id: int, provider: str) -> str:
    return f"chain-range:{network_id}:{quote(provider)}"

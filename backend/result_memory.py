"""Limit the memory that the objects read for requests take.

A query may match more than a process can hold, so what is read is counted while it arrives. Each
request has a ``ResultMemory``. It refuses results of more than ``MAX_RESPONSE_SIZE`` bytes, over
all queries, includes and batch items of the request. The memory that all requests of a process
take together, Python objects made of the results included, is limited by a ``Pool``.

Functions, triggers and jobs read objects which they may drop again, so there each query counts by
itself, and outside of the pool (``of_query``). The admin's pages do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Final, TypeVar

from django.conf import settings

from backend.conf import service_settings
from backend.current import current
from backend.errors import InvalidQuery, ServiceUnavailable

MEBIBYTE: Final = 1024 * 1024
LARGEST_OBJECT: Final = 16 * MEBIBYTE
"""Bytes of an object's fields as JSON, which the tables' constraint ``object_size`` enforces."""

_FREE: Final = MEBIBYTE
"""What each request may hold without asking the pool."""
_POOL_SHARE: Final = 4
_DEFAULT_POOL: Final = 512 * MEBIBYTE
# Estimates of what parts of JSON text take as Python objects, in bytes.
_CONTAINER: Final = 64
_STRING: Final = 50
_ITEM: Final = 16

_T = TypeVar("_T")


class ResultTooLarge(InvalidQuery):
    """The objects that a request asks for are larger than a response may be."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The results have more than {limit // MEBIBYTE} MiB: ask for fewer objects at a time."
        )


class TooManyLargeResults(ServiceUnavailable):
    """The process holds as many results for other requests as it may."""

    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("Too many large results are being read at once: try again in 1 second.")


class Pool:
    """The memory that the results of all requests of one process take. Thread-safe.

    One address may use half of it.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = Lock()
        self._used = 0
        self._by_address: dict[str, int] = {}

    def take(self, address: str, size: int) -> None:
        """Reserve ``size`` bytes for an address. Raises ``TooManyLargeResults``."""
        with self._lock:
            used = self._by_address.get(address, 0) + size
            if self._used + size > self.size or used > self.size // 2:
                raise TooManyLargeResults
            self._used += size
            self._by_address[address] = used

    def give_back(self, address: str, size: int) -> None:
        """Release bytes that the address has reserved."""
        with self._lock:
            self._used -= size
            left = self._by_address.pop(address) - size
            if left:
                self._by_address[address] = left


class ResultMemory:
    """What one request, or one query, has read so far."""

    __slots__ = ("_address", "_limit", "_pool", "_reserved", "memory", "size")

    def __init__(self, limit: int, pool: Pool | None = None, address: str = "") -> None:
        self._limit = limit
        self._pool = pool
        self._address = address
        self._reserved = 0
        self.size = 0
        """Characters of the results as JSON text."""
        self.memory = 0
        """Bytes of memory, by estimate."""

    def add(self, size: int) -> None:
        """Count results of ``size`` characters.

        Raises ``ResultTooLarge`` and ``TooManyLargeResults``.
        """
        self.size += size
        if self.size > self._limit:
            raise ResultTooLarge(self._limit)
        self._hold(size)

    def add_objects(self, text: str) -> None:
        """Count the Python objects that this JSON text is about to be decoded to.

        Raises what ``add`` raises. As long as the results are small nothing is counted.
        """
        if self.size > _FREE:
            containers = text.count("{") + text.count("[")
            strings = text.count('"') // 2
            self._hold(containers * _CONTAINER + strings * _STRING + text.count(",") * _ITEM)

    def _hold(self, size: int) -> None:
        self.memory += size
        excess = self.memory - self._reserved - _FREE
        if excess <= 0:
            return
        if self.memory > _pool_size() // 2:
            raise ResultTooLarge(self._limit)
        if self._pool is not None:
            self._pool.take(self._address, excess)
            self._reserved += excess

    def release(self) -> None:
        """Give back what the pool has reserved."""
        if self._pool is not None and self._reserved:
            self._pool.give_back(self._address, self._reserved)
            self._reserved = 0


def _pool_size() -> int:
    return settings.MEMORY_LIMIT * MEBIBYTE // _POOL_SHARE or _DEFAULT_POOL


@lru_cache(maxsize=1)
def _pool() -> Pool:
    return Pool(_pool_size())


def of_request(address: str) -> ResultMemory:
    """A new ``ResultMemory`` for a request from this address; ``release`` it at the end."""
    return ResultMemory(service_settings.MAX_RESPONSE_SIZE, _pool(), address)


def of_query() -> ResultMemory:
    """The ``ResultMemory`` that a query counts in: the request's, or one of its own."""
    now = current()
    if now.results is not None and now.depth == 0:
        return now.results
    return ResultMemory(service_settings.MAX_RESPONSE_SIZE)


def largest_fitting(read: Callable[[int], _T], limit: int) -> tuple[_T, int]:
    """Call ``read`` with a limit; while its results are too large, with half of the limit.

    Returns the result and the limit that it was read with. Raises ``ResultTooLarge`` if one object
    at a time is too much.
    """
    while True:
        try:
            return read(limit), limit
        except ResultTooLarge:
            if limit <= 1:
                raise
            limit //= 2

"""The memory that requests reserve in one process, and the estimates by which it is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getsizeof
from threading import Lock
from typing import Final

from django.conf import settings

from backend.kernel.errors import InvalidQuery, ServiceUnavailable

MEBIBYTE: Final = 1024 * 1024
LARGEST_OBJECT: Final = 16 * MEBIBYTE
"""Bytes of an object's fields as JSON, which the tables' constraint ``object_size`` enforces."""

_FREE: Final = 3 * MEBIBYTE
"""Bytes that each request may hold outside the pool: results of 1 MiB, and their copies."""
_POOL_DIVISOR: Final = 4
"""The pool has a quarter of ``MEMORY_LIMIT``."""
_DEFAULT_POOL: Final = 512 * MEBIBYTE
"""Bytes of the pool without a ``MEMORY_LIMIT``."""
# Estimates of what parts of JSON text take as Python objects, in bytes.
_COPIES: Final = 2  # of the text: the encoded objects, and the response that they are joined to
_CONTAINER: Final = 64
_STRING: Final = 50
_ITEM: Final = 16


class ResultTooLarge(InvalidQuery):
    """The results of a request, or their objects in memory, are larger than allowed."""

    def __init__(self, limit: int, place: str = "") -> None:
        super().__init__(
            f"The results have more than {limit // MEBIBYTE} MiB{place}:"
            " ask for fewer objects at a time."
        )


class TooManyLargeResults(ServiceUnavailable):
    """The pool has no room until other requests end."""

    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("Too many large results are being read at once: try again in 1 second.")


class Pool:
    """The memory that the results of all requests of one process take. Thread-safe.

    One address (``client_network``) may use half of it.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = Lock()
        self._used = 0
        self._by_address: dict[str, int] = {}

    def reserve(self, address: str, size: int) -> None:
        """Reserve ``size`` bytes for an address. Raises ``TooManyLargeResults``."""
        with self._lock:
            used = self._by_address.get(address, 0) + size
            if self._used + size > self.size or used > _share(self.size):
                raise TooManyLargeResults
            self._used += size
            self._by_address[address] = used

    def release(self, address: str, size: int) -> None:
        """Release bytes that the address has reserved."""
        with self._lock:
            self._used -= size
            left = self._by_address.pop(address) - size
            if left:
                self._by_address[address] = left


class ResultMemory:
    """What one request, or one query, has read so far. Not thread-safe."""

    __slots__ = ("_address", "_limit", "_pool", "_reserved", "memory", "size")

    def __init__(self, limit: int, pool: Pool | None = None, address: str = "") -> None:
        self._limit = limit
        self._pool = pool
        self._address = address
        self._reserved = 0
        self.size = 0
        """Characters of the results as JSON text."""
        self.memory = 0
        """Estimated bytes of the text and of the Python objects that it is decoded to."""

    def add(self, size: int) -> None:
        """Count results of ``size`` characters, such as copies of objects that were counted.

        Raises ``ResultTooLarge`` and ``TooManyLargeResults``.
        """
        self._add(size, size)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Count texts that were read. Python's texts take 1 to 4 bytes a character.

        Raises what ``add`` raises.
        """
        self._add(sum(map(len, texts)), sum(map(getsizeof, texts)))

    def _add(self, size: int, memory: int) -> None:
        self.size += size
        if self.size > self._limit:
            raise ResultTooLarge(self._limit)
        self._hold(memory + _COPIES * size)

    def add_objects(self, texts: Iterable[str]) -> None:
        """Count the Python objects that these JSON texts are about to be decoded to.

        Nothing is counted while the results take at most ``_FREE`` bytes. Raises what ``add``
        raises.
        """
        if self.memory <= _FREE:
            return
        for text in texts:
            containers = text.count("{") + text.count("[")
            strings = text.count('"') // 2
            self._hold(containers * _CONTAINER + strings * _STRING + text.count(",") * _ITEM)

    def _hold(self, size: int) -> None:
        self.memory += size
        excess = self.memory - self._reserved - _FREE
        if excess <= 0:
            return
        share = _share(pool_size())
        if self.memory > share:  # the pool would never have room
            raise ResultTooLarge(share, " in memory")
        if self._pool is not None:
            self._pool.reserve(self._address, excess)
            self._reserved += excess

    def return_to(self, size: int, memory: int) -> None:
        """Undo counting since ``size`` and ``memory`` had these values."""
        self.size, self.memory = size, memory
        excess = self._reserved - max(0, memory - _FREE)
        if self._pool is not None and excess > 0:
            self._pool.release(self._address, excess)
            self._reserved -= excess

    def release(self) -> None:
        """Release what is reserved in the pool. Repeated calls have no effect."""
        if self._pool is not None and self._reserved:
            self._pool.release(self._address, self._reserved)
            self._reserved = 0


def pool_size() -> int:
    size: int = settings.MEMORY_LIMIT * MEBIBYTE // _POOL_DIVISOR
    return size or _DEFAULT_POOL


def _share(pool_size: int) -> int:
    """Return the bytes that one address, and so one request, may hold."""
    return pool_size // 2

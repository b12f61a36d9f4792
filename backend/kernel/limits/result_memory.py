"""Limit the memory that the objects read for requests take.

A query may match more than a process can hold, so rows are counted while they arrive. Each request
has a ``ResultMemory``. It refuses results of more than ``MAX_RESPONSE_SIZE`` characters, over all
queries, includes and batch items of the request. A ``Pool`` limits the memory that all requests of
a process take together, including the Python objects that results are decoded to.

Functions, triggers and jobs may free objects before they read others, so each of their queries is
counted separately and outside the pool (``of_query``). The same holds for the admin's pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeVar

from backend.kernel.memory_pool import Pool, ResultMemory, ResultTooLarge, pool_size
from backend.kernel.request_context import current
from backend.settings.conf import service_settings

_T = TypeVar("_T")


@lru_cache(maxsize=1)
def _pool() -> Pool:
    return Pool(pool_size())


def of_request(address: str) -> ResultMemory:
    """Return the memory of a new request from this address. ``release`` it at the end."""
    return ResultMemory(service_settings.MAX_RESPONSE_SIZE, _pool(), address)


def of_query() -> ResultMemory:
    """Return the memory that counts a query: the request's, or a new one for the query alone."""
    now = current()
    if now.results is not None and now.depth == 0:
        return now.results
    return ResultMemory(service_settings.MAX_RESPONSE_SIZE)


def checkpoint() -> Callable[[], None]:
    """Return a function that undoes what this request counts from now on.

    For attempts that are repeated: what they have read is discarded.
    """
    results = current().results
    if results is None:
        return _nothing
    return partial(results.return_to, results.size, results.memory)


def _nothing() -> None:
    return None


def largest_fitting(read: Callable[[int], _T], limit: int) -> tuple[_T, int]:
    """Call ``read`` with a limit, and again with half of it while the results are too large.

    Returns the result and the limit that it was read with. Raises ``ResultTooLarge`` if even a
    single object is too large.
    """
    while True:
        try:
            return read(limit), limit
        except ResultTooLarge:
            if limit <= 1:
                raise
            limit //= 2

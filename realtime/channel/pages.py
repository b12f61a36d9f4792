"""Pages of the outbox, for connections that catch up.

After a restart many clients reconnect at once, and most request the same rows. So pages start at
fixed numbers, concurrent requests for a page share one query, and pages are cached. Reading them
never delays live events.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from django.db import DatabaseError, InterfaceError

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from chain.indexing.storage import outbox_reader
from realtime.core.events import Event, PriorRows
from realtime.sockets.threads import Threads

ROWS: Final = 200
MOST_PAGES: Final = 64
MOST_BYTES: Final = 32 * 1024 * 1024
_THREADS: Final = 2

UNREADABLE = (ServiceError, DatabaseError, InterfaceError)
"""Raised by readers while the database can't be reached."""

log = get_logger("events")

_Key = tuple[int, int]


def event_of(row: outbox_reader.Told, *, counts: bool = True) -> Event:
    prior = PriorRows(row.again_of, row.announced, row.gone)
    try:
        return Event(row.network_id, row.seq, row.op, row.payload, prior, counts=counts)
    except msgspec.MsgspecError as error:
        # One unreadable row must not end the channel.
        log.error("a row of the outbox isn't an event", seq=row.seq, reason=str(error))
        return Event(row.network_id, row.seq, row.op, "{}", prior)


def read_rows(positions: dict[int, int], limit: int) -> list[Event]:
    """Return the rows after these numbers. Blocking; call it in a thread."""
    return [event_of(row) for row in outbox_reader.rows_after(positions, limit)]


def read_settled(
    positions: dict[int, int], limit: int, level: outbox_reader.Level
) -> tuple[list[Event], dict[int, int]]:
    """Return rows with a settled finality, and the block that the next row of a network awaits."""
    rows, waiting = outbox_reader.settled_after(positions, limit, level)
    return [event_of(row, counts=counts) for row, counts in rows], waiting


class Pages:
    """A cache of the pages of one epoch, read by ``read``."""

    def __init__(self, read: Callable[[dict[int, int], int], list[Event]] = read_rows) -> None:
        self._read = read
        self._threads = Threads("events-pages", _THREADS)
        self._cache: OrderedDict[_Key, list[Event]] = OrderedDict()
        self._bytes = 0
        self._pending: dict[_Key, asyncio.Task[list[Event]]] = {}
        self.read = 0  # pages, from the database

    async def after(self, network_id: int, seq: int) -> list[Event]:
        """Return some of the events after this row, in order, or none if there are none yet.

        If rows were removed, the first event's number isn't ``seq + 1``. Raises ``UNREADABLE``.
        """
        key = (network_id, seq // ROWS)
        page = self._cache.get(key)
        if page and page[-1].seq > seq:
            self._cache.move_to_end(key)
        else:
            page = await self._read_once(key)
        return [event for event in page if event.seq > seq]

    def clear(self) -> None:
        """Empty the cache, since row numbers have a new meaning."""
        self._cache.clear()
        self._pending.clear()
        self._bytes = 0

    async def close(self) -> None:
        await self._threads.close()

    async def _read_once(self, key: _Key) -> list[Event]:
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(self._read_page(key))
        # One caller's cancellation must not cancel the query for the others.
        return await asyncio.shield(task)

    async def _read_page(self, key: _Key) -> list[Event]:
        network_id, number = key
        read: Callable[[], list[Event]] = partial(
            self._read, {network_id: number * ROWS - 1}, ROWS + 1
        )
        try:
            page = await self._threads.run(read)
        finally:
            is_current = self._pending.get(key) is asyncio.current_task()
            if is_current:
                del self._pending[key]
        self.read += 1
        if is_current:
            self._store(key, page)
        return page

    def _store(self, key: _Key, page: list[Event]) -> None:
        self._bytes -= _size(self._cache.pop(key, []))
        self._cache[key] = page
        self._bytes += _size(page)
        while len(self._cache) > MOST_PAGES or (self._bytes > MOST_BYTES and len(self._cache) > 1):
            _, dropped = self._cache.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(page: list[Event]) -> int:
    return sum(event.size for event in page)

"""Pages of the outbox, for connections that catch up.

After a restart a thousand clients come back at once, and most want the same rows: pages begin at
fixed numbers, are read once for all who wait for them, and are kept for a while. What connections
read here never delays live events.
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
from chain.indexing.storage import outbox
from realtime.core.events import Before, Event
from realtime.sockets.threads import Threads

ROWS: Final = 200
MOST_PAGES: Final = 64
MOST_BYTES: Final = 32 * 1024 * 1024
_THREADS: Final = 2

UNREADABLE = (ServiceError, DatabaseError, InterfaceError)
"""Raised by a reading while the database can't be reached."""

log = get_logger("events")

_Key = tuple[int, int]


def event_of(row: outbox.Told, *, counts: bool = True) -> Event:
    before = Before(row.again_of, row.announced, row.gone)
    try:
        return Event(row.network_id, row.seq, row.op, row.payload, before, counts=counts)
    except msgspec.MsgspecError as error:
        # One unreadable row must not end the channel.
        log.error("a row of the outbox isn't an event", seq=row.seq, reason=str(error))
        return Event(row.network_id, row.seq, row.op, "{}", before)


def read_rows(positions: dict[int, int], limit: int) -> list[Event]:
    """The rows after these numbers; a plain function, for a thread."""
    return [event_of(row) for row in outbox.rows_after(positions, limit)]


def read_settled(
    positions: dict[int, int], limit: int, level: outbox.Level
) -> tuple[list[Event], dict[int, int]]:
    """The same of rows whose finality is decided, and the blocks that the next ones wait for."""
    rows, waiting = outbox.settled_after(positions, limit, level)
    return [event_of(row, counts=counts) for row, counts in rows], waiting


class Pages:
    """The pages of one epoch that were read lately, by ``read``."""

    def __init__(self, read: Callable[[dict[int, int], int], list[Event]] = read_rows) -> None:
        self._read = read
        self._threads = Threads("events-pages", _THREADS)
        self._kept: OrderedDict[_Key, list[Event]] = OrderedDict()
        self._bytes = 0
        self._asked: dict[_Key, asyncio.Task[list[Event]]] = {}
        self.read = 0  # pages, from the database

    async def after(self, network_id: int, seq: int) -> list[Event]:
        """Some of the events after this row, in order; none if there is none at the moment.

        Older ones than the first may have been removed: its number says so. Raises ``UNREADABLE``.
        """
        key = (network_id, seq // ROWS)
        page = self._kept.get(key)
        if page and page[-1].seq > seq:
            self._kept.move_to_end(key)
        else:
            page = await self._asked_once(key)
        return [event for event in page if event.seq > seq]

    def forget(self) -> None:
        """Drop what is kept: numbers mean other rows now."""
        self._kept.clear()
        self._asked.clear()
        self._bytes = 0

    async def close(self) -> None:
        await self._threads.close()

    async def _asked_once(self, key: _Key) -> list[Event]:
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._ask(key))
        # Who waits may go away; the others wait on.
        return await asyncio.shield(task)

    async def _ask(self, key: _Key) -> list[Event]:
        network_id, number = key
        ask: Callable[[], list[Event]] = partial(
            self._read, {network_id: number * ROWS - 1}, ROWS + 1
        )
        try:
            page = await self._threads.do(ask)
        finally:
            mine = self._asked.get(key) is asyncio.current_task()
            if mine:
                del self._asked[key]
        self.read += 1
        if mine:
            self._keep(key, page)
        return page

    def _keep(self, key: _Key, page: list[Event]) -> None:
        self._bytes -= _size(self._kept.pop(key, []))
        self._kept[key] = page
        self._bytes += _size(page)
        while len(self._kept) > MOST_PAGES or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(page: list[Event]) -> int:
    return sum(event.size for event in page)

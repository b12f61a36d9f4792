"""The socket of the event channel: ``/ws``."""

from __future__ import annotations

import asyncio
from typing import Final

from backend.kernel.errors import InvalidQuery, ServiceUnavailable
from backend.logs.setup import get_logger
from realtime.channel.catch_up import catch_up
from realtime.channel.feeds import Feed
from realtime.channel.pump import Pump
from realtime.core.cursors import Cursor, Marks, encode
from realtime.core.event_channel import tail_of
from realtime.core.event_queries import BEGINNING, NOW, BadQuery, Wish, parse
from realtime.core.events import control
from realtime.process.admission import QUERY_KEYS, Refusal
from realtime.process.process import Process
from realtime.sockets.connections import FAULT, TRY_AGAIN, Socket

BEGIN_WITHIN: Final = 10.0
"""Seconds until a connection is closed that nothing can be sent to."""

SLOW: Final = 10.0
"""Seconds that a client may read nothing of what is queued for it."""
_LOOK_AGAIN: Final = 0.05

log = get_logger("events")


class EventSocket(Socket):
    """One client of the event channel. Its address says which events it wants, and
    nothing afterwards."""

    kind = "events"

    wish = Wish()
    starts: Marks = {}
    tail = ""

    _feed: Feed
    _catching_up: asyncio.Task[None] | None = None

    async def admitted(self) -> None:
        try:
            self.wish = parse(self.query, ignored=QUERY_KEYS)
        except BadQuery as error:
            raise Refusal(400, InvalidQuery.code, str(error)) from None
        pump = Process.current().part(Pump)
        try:
            async with asyncio.timeout(BEGIN_WITHIN):
                self._feed = await pump.feed(self.wish.finality)
        except TimeoutError:
            raise Refusal(503, ServiceUnavailable.code, "Events can't be read now.") from None

    async def opened(self) -> None:
        # Everything committed from now on is sent: nothing is waited for until it has joined.
        self._begin()

    async def drained(self) -> None:
        async with asyncio.timeout(SLOW):
            await super().drained()
            # A transport may call more than half of a small queue little.
            while self.is_behind:
                await asyncio.sleep(_LOOK_AGAIN)

    async def gone(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._feed.channel.leave(self)

    def fell_behind(self, positions: Marks) -> None:
        """Too many events at once: what follows is sent as the client reads."""
        self._catch_up(Cursor(self._feed.channel.epoch, positions, self.starts))

    # -- Beginning --------------------------------------------------------------------------------

    def _begin(self) -> None:
        since = self.wish.since
        if since is None or since == NOW:
            cursor = self._feed.begin(self)
            if since is not None:
                self._hello(cursor)
            return
        begin = self._beginning() if since == BEGINNING else since
        assert isinstance(begin, Cursor)
        self.starts = begin.starts
        self.tail = tail_of(self.wish, begin.starts)
        position = begin if begin.epoch == self._feed.channel.epoch else self._feed.now()
        self._hello(encode(position, self.wish.filter.networks))
        self._catch_up(begin)

    def _beginning(self) -> Cursor:
        """Before everything that is kept."""
        marks = {network: reach.oldest - 1 for network, reach in self._feed.networks.items()}
        return Cursor(self._feed.channel.epoch, marks, marks)

    def _hello(self, cursor: str) -> None:
        networks = self.wish.filter.networks
        reach = {
            network: rows
            for network, rows in self._feed.reach().items()
            if networks is None or int(network) in networks
        }
        self.enqueue(control("hello", {"networks": reach}, cursor))

    def _catch_up(self, cursor: Cursor) -> None:
        self._catching_up = asyncio.create_task(self._told_what_was_missed(cursor))

    async def _told_what_was_missed(self, cursor: Cursor) -> None:
        try:
            await catch_up(self._feed, self, cursor)
        except TimeoutError:
            self.close_with(TRY_AGAIN, "Too slow.")
        except Exception as error:
            log.error("catching up failed", exc_info=error)
            self.close_with(FAULT)

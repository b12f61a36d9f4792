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
from realtime.core.event_queries import BEGINNING, NOW, BadQuery, EventSubscription, parse
from realtime.core.events import control
from realtime.process.admission import QUERY_KEYS, Refusal
from realtime.process.process import Process
from realtime.sockets.connections import INTERNAL_ERROR, TRY_AGAIN, Socket

START_TIMEOUT: Final = 10.0
"""Seconds until a handshake is rejected because the events can't be read."""

READ_TIMEOUT: Final = 10.0
"""Seconds that a client may take to read its queue while catching up."""
_DRAIN_POLL: Final = 0.05

log = get_logger("events")


class EventSocket(Socket):
    """One client of the event channel. The query string of the handshake is its only request."""

    kind = "events"

    subscription = EventSubscription()
    starts: Marks = {}
    tail = ""

    _feed: Feed
    _catching_up: asyncio.Task[None] | None = None

    async def before_accept(self) -> None:
        try:
            self.subscription = parse(self.query, ignored=QUERY_KEYS)
        except BadQuery as error:
            raise Refusal(400, InvalidQuery.code, str(error)) from None
        pump = Process.current().part(Pump)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                self._feed = await pump.feed(self.subscription.finality)
        except TimeoutError:
            raise Refusal(503, ServiceUnavailable.code, "Events can't be read now.") from None

    async def opened(self) -> None:
        # No await before joining, so that every event committed from now on is sent.
        self._start()

    async def drain(self) -> None:
        async with asyncio.timeout(READ_TIMEOUT):
            await super().drain()
            # asyncio reports the buffer as drained only below its low-water mark, which can be
            # more than half of a small queue.
            while self.is_behind:
                await asyncio.sleep(_DRAIN_POLL)

    async def closed(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._feed.channel.leave(self)

    def fell_behind(self, positions: Marks) -> None:
        """Send later events at the rate at which the client reads."""
        self._catch_up(Cursor(self._feed.channel.epoch, positions, self.starts))

    # -- Start ------------------------------------------------------------------------------------

    def _start(self) -> None:
        since = self.subscription.since
        if since is None or since == NOW:
            cursor = self._feed.join(self)
            if since is not None:
                self._hello(cursor)
            return
        begin = self._beginning() if since == BEGINNING else since
        assert isinstance(begin, Cursor)
        self.starts = begin.starts
        self.tail = tail_of(self.subscription, begin.starts)
        position = begin if begin.epoch == self._feed.channel.epoch else self._feed.now()
        self._hello(encode(position, self.subscription.filter.networks))
        self._catch_up(begin)

    def _beginning(self) -> Cursor:
        """Return the position before the oldest stored row of each network."""
        marks = {network: reach.oldest - 1 for network, reach in self._feed.networks.items()}
        return Cursor(self._feed.channel.epoch, marks, marks)

    def _hello(self, cursor: str) -> None:
        networks = self.subscription.filter.networks
        reach = {
            network: rows
            for network, rows in self._feed.reach().items()
            if networks is None or int(network) in networks
        }
        self.enqueue(control("hello", {"networks": reach}, cursor))

    def _catch_up(self, cursor: Cursor) -> None:
        self._catching_up = asyncio.create_task(self._run_catch_up(cursor))

    async def _run_catch_up(self, cursor: Cursor) -> None:
        try:
            await catch_up(self._feed, self, cursor)
        except TimeoutError:
            self.close_with(TRY_AGAIN, "Too slow.")
        except Exception as error:
            log.error("catching up failed", exc_info=error)
            self.close_with(INTERNAL_ERROR)

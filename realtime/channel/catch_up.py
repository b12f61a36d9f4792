"""Send a connection the events it has missed, until it joins the live channel.

Recent events are in the channel's memory; older ones are read in pages. There is no ``await``
between the last comparison of positions and joining, so no event is sent twice or skipped.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from realtime.channel.feeds import Feed
from realtime.channel.pages import UNREADABLE
from realtime.core.cursors import Cursor, Marks
from realtime.core.event_channel import Member, message
from realtime.core.events import Event

AT_ONCE: Final = 200
"""Events sent before yielding to other connections."""
RETRY: Final = 1.0
"""Seconds between attempts to read a page."""

EXPIRED: Final = "expired"
EPOCH: Final = "epoch"
AHEAD: Final = "ahead"


class CatchUpMember(Member, Protocol):
    """A member with flow control."""

    async def drain(self) -> None:
        """Wait until the send queue is nearly empty. Raises ``TimeoutError``."""


async def catch_up(feed: Feed, member: CatchUpMember, cursor: Cursor) -> None:
    """Send a connection every event after its cursor, then join it to the channel.

    Sends a ``reset`` if the cursor can't be resumed: its rows were removed or never existed.
    Raises ``TimeoutError`` if the client doesn't read.
    """
    feed.catching_up += 1
    try:
        await _CatchUp(feed, member, cursor).run()
    finally:
        feed.catching_up -= 1


class _CannotResume(Exception):
    """The cursor can't be resumed; the text is the reason sent to the client."""


class _CatchUp:
    def __init__(self, feed: Feed, member: CatchUpMember, cursor: Cursor) -> None:
        self._feed = feed
        self._channel = feed.channel
        self._member = member
        self._networks = member.subscription.filter.networks
        self._epoch = cursor.epoch
        self._positions: dict[int, int] = dict(cursor.positions)

    async def run(self) -> None:
        try:
            await self._check()
            if self._member.is_behind:
                await self._member.drain()
                self._check_epoch()
            while not self._channel.is_current(self._positions, self._networks):
                await self._send_batch()
                self._check_epoch()
        except _CannotResume as error:
            self._feed.reset(self._member, str(error))
        else:
            self._channel.join(self._member)

    async def _check(self) -> None:
        self._check_epoch()
        if self._is_ahead(self._channel.marks):
            # Another process has published rows that this one hasn't read yet.
            await self._feed.poll()
            self._check_epoch()
            if self._is_ahead(self._channel.marks):
                raise _CannotResume(AHEAD)

    def _check_epoch(self) -> None:
        if self._epoch != self._channel.epoch:
            raise _CannotResume(EPOCH)

    def _is_ahead(self, marks: Marks) -> bool:
        return any(
            seq > marks.get(network, 0)
            for network, seq in self._positions.items()
            if self._networks is None or network in self._networks
        )

    async def _send_batch(self) -> None:
        """Send some events of one network, and wait until the client has read them."""
        for network, newest in self._channel.marks.items():
            seq = self._positions.get(network, 0)
            if seq < newest and (self._networks is None or network in self._networks):
                break
        else:
            raise _CannotResume(AHEAD)
        events = self._channel.since(network, seq)
        if events is None:
            events = await self._page(network, seq)
            self._check_epoch()  # row numbers are only valid within an epoch
            if not events or events[0].seq != seq + 1:
                raise _CannotResume(EXPIRED)
        for event in events[:AT_ONCE]:
            if event.seq > self._channel.marks[network] or self._member.is_behind:
                break
            self._positions[network] = event.seq
            self._send(event)
        await asyncio.sleep(0)  # yield to other connections
        if self._member.is_behind:
            await self._member.drain()

    def _send(self, event: Event) -> None:
        frame = message(event, self._member, self._channel.epoch, self._positions)
        if frame is not None:
            self._member.enqueue(frame)

    async def _page(self, network: int, seq: int) -> list[Event]:
        while True:
            try:
                return await self._feed.pages.after(network, seq)
            except UNREADABLE:
                await asyncio.sleep(RETRY)

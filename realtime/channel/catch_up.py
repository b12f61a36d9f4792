"""Send a connection what it has missed, until it joins the live channel.

What was told a moment ago is in the channel's memory; what is older is read in pages. The last step
to being told has no ``await`` between the comparison and joining, so nothing is sent twice and
nothing is left out.
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
"""Events until other connections have their turn."""
RETRY: Final = 1.0
"""Seconds until a page is read again that couldn't be."""

EXPIRED: Final = "expired"
EPOCH: Final = "epoch"
AHEAD: Final = "ahead"


class Reading(Member, Protocol):
    """A member that can say when it has read what it was sent."""

    async def drained(self) -> None:
        """Returns when little waits for the client. ``TimeoutError`` if it doesn't read."""


async def catch_up(feed: Feed, member: Reading, cursor: Cursor) -> None:
    """Tell a connection what there is after its cursor, then have it join the channel.

    Where that is impossible, since rows are gone or were never there, it gets a ``reset``.
    Raises ``TimeoutError`` if the client doesn't read.
    """
    feed.catching_up += 1
    try:
        await _CatchUp(feed, member, cursor).run()
    finally:
        feed.catching_up -= 1


class _Impossible(Exception):
    """With the reason that the client gets."""


class _CatchUp:
    def __init__(self, feed: Feed, member: Reading, cursor: Cursor) -> None:
        self._feed = feed
        self._channel = feed.channel
        self._member = member
        self._networks = member.wish.filter.networks
        self._epoch = cursor.epoch
        self._positions: dict[int, int] = dict(cursor.positions)

    async def run(self) -> None:
        try:
            await self._check()
            if self._member.is_behind:
                await self._member.drained()
                self._same_epoch()
            while not self._channel.is_told(self._positions, self._networks):
                await self._tell_some()
                self._same_epoch()
        except _Impossible as impossible:
            self._feed.reset(self._member, str(impossible))
        else:
            self._channel.join(self._member)

    async def _check(self) -> None:
        self._same_epoch()
        if self._is_ahead(self._channel.marks):
            # Another process has told more than this one has read.
            await self._feed.look()
            self._same_epoch()
            if self._is_ahead(self._channel.marks):
                raise _Impossible(AHEAD)

    def _same_epoch(self) -> None:
        if self._epoch != self._channel.epoch:
            raise _Impossible(EPOCH)

    def _is_ahead(self, marks: Marks) -> bool:
        return any(
            seq > marks.get(network, 0)
            for network, seq in self._positions.items()
            if self._networks is None or network in self._networks
        )

    async def _tell_some(self) -> None:
        """Tell some events of one network, and wait until the client has read them."""
        for network, newest in self._channel.marks.items():
            seq = self._positions.get(network, 0)
            if seq < newest and (self._networks is None or network in self._networks):
                break
        else:
            raise _Impossible(AHEAD)
        events = self._channel.since(network, seq)
        if events is None:
            events = await self._page(network, seq)
            self._same_epoch()  # else its numbers mean nothing
            if not events or events[0].seq != seq + 1:
                raise _Impossible(EXPIRED)
        for event in events[:AT_ONCE]:
            if event.seq > self._channel.marks[network] or self._member.is_behind:
                break
            self._positions[network] = event.seq
            self._tell(event)
        await asyncio.sleep(0)  # others have their turn
        if self._member.is_behind:
            await self._member.drained()

    def _tell(self, event: Event) -> None:
        frame = message(event, self._member, self._channel.epoch, self._positions)
        if frame is not None:
            self._member.enqueue(frame)

    async def _page(self, network: int, seq: int) -> list[Event]:
        while True:
            try:
                return await self._feed.pages.after(network, seq)
            except UNREADABLE:
                await asyncio.sleep(RETRY)

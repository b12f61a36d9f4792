"""The pump: reads new rows of the outbox and publishes them to the connections.

A process has one. Notifications wake it, and it also polls every second, since a notification may
be lost. It publishes rows in the order of their numbers, each once, also after failures: its
position is in memory and only advances with published rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backend.logs.setup import get_logger
from chain.indexing.storage import outbox_reader
from chain.indexing.storage.outbox_reader import Level
from realtime.channel.feeds import LATER, ROWS, Feed, Gates
from realtime.channel.pages import UNREADABLE, read_rows, read_settled
from realtime.core.event_channel import Channel
from realtime.core.event_queries import LATEST, Finality
from realtime.core.events import REMOVED, Event
from realtime.sockets.threads import Threads

if TYPE_CHECKING:
    from realtime.process.process import Process

POLL: Final = 1.0  # seconds
_MESSAGES_BETWEEN: Final = 100_000  # before yielding to the event loop

log = get_logger("events")


class _Start(NamedTuple):
    """The query for a feed's starting position, and the epoch of the outbox before it."""

    epoch: str
    marks: asyncio.Task[dict[int, int]]


class Pump:
    """The ``Part`` of the process that reads and publishes events."""

    name = "events"

    def __init__(self, process: Process) -> None:
        self._feeds: dict[Finality, Feed] = {
            finality: Feed(finality, self.poll) for finality in (LATEST, *LATER)
        }
        self._gates = {finality: Gates(finality) for finality in LATER}
        self._removed: dict[int, int] = {}  # the last row of each network that was a removal
        self._active: set[Finality] = {LATEST}
        self._process = process
        self._wake = asyncio.Event()
        self._started = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._thread = Threads("events-pump", 1)
        self._starts: dict[Finality, _Start] = {}
        self._starting = Threads("events-start", 1)
        self._polled_at: float | None = None
        self._last_event: dict[str, Any] | None = None
        self._is_unreadable = False

    @property
    def channel(self) -> Channel:
        """The channel of the latest events."""
        return self._feeds[LATEST].channel

    # -- For connections --------------------------------------------------------------------------

    async def started(self) -> None:
        """Wait until the first read of the outbox is done."""
        await self._started.wait()

    async def feed(self, finality: Finality) -> Feed:
        """Return the feed of this finality once it has started.

        The safe and final feeds start when a connection first requests them.
        """
        await self.started()
        feed = self._feeds[finality]
        self._active.add(finality)
        while not feed.is_started:
            await self.poll()
            start = self._starts.get(finality)
            if start is not None:
                await asyncio.wait([start.marks])
        return feed

    async def poll(self) -> None:
        """Read and publish everything committed before the call."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        self._wake.set()
        await future

    # -- For the process --------------------------------------------------------------------------

    async def run(self) -> None:
        """Read and publish until cancelled."""
        unsubscribe = self._process.listener.subscribe(outbox_reader.CHANNEL, self._on_notification)
        try:
            while True:
                await self._poll()
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL):
                        await self._wake.wait()
        finally:
            unsubscribe()
            for start in self._starts.values():
                start.marks.cancel()
            await self._thread.close()
            await self._starting.close()
            for feed in self._feeds.values():
                await feed.pages.close()

    def status(self) -> dict[str, Any]:
        feeds = self._feeds.values()
        latest = self._feeds[LATEST]
        marks = latest.channel.marks
        return {
            "epoch": latest.channel.epoch,
            "networks": {
                str(network): {
                    "newest": newest,
                    "told": marks.get(network, 0),
                    "lag": max(0, newest - marks.get(network, 0)),
                }
                for network, (_, newest) in latest.networks.items()
            },
            "messages": sum(feed.channel.sent for feed in feeds),
            "catching_up": sum(feed.catching_up for feed in feeds),
            "pages_read": sum(feed.pages.read for feed in feeds),
            "seconds_since_look": (
                None if self._polled_at is None else round(monotonic() - self._polled_at, 3)
            ),
            "readable": not self._is_unreadable,
            "last": self._last_event,
        }

    def _on_notification(self, payload: str | None) -> None:
        self._wake.set()

    # -- Reading ----------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Publish new rows. Does nothing while the database can't be read."""
        self._wake.clear()
        waiting, self._waiters = self._waiters, []
        try:
            state = await self._thread.run(outbox_reader.state)
            await self._publish_new(state)
            for finality in LATER:
                if finality in self._active:
                    await self._publish_settled(finality, state)
        except UNREADABLE as error:
            self._waiters += waiting
            if not self._is_unreadable:
                log.warning("the outbox can't be read", reason=type(error).__name__)
            self._is_unreadable = True
            return
        except BaseException:
            self._waiters += waiting
            raise
        if self._is_unreadable:
            log.info("the outbox is read again")
        self._is_unreadable = False
        self._polled_at = monotonic()
        self._started.set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _publish_new(self, state: outbox_reader.State) -> None:
        feed = self._feeds[LATEST]
        feed.networks = state.networks
        newest = {network: reach.newest for network, reach in state.networks.items()}
        if not feed.is_started:
            feed.start(state.epoch, newest)
            return
        if _is_replaced(feed, state):
            log.warning("the outbox is another one", epoch=state.epoch)
            feed.restart(state.epoch, newest)
            return
        behind = _behind(feed, state)
        while behind:
            events = await self._thread.run(partial(read_rows, behind, ROWS))
            await self._publish_all(feed, events)
            behind = _still_behind(feed, behind, events)

    async def _publish_settled(self, finality: Level, state: outbox_reader.State) -> None:
        """Publish rows that have become safe or final."""
        feed, gates = self._feeds[finality], self._gates[finality]
        feed.networks = state.networks
        if not feed.is_started:
            marks = self._start(finality, state.epoch)
            if marks is not None:
                gates.open_all()
                feed.start(state.epoch, marks)
            return
        if _is_replaced(feed, state):
            marks = await self._thread.run(partial(outbox_reader.settled_marks, finality))
            gates.open_all()
            feed.restart(state.epoch, marks)
            return
        behind = {
            network: seq
            for network, seq in _behind(feed, state).items()
            if gates.may_pass(network, state, self._removed.get(network, 0))
        }
        while behind:
            removed = {network: self._removed.get(network, 0) for network in behind}
            events, waiting = await self._thread.run(partial(read_settled, behind, ROWS, finality))
            await self._publish_all(feed, events)
            for network in behind:
                gates.open(network)
                if network in waiting:
                    gates.close(network, waiting[network], removed[network])
            behind = _still_behind(feed, behind, events)

    def _start(self, finality: Level, epoch: str) -> dict[int, int] | None:
        """Return a feed's starting position, or None while it is being read.

        It is read in a separate thread, so the other feeds continue: the query's time grows with
        the number of events that aren't final. The position may be slightly old; the feed catches
        up from there.
        """
        start = self._starts.get(finality)
        if start is None or (start.epoch != epoch and start.marks.done()):
            read = self._starting.run(partial(outbox_reader.settled_marks, finality))
            start = self._starts[finality] = _Start(epoch, asyncio.create_task(read))
            start.marks.add_done_callback(lambda _: self._wake.set())
        if not start.marks.done():
            return None
        del self._starts[finality]
        return start.marks.result()

    async def _publish_all(self, feed: Feed, events: list[Event]) -> None:
        since_pause = 0
        for event in events:
            seq = feed.channel.marks.get(event.network_id, 0)
            if event.seq > seq + 1:
                self._skip_missing(feed, event.network_id, event.seq - 1)
            elif event.seq <= seq:
                continue
            since_pause += feed.channel.publish(event) + 1
            if feed.finality == LATEST:
                self._record(event)
            if since_pause >= _MESSAGES_BETWEEN:
                since_pause = 0
                await asyncio.sleep(0)

    def _record(self, event: Event) -> None:
        if event.op == REMOVED:
            self._removed[event.network_id] = event.seq
        self._last_event = {
            "network": str(event.network_id),
            "seq": event.seq,
            "op": event.op,
            "event": event.details.eventName,
            "contract": event.details.contractName,
            "block": event.details.blockNumber,
        }

    def _skip_missing(self, feed: Feed, network_id: int, seq: int) -> None:
        """Skip rows that were removed before they were read.

        That happens if this process, or the network's finality, stalled for days.
        """
        log.error(
            "rows of the outbox were removed before they were sent",
            network=network_id,
            up_to=seq,
        )
        self._removed[network_id] = seq
        feed.skip(network_id, seq)


def _is_replaced(feed: Feed, state: outbox_reader.State) -> bool:
    """Whether the database was replaced or has lost rows, so row numbers have a new meaning."""
    marks = feed.channel.marks
    return state.epoch != feed.channel.epoch or any(
        marks.get(network, 0) > reach.newest for network, reach in state.networks.items()
    )


def _behind(feed: Feed, state: outbox_reader.State) -> dict[int, int]:
    """Return the positions of networks with unread rows."""
    marks = feed.channel.marks
    return {
        network: marks.get(network, 0)
        for network, reach in state.networks.items()
        if reach.newest > marks.get(network, 0)
    }


def _still_behind(feed: Feed, behind: dict[int, int], events: list[Event]) -> dict[int, int]:
    """Return the positions of networks with a full page, which may have more rows."""
    read = Counter(event.network_id for event in events)
    return {network: feed.channel.marks[network] for network in behind if read[network] >= ROWS}

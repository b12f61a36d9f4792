"""The pump: reads the outbox as it grows, and tells everybody who is connected.

There is one in a process. It is woken up by notifications, and also looks every second, since
one may be lost. It sends rows in the order of their numbers, each once, also after failures:
where it stands is in memory, and only moves with what was told.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from backend.logs.setup import get_logger
from chain.indexing.storage import outbox
from chain.indexing.storage.outbox import Level
from realtime.channel.feeds import LATER, ROWS, Feed, Gates
from realtime.channel.pages import UNREADABLE, read_rows, read_settled
from realtime.core.event_channel import Channel
from realtime.core.event_queries import LATEST, Finality
from realtime.core.events import REMOVED, Event
from realtime.sockets.threads import Threads

if TYPE_CHECKING:
    from realtime.process.process import Process

POLL: Final = 1.0  # seconds
_MESSAGES_BETWEEN: Final = 100_000  # until others have their turn in the event loop

log = get_logger("events")


class _Start(NamedTuple):
    """Where a feed starts, which is being read, and the epoch of the outbox before that."""

    epoch: str
    marks: asyncio.Task[dict[int, int]]


class Pump:
    """``Part`` of the process that feeds the event channel."""

    name = "events"

    def __init__(self, process: Process) -> None:
        self._feeds: dict[Finality, Feed] = {
            finality: Feed(finality, self.look) for finality in (LATEST, *LATER)
        }
        self._gates = {finality: Gates(finality) for finality in LATER}
        self._removed: dict[int, int] = {}  # the last row of each network that was a removal
        self._wanted: set[Finality] = {LATEST}
        self._process = process
        self._wake = asyncio.Event()
        self._began = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._thread = Threads("events-pump", 1)
        self._starts: dict[Finality, _Start] = {}
        self._starting = Threads("events-start", 1)
        self._looked_at: float | None = None
        self._last_event: dict[str, Any] | None = None
        self._is_unreadable = False

    @property
    def channel(self) -> Channel:
        """The connections that get events at once."""
        return self._feeds[LATEST].channel

    # -- For connections --------------------------------------------------------------------------

    async def begun(self) -> None:
        """Returns when it knows where it stands: at once but for the first moments."""
        await self._began.wait()

    async def feed(self, finality: Finality) -> Feed:
        """The feed of this finality, when it knows where it stands. Those that wait begin when
        a connection first asks for them."""
        await self.begun()
        feed = self._feeds[finality]
        self._wanted.add(finality)
        while not feed.is_begun:
            await self.look()
            start = self._starts.get(finality)
            if start is not None:
                await asyncio.wait([start.marks])
        return feed

    async def look(self) -> None:
        """Returns when everything has been told that is committed by now."""
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(looked)
        self._wake.set()
        await looked

    # -- For the process --------------------------------------------------------------------------

    async def run(self) -> None:
        """Read and tell until cancelled."""
        unsubscribe = self._process.listener.subscribe(outbox.CHANNEL, self._woken)
        try:
            while True:
                await self._look()
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
            "messages": sum(feed.channel.told for feed in feeds),
            "catching_up": sum(feed.catching_up for feed in feeds),
            "pages_read": sum(feed.pages.read for feed in feeds),
            "seconds_since_look": (
                None if self._looked_at is None else round(monotonic() - self._looked_at, 3)
            ),
            "readable": not self._is_unreadable,
            "last": self._last_event,
        }

    def _woken(self, payload: str | None) -> None:
        self._wake.set()

    # -- Reading ----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Tell what is new. While the database can't be read, nothing happens."""
        self._wake.clear()
        waiting, self._waiting = self._waiting, []
        try:
            state = await self._thread.do(outbox.state)
            await self._tell_new(state)
            for finality in LATER:
                if finality in self._wanted:
                    await self._tell_decided(finality, state)
        except UNREADABLE as error:
            self._waiting += waiting
            if not self._is_unreadable:
                log.warning("the outbox can't be read", reason=type(error).__name__)
            self._is_unreadable = True
            return
        except BaseException:
            self._waiting += waiting
            raise
        if self._is_unreadable:
            log.info("the outbox is read again")
        self._is_unreadable = False
        self._looked_at = monotonic()
        self._began.set()
        for looked in waiting:
            if not looked.done():
                looked.set_result(None)

    async def _tell_new(self, state: outbox.State) -> None:
        feed = self._feeds[LATEST]
        feed.networks = state.networks
        newest = {network: reach.newest for network, reach in state.networks.items()}
        if not feed.is_begun:
            feed.begin_at(state.epoch, newest)
            return
        if _is_another(feed, state):
            log.warning("the outbox is another one", epoch=state.epoch)
            feed.begin_anew(state.epoch, newest)
            return
        behind = _behind(feed, state)
        while behind:
            events = await self._thread.do(partial(read_rows, behind, ROWS))
            await self._tell_all(feed, events)
            behind = _read_on(feed, behind, events)

    async def _tell_decided(self, finality: Level, state: outbox.State) -> None:
        """Tell what has become final, or safe."""
        feed, gates = self._feeds[finality], self._gates[finality]
        feed.networks = state.networks
        if not feed.is_begun:
            marks = self._start(finality, state.epoch)
            if marks is not None:
                gates.open_all()
                feed.begin_at(state.epoch, marks)
            return
        if _is_another(feed, state):
            marks = await self._thread.do(partial(outbox.settled_marks, finality))
            gates.open_all()
            feed.begin_anew(state.epoch, marks)
            return
        behind = {
            network: seq
            for network, seq in _behind(feed, state).items()
            if gates.may_pass(network, state, self._removed.get(network, 0))
        }
        while behind:
            removed = {network: self._removed.get(network, 0) for network in behind}
            events, waiting = await self._thread.do(partial(read_settled, behind, ROWS, finality))
            await self._tell_all(feed, events)
            for network in behind:
                gates.open(network)
                if network in waiting:
                    gates.close(network, waiting[network], removed[network])
            behind = _read_on(feed, behind, events)

    def _start(self, finality: Level, epoch: str) -> dict[int, int] | None:
        """Where a feed starts; None while that is read, in a thread of its own: it can take as long
        as there are events that aren't final, and the other feeds go on meanwhile.

        The numbers may be those of a moment ago: the feed catches up from there."""
        start = self._starts.get(finality)
        if start is None or (start.epoch != epoch and start.marks.done()):
            read = self._starting.do(partial(outbox.settled_marks, finality))
            start = self._starts[finality] = _Start(epoch, asyncio.create_task(read))
            start.marks.add_done_callback(lambda _: self._wake.set())
        if not start.marks.done():
            return None
        del self._starts[finality]
        return start.marks.result()

    async def _tell_all(self, feed: Feed, events: list[Event]) -> None:
        since_pause = 0
        for event in events:
            seq = feed.channel.marks.get(event.network_id, 0)
            if event.seq > seq + 1:
                self._missing(feed, event.network_id, event.seq - 1)
            elif event.seq <= seq:
                continue
            since_pause += feed.channel.tell(event) + 1
            if feed.finality == LATEST:
                self._note(event)
            if since_pause >= _MESSAGES_BETWEEN:
                since_pause = 0
                await asyncio.sleep(0)

    def _note(self, event: Event) -> None:
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

    def _missing(self, feed: Feed, network_id: int, seq: int) -> None:
        """Rows up to this one are gone before they were read: this process stood still for days,
        or the network wasn't final for as long."""
        log.error("rows of the outbox are gone that weren't told", network=network_id, up_to=seq)
        self._removed[network_id] = seq
        feed.skip(network_id, seq)


def _is_another(feed: Feed, state: outbox.State) -> bool:
    """Whether the database is another one, or has lost rows: numbers mean other rows then."""
    marks = feed.channel.marks
    return state.epoch != feed.channel.epoch or any(
        marks.get(network, 0) > reach.newest for network, reach in state.networks.items()
    )


def _behind(feed: Feed, state: outbox.State) -> dict[int, int]:
    """Where the networks stand that have more rows."""
    marks = feed.channel.marks
    return {
        network: marks.get(network, 0)
        for network, reach in state.networks.items()
        if reach.newest > marks.get(network, 0)
    }


def _read_on(feed: Feed, behind: dict[int, int], events: list[Event]) -> dict[int, int]:
    """The same of networks of which as many rows came as were asked for."""
    read = Counter(event.network_id for event in events)
    return {network: feed.channel.marks[network] for network in behind if read[network] >= ROWS}

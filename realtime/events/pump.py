"""The pump: reads the outbox as it grows, and tells everybody who is connected.

There is one in a process. It is woken up by notifications, and looks every second besides, since
one may be lost. It tells rows in the order of their numbers, each once, whatever happens between:
where it stands is in memory, and only moves with what was told.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from backend.logs import get_logger
from chain import outbox
from realtime.core import event_channel
from realtime.core.cursors import Cursor, encode
from realtime.core.event_channel import Channel, Member
from realtime.core.events import Event, control
from realtime.events.pages import UNREADABLE, Pages, read_rows
from realtime.threads import Threads

if TYPE_CHECKING:
    from realtime.process import Process

POLL: Final = 1.0  # seconds
ROWS: Final = 500  # of a network, read at once
_MESSAGES_BETWEEN: Final = 100_000  # until others have their turn in the event loop

log = get_logger("events")


class Pump:
    """``Part`` of the process that feeds the event channel."""

    name = "events"

    def __init__(self, process: Process) -> None:
        self.channel = Channel()
        self.pages = Pages()
        self.networks: dict[int, outbox.Reach] = {}  # as of the last look
        self.catching_up = 0  # connections that are told what they have missed
        self._process = process
        self._wake = asyncio.Event()
        self._began = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._thread = Threads("events-pump", 1)
        self._looked_at: float | None = None
        self._last_event: dict[str, Any] | None = None
        self._is_unreadable = False

    # -- For connections --------------------------------------------------------------------------

    async def begun(self) -> None:
        """Returns when it knows where it stands: at once but for the first moments."""
        await self._began.wait()

    async def look(self) -> None:
        """Returns when everything has been told that is committed by now."""
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(looked)
        self._wake.set()
        await looked

    def now(self) -> Cursor:
        """Where a connection stands that begins now."""
        marks = self.channel.marks
        return Cursor(self.channel.epoch, marks, marks)

    def reach(self) -> dict[str, Any]:
        """What ``hello`` and ``reset`` say of each network."""
        return event_channel.reach(self.networks)

    def begin(self, member: Member) -> str:
        """Have a connection begin now; its cursor."""
        member.starts = self.channel.marks
        member.tail = event_channel.tail_of(member.wish, member.starts)
        self.channel.leave(member)
        self.channel.join(member)
        return encode(self.now(), member.wish.filter.networks)

    def reset(self, member: Member, reason: str) -> None:
        """Tell a connection that it has missed what can't be told any more, and have it begin
        now. A plain one just goes on."""
        cursor = self.begin(member)
        if member.wish.is_detailed:
            data = {"reason": reason, "networks": self.reach()}
            member.enqueue(control("reset", data, cursor))

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
            await self._thread.close()
            await self.pages.close()

    def status(self) -> dict[str, Any]:
        marks = self.channel.marks
        return {
            "epoch": self.channel.epoch,
            "networks": {
                str(network): {
                    "newest": newest,
                    "told": marks.get(network, 0),
                    "lag": max(0, newest - marks.get(network, 0)),
                }
                for network, (_, newest) in self.networks.items()
            },
            "messages": self.channel.told,
            "catching_up": self.catching_up,
            "pages_read": self.pages.read,
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
            await self._tell_new(await self._thread.do(outbox.state))
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
        self.networks = state.networks
        newest = {network: reach.newest for network, reach in state.networks.items()}
        marks = self.channel.marks
        if not self._began.is_set():
            self.channel.begin(state.epoch, newest)
            return
        if state.epoch != self.channel.epoch or any(
            marks.get(network, 0) > last for network, last in newest.items()
        ):
            self._begin_anew(state.epoch, newest)
            return
        behind = {
            network: marks.get(network, 0)
            for network, last in newest.items()
            if last > marks.get(network, 0)
        }
        while behind:
            events = await self._thread.do(partial(read_rows, behind, ROWS))
            await self._tell_all(events)
            read = [event.network_id for event in events]
            behind = {
                network: self.channel.marks[network]
                for network in behind
                if read.count(network) >= ROWS
            }

    async def _tell_all(self, events: list[Event]) -> None:
        since_pause = 0
        for event in events:
            seq = self.channel.marks.get(event.network_id, 0)
            if event.seq > seq + 1:
                self._missing(event.network_id, event.seq - 1)
            elif event.seq <= seq:
                continue
            since_pause += self.channel.tell(event) + 1
            self._last_event = {
                "network": str(event.network_id),
                "seq": event.seq,
                "op": event.op,
                "event": event.details.eventName,
                "contract": event.details.contractName,
                "block": event.details.blockNumber,
            }
            if since_pause >= _MESSAGES_BETWEEN:
                since_pause = 0
                await asyncio.sleep(0)

    def _missing(self, network_id: int, seq: int) -> None:
        """Rows up to this one are gone before they were read: this process stood still for days."""
        log.error("rows of the outbox are gone that weren't told", network=network_id, up_to=seq)
        self.channel.skip(network_id, seq)
        for member in self.channel.members():
            networks = member.wish.filter.networks
            if networks is None or network_id in networks:
                self.reset(member, "expired")

    def _begin_anew(self, epoch: str, newest: dict[int, int]) -> None:
        """The database is another one, or has lost rows: numbers mean other rows now."""
        log.warning("the outbox is another one", epoch=epoch)
        members = [*self.channel.members()]
        self.pages.forget()
        self.channel.begin(epoch, newest)
        for member in members:
            self.reset(member, "epoch")

"""The feeds of the event channel, one for each finality: latest, safe and final.

A feed sends the rows of the outbox in order, each once. The safe and final feeds send a row when
its event has reached the feed's finality, and skip it if it was removed before that; later rows
wait until then. So a number in a cursor means the same in every process at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from chain.indexing.storage import outbox_reader
from realtime.channel.pages import Pages, read_rows, read_settled
from realtime.core import event_channel
from realtime.core.cursors import Cursor, encode
from realtime.core.event_channel import Channel, Member
from realtime.core.event_queries import FINAL, LATEST, SAFE, Finality
from realtime.core.events import Event, control

ROWS: Final = 500  # of a network, read at once


class Feed:
    """The connections of one finality and the position up to which they have received events."""

    def __init__(self, finality: Finality, poll: Callable[[], Awaitable[None]]) -> None:
        self.finality = finality
        self.channel = Channel()
        self.pages = Pages(partial(read_events, finality))
        self.networks: dict[int, outbox_reader.Reach] = {}  # as of the last poll
        self.catching_up = 0  # connections
        self.is_started = False
        self.poll = poll
        """Read and publish everything committed before the call."""

    def start(self, epoch: str, marks: Mapping[int, int]) -> None:
        """Start after these rows, without publishing earlier ones."""
        self.channel.start(epoch, marks)
        self.is_started = True

    def now(self) -> Cursor:
        """Return the current end of the feed."""
        marks = self.channel.marks
        return Cursor(self.channel.epoch, marks, marks)

    def reach(self) -> dict[str, Any]:
        """Return the oldest and newest row of each network for ``hello`` and ``reset``."""
        return event_channel.reach(self.networks)

    def join(self, member: Member) -> str:
        """Join a connection at the current end of the feed; return its cursor."""
        member.starts = self.channel.marks
        member.tail = event_channel.tail_of(member.subscription, member.starts)
        self.channel.leave(member)
        self.channel.join(member)
        return encode(self.now(), member.subscription.filter.networks)

    def reset(self, member: Member, reason: str) -> None:
        """Send a connection a ``reset``, since events are lost for it, and join it at the end.

        A plain connection joins without a message.
        """
        cursor = self.join(member)
        if member.subscription.is_detailed:
            data = {"reason": reason, "networks": self.reach()}
            member.enqueue(control("reset", data, cursor))

    def restart(self, epoch: str, marks: Mapping[int, int]) -> None:
        """Start in another epoch and reset all connections: row numbers have a new meaning."""
        members = [*self.channel.members()]
        self.pages.clear()
        self.start(epoch, marks)
        for member in members:
            self.reset(member, "epoch")

    def skip(self, network_id: int, seq: int) -> None:
        """Continue after a row and reset connections: earlier rows were removed unread."""
        self.channel.skip(network_id, seq)
        for member in self.channel.members():
            networks = member.subscription.filter.networks
            if networks is None or network_id in networks:
                self.reset(member, "expired")


class _Gate(NamedTuple):
    """The condition for the next row of a network: a block height, or a removal after a row."""

    block: int
    removed: int


class Gates:
    """The networks of a feed that may have settled rows; the others needn't be read."""

    def __init__(self, finality: Finality) -> None:
        self._finality = finality
        self._gates: dict[int, _Gate] = {}

    def may_pass(self, network_id: int, state: outbox_reader.State, removed: int) -> bool:
        """Whether the next row may be settled by now; ``removed`` is the last removal."""
        gate = self._gates.get(network_id)
        if gate is None:
            return True
        heights = state.heights.get(network_id, outbox_reader.Heights(-1, -1))
        height = heights.final if self._finality == FINAL else heights.safe
        return height >= gate.block or removed > gate.removed

    def close(self, network_id: int, block: int, removed: int) -> None:
        self._gates[network_id] = _Gate(block, removed)

    def open(self, network_id: int) -> None:
        self._gates.pop(network_id, None)

    def open_all(self) -> None:
        self._gates.clear()


def read_events(finality: Finality, positions: dict[int, int], limit: int) -> list[Event]:
    """Return the events of the feed after these rows. Blocking; call it in a thread."""
    if finality == LATEST:
        return read_rows(positions, limit)
    return read_settled(positions, limit, finality)[0]


LATER: Final = (SAFE, FINAL)
"""The feeds that wait for finality."""

"""The feeds of the event channel: one sends events when they are stored, the others when their
block is safe or final.

Each is a row of the outbox after the other, sent once. A row of the last two is sent when its event
has reached the feed's finality, and passed over when it was removed before that; until then the
rows after it wait. So a number in a cursor means the same in each process, at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from chain.indexing.storage import outbox
from realtime.channel.pages import Pages, read_rows, read_settled
from realtime.core import event_channel
from realtime.core.cursors import Cursor, encode
from realtime.core.event_channel import Channel, Member
from realtime.core.event_queries import FINAL, LATEST, SAFE, Finality
from realtime.core.events import Event, control

ROWS: Final = 500  # of a network, read at once


class Feed:
    """What connections of one finality are sent, and where each of them stands."""

    def __init__(self, finality: Finality, look: Callable[[], Awaitable[None]]) -> None:
        self.finality = finality
        self.channel = Channel()
        self.pages = Pages(partial(read_events, finality))
        self.networks: dict[int, outbox.Reach] = {}  # as of the last look
        self.catching_up = 0  # connections that are told what they have missed
        self.is_begun = False
        self.look = look
        """Returns when everything has been told that is committed by now."""

    def begin_at(self, epoch: str, marks: Mapping[int, int]) -> None:
        """Go on after these rows, without having told what is before."""
        self.channel.begin(epoch, marks)
        self.is_begun = True

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
        """Tell a connection that it has missed what can't be sent any more, and have it begin
        now. A plain one just goes on."""
        cursor = self.begin(member)
        if member.wish.is_detailed:
            data = {"reason": reason, "networks": self.reach()}
            member.enqueue(control("reset", data, cursor))

    def begin_anew(self, epoch: str, marks: Mapping[int, int]) -> None:
        """Numbers mean other rows now."""
        members = [*self.channel.members()]
        self.pages.forget()
        self.begin_at(epoch, marks)
        for member in members:
            self.reset(member, "epoch")

    def skip(self, network_id: int, seq: int) -> None:
        """Rows of a network up to this one are gone before they were told."""
        self.channel.skip(network_id, seq)
        for member in self.channel.members():
            networks = member.wish.filter.networks
            if networks is None or network_id in networks:
                self.reset(member, "expired")


class _Gate(NamedTuple):
    """What the next row of a network waits for: a height, or a removal after this row."""

    block: int
    removed: int


class Gates:
    """Which networks of a feed may have decided rows, so that the others aren't read in vain."""

    def __init__(self, finality: Finality) -> None:
        self._finality = finality
        self._gates: dict[int, _Gate] = {}

    def may_pass(self, network_id: int, state: outbox.State, removed: int) -> bool:
        """Whether something has changed for the next row; ``removed`` is the last removal."""
        gate = self._gates.get(network_id)
        if gate is None:
            return True
        heights = state.heights.get(network_id, outbox.Heights(-1, -1))
        height = heights.final if self._finality == FINAL else heights.safe
        return height >= gate.block or removed > gate.removed

    def close(self, network_id: int, block: int, removed: int) -> None:
        self._gates[network_id] = _Gate(block, removed)

    def open(self, network_id: int) -> None:
        self._gates.pop(network_id, None)

    def open_all(self) -> None:
        self._gates.clear()


def read_events(finality: Finality, positions: dict[int, int], limit: int) -> list[Event]:
    """The events of the feed after these rows; a plain function, for a thread."""
    if finality == LATEST:
        return read_rows(positions, limit)
    return read_settled(positions, limit, finality)[0]


LATER: Final = (SAFE, FINAL)
"""The feeds that wait."""

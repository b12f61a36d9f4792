"""Delivery of events to connections, and the latest events: one channel a process.

Connections with equal filters and message formats form a group: an event is matched once for a
group and encoded once for each format. Members of a group differ only in their starting position,
which matters for the few events that were delivered before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, Protocol

from realtime.core.cursors import Cursor, Marks, encode, head, marks_text
from realtime.core.event_queries import EventSubscription, Filter
from realtime.core.events import Event

RECENT_EVENTS: Final = 1000  # of a network
RECENT_BYTES: Final = 4 * 1024 * 1024

Form = tuple[Filter, bool, bool]
Term = tuple[str, str] | None


class Member(Protocol):
    """A connection that gets live events."""

    subscription: EventSubscription
    starts: Marks  # it receives every event after these rows
    tail: str  # the end of its cursors: ``starts`` as text

    @property
    def is_behind(self) -> bool:
        """Whether the client's send queue is too full to send more now."""

    def enqueue(self, frame: bytes) -> None: ...

    def fell_behind(self, positions: Marks) -> None:
        """Start catching up: the member received events up to these rows and was removed."""


class Group(NamedTuple):
    """Members with one form. Ordered, so that events reach them in the same order."""

    filter: Filter
    is_detailed: bool
    reorg: bool
    members: dict[Member, None]


class Channel:
    """The live events of a process and their recipients. Nothing here blocks or raises."""

    def __init__(self) -> None:
        self.epoch = ""
        self.marks: Marks = {}  # the last published rows; never changed in place
        self.sent = 0  # messages
        self._groups: dict[Form, Group] = {}
        self._index: dict[Term, dict[Form, Group]] = {}
        self._recent: dict[int, Recent] = {}

    # -- Members ----------------------------------------------------------------------------------

    def join(self, member: Member) -> None:
        """Send a connection every event from now on."""
        form = _form(member.subscription)
        group = self._groups.get(form)
        if group is None:
            group = self._groups[form] = Group(*form, {})
            for term in _terms(group.filter):
                self._index.setdefault(term, {})[form] = group
        group.members[member] = None

    def leave(self, member: Member) -> None:
        """Send it no more events. Does nothing if it hasn't joined."""
        form = _form(member.subscription)
        group = self._groups.get(form)
        if group is None:
            return
        group.members.pop(member, None)
        if not group.members:
            del self._groups[form]
            for term in _terms(group.filter):
                del self._index[term][form]
                if not self._index[term]:
                    del self._index[term]

    def members(self) -> Iterator[Member]:
        for group in [*self._groups.values()]:
            yield from [*group.members]

    # -- Events -----------------------------------------------------------------------------------

    def start(self, epoch: str, marks: Marks) -> None:
        """Start after these rows, without publishing earlier ones."""
        self.epoch = epoch
        self.marks = dict(marks)
        self._recent.clear()

    def skip(self, network_id: int, seq: int) -> None:
        """Continue after this row of one network."""
        self.marks = {**self.marks, network_id: seq}
        self._recent.pop(network_id, None)

    def publish(self, event: Event) -> int:
        """Send the next row of its network to matching members; return their number."""
        before = self.marks
        self.marks = {**before, event.network_id: event.seq}
        self._recent.setdefault(event.network_id, Recent()).add(event)
        if event.data is None:
            return 0
        count = 0
        heads: dict[Collection[int] | None, str] = {}
        for group in self._matching_groups(event):
            networks = group.filter.networks
            for slow in [member for member in group.members if member.is_behind]:
                self.leave(slow)
                slow.fell_behind(before)
            if group.is_detailed and networks not in heads:
                heads[networks] = head(self.epoch, marks_text(self.marks, networks))
            count += _publish(group, event, heads.get(networks, ""))
        self.sent += count
        return count

    def _matching_groups(self, event: Event) -> list[Group]:
        groups: dict[Form, Group] = {}
        address, name = event.terms
        for term in (
            None,
            ("event", event.details.eventName),
            ("contract", address),
            ("contract", name),
        ):
            groups |= self._index.get(term, {})
        return [group for group in groups.values() if group.filter.matches(event)]

    # -- Published events -------------------------------------------------------------------------

    def is_current(self, positions: Marks, networks: Collection[int] | None) -> bool:
        """Whether a connection at these positions has received everything."""
        return all(
            positions.get(network, 0) == seq
            for network, seq in self.marks.items()
            if networks is None or network in networks
        )

    def since(self, network_id: int, seq: int) -> list[Event] | None:
        """Return all events of a network after this row, or None if some are no longer held."""
        recent = self._recent.get(network_id)
        if recent is None or seq > self.marks.get(network_id, 0):
            return None
        return recent.after(seq)


def _form(subscription: EventSubscription) -> Form:
    return subscription.filter, subscription.is_detailed, subscription.reorg


def _terms(event_filter: Filter) -> list[Term]:
    """Return terms of which every event that the filter matches has at least one."""
    if event_filter.contracts is not None:
        return [("contract", term) for term in event_filter.contracts]
    if event_filter.events is not None:
        return [("event", name) for name in event_filter.events]
    return [None]


def _publish(group: Group, event: Event, shared: str) -> int:
    """Send an event to a group's members; ``shared`` is the common prefix of their cursors."""
    members = [*group.members]
    if event.op != "added" or event.prior.again_of is not None:
        network = event.network_id
        members = [
            member
            for member in members
            if event.is_delivered(member.starts.get(network, 0), reorg=group.reorg)
        ]
    if group.is_detailed:
        for member in members:
            member.enqueue(event.detailed(shared + member.tail))
    elif members:
        frame = event.plain
        for member in members:
            member.enqueue(frame)
    return len(members)


def message(event: Event, member: Member, epoch: str, positions: Marks) -> bytes | None:
    """Return the message about an event for one connection, or None if it isn't a recipient.

    ``positions`` are the connection's positions after this event.
    """
    subscription = member.subscription
    if not subscription.filter.matches(event):
        return None
    if not event.is_delivered(member.starts.get(event.network_id, 0), reorg=subscription.reorg):
        return None
    if not subscription.is_detailed:
        return event.plain
    cursor = Cursor(epoch, positions, member.starts)
    return event.detailed(encode(cursor, subscription.filter.networks))


def tail_of(subscription: EventSubscription, starts: Marks) -> str:
    """Return the end of a connection's cursors, from its starting position."""
    return marks_text(starts, subscription.filter.networks)


class Recent:
    """The last events of a network, without gaps."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0

    def add(self, event: Event) -> None:
        self._events.append(event)
        self._bytes += event.size
        while len(self._events) > RECENT_EVENTS or self._bytes > RECENT_BYTES:
            self._bytes -= self._events.popleft().size

    def after(self, seq: int) -> list[Event] | None:
        if not self._events or self._events[0].seq > seq + 1:
            return None
        return [*islice(self._events, seq + 1 - self._events[0].seq, None)]


def reach(networks: Mapping[int, tuple[int, int]]) -> dict[str, dict[str, int]]:
    """Return the oldest and newest row of each network for ``hello`` and ``reset``."""
    return {
        str(network): {"oldest": oldest, "newest": newest}
        for network, (oldest, newest) in networks.items()
    }

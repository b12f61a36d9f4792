"""Who gets an event, and the latest events: one channel a process.

Connections that want the same in the same form are a group: an event is compared with a group, not
with a connection, and encoded once for each form. Only where a connection stands when it began
differs, which matters for the few events that have been told before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, Protocol

from realtime.core.cursors import Cursor as Place
from realtime.core.cursors import Marks, encode, head, marks_text
from realtime.core.event_queries import Filter, Wish
from realtime.core.events import Event

RECENT_EVENTS: Final = 1000  # of a network
RECENT_BYTES: Final = 4 * 1024 * 1024

Form = tuple[Filter, bool, bool]
Term = tuple[str, str] | None


class Member(Protocol):
    """A connection that gets live events."""

    wish: Wish
    starts: Marks  # it gets everything after
    tail: str  # the end of its cursors: ``starts`` as text

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for the client to read it that no more should be sent now."""

    def enqueue(self, frame: bytes) -> None: ...

    def fell_behind(self, positions: Marks) -> None:
        """It was told up to these rows, and has left the channel: it has to catch up."""


class Group(NamedTuple):
    """Members of one form. Ordered, so that each event reaches them in the same order."""

    filter: Filter
    is_detailed: bool
    reorg: bool
    members: dict[Member, None]


class Channel:
    """What a process tells its connections. Nothing here waits or fails."""

    def __init__(self) -> None:
        self.epoch = ""
        self.marks: Marks = {}  # what has been told; never changed in place
        self.told = 0  # messages
        self._groups: dict[Form, Group] = {}
        self._index: dict[Term, dict[Form, Group]] = {}
        self._recent: dict[int, Recent] = {}

    # -- Members ----------------------------------------------------------------------------------

    def join(self, member: Member) -> None:
        """Tell a connection of everything from now on."""
        form = _form(member.wish)
        group = self._groups.get(form)
        if group is None:
            group = self._groups[form] = Group(*form, {})
            for term in _terms(group.filter):
                self._index.setdefault(term, {})[form] = group
        group.members[member] = None

    def leave(self, member: Member) -> None:
        """Tell it nothing more; nothing happens if it wasn't told anything."""
        form = _form(member.wish)
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

    def begin(self, epoch: str, marks: Marks) -> None:
        """Go on from these numbers, without having told what is before."""
        self.epoch = epoch
        self.marks = dict(marks)
        self._recent.clear()

    def skip(self, network_id: int, seq: int) -> None:
        """Go on after this row on one network."""
        self.marks = {**self.marks, network_id: seq}
        self._recent.pop(network_id, None)

    def tell(self, event: Event) -> int:
        """Tell whom it concerns of the row that is next on its network; how many that are."""
        before = self.marks
        self.marks = {**before, event.network_id: event.seq}
        self._recent.setdefault(event.network_id, Recent()).add(event)
        if event.data is None:
            return 0
        count = 0
        heads: dict[Collection[int] | None, str] = {}
        for group in self._concerned(event):
            networks = group.filter.networks
            for late in [member for member in group.members if member.is_behind]:
                self.leave(late)
                late.fell_behind(before)
            if group.is_detailed and networks not in heads:
                heads[networks] = head(self.epoch, marks_text(self.marks, networks))
            count += _tell(group, event, heads.get(networks, ""))
        self.told += count
        return count

    def _concerned(self, event: Event) -> list[Group]:
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

    # -- What has been told -----------------------------------------------------------------------

    def is_told(self, positions: Marks, networks: Collection[int] | None) -> bool:
        """Whether a connection that has these rows has everything."""
        return all(
            positions.get(network, 0) == seq
            for network, seq in self.marks.items()
            if networks is None or network in networks
        )

    def since(self, network_id: int, seq: int) -> list[Event] | None:
        """The events of a network after this row, as far as they are kept: all, or None."""
        recent = self._recent.get(network_id)
        if recent is None or seq > self.marks.get(network_id, 0):
            return None
        return recent.after(seq)


def _form(wish: Wish) -> Form:
    return wish.filter, wish.is_detailed, wish.reorg


def _terms(event_filter: Filter) -> list[Term]:
    """What an event has one of, if the filter matches it."""
    if event_filter.contracts is not None:
        return [("contract", term) for term in event_filter.contracts]
    if event_filter.events is not None:
        return [("event", name) for name in event_filter.events]
    return [None]


def _tell(group: Group, event: Event, shared: str) -> int:
    """Send it to the members of a group that get it; ``shared`` begins their cursors."""
    members = [*group.members]
    if event.op != "added" or event.before.again_of is not None:
        network = event.network_id
        members = [
            one for one in members if event.is_told(one.starts.get(network, 0), reorg=group.reorg)
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
    """Return the message about an event for a connection that has rows up to ``positions``, this
    one included; None for nothing."""
    wish = member.wish
    if not wish.filter.matches(event):
        return None
    if not event.is_told(member.starts.get(event.network_id, 0), reorg=wish.reorg):
        return None
    if not wish.is_detailed:
        return event.plain
    return event.detailed(encode(Place(epoch, positions, member.starts), wish.filter.networks))


def tail_of(wish: Wish, starts: Marks) -> str:
    """The end of the cursors of a connection that began there."""
    return marks_text(starts, wish.filter.networks)


class Recent:
    """The last events of a network, without a gap between them."""

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
    """What ``hello`` and ``reset`` say of the oldest and the newest row of each network."""
    return {
        str(network): {"oldest": oldest, "newest": newest}
        for network, (oldest, newest) in networks.items()
    }

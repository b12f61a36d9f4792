"""Clients that connect, go and come back get each event once, in order, through reorganisations.

A model of the outbox (with reorganisations), processes that tell it at their own pace, and clients
that connect to any of them, are held against an oracle that knows the history alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.core.cursors import Cursor, Marks, decode
from realtime.core.event_channel import RECENT_EVENTS, Channel, Recent, message, tail_of
from realtime.core.event_queries import EventSubscription, Filter, parse
from realtime.core.events import Event, PriorRows

EPOCH = "e0"
NETWORKS = (1, 2)
GEM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@dataclass(frozen=True)
class Log:
    """A log in a transaction, and what it says; ``block`` is where it is."""

    place: int
    form: int
    block: int


@dataclass
class History:
    """The outbox of one network, and the chain that it is about."""

    network: int
    rows: list[tuple[str, Log]] = field(default_factory=list)
    chain: list[Log] = field(default_factory=list)
    places: int = 0
    blocks: int = 0

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.places += 1
            self._add(Log(self.places, 0, self.blocks))
        self.blocks += 1

    def history(self) -> None:
        """An earlier event that wasn't published."""
        self.places += 1
        self.chain.append(Log(self.places, 0, self.blocks))

    def reorganise(self, depth: int, fate: list[int]) -> None:
        """The last events are removed; each comes back as it was (0), says something else (1), or
        is gone (2). Those that come back do so in the same block, or in another (3)."""
        gone = self.chain[len(self.chain) - min(depth, len(self.chain)) :]
        for log in reversed(gone):
            self.chain.remove(log)
            self.rows.append(("removed", log))
        self.blocks += 1
        for log, choice in zip(gone, fate, strict=False):
            if choice == 0:
                self._add(log)
            elif choice == 1:
                self._add(Log(log.place, log.form + 1, self.blocks))
            elif choice == 3:
                self._add(Log(log.place, log.form, self.blocks))

    def event(self, seq: int) -> Event:
        """The row as the database reads it."""
        op, log = self.rows[seq - 1]
        before = [*enumerate(self.rows[: seq - 1], 1)]
        again = [n for n, (o, x) in before if o == "added" and _said(x) == _said(log)]
        announced = [n for n, (o, x) in before if o == "added" and x == log]
        gone = [n for n, (o, x) in before if o == "removed" and x.place == log.place]
        existing = PriorRows(*(max(results, default=None) for results in (again, announced, gone)))
        payload = {
            "eventName": "Transfer",
            "contractName": "Gem",
            "address": GEM,
            "networkId": str(self.network),
            "blockNumber": log.block,
            "args": {"from": GEM, "to": GEM, "tokenId": str(log.place * 100 + log.form)},
        }
        return Event(self.network, seq, op, json.dumps(payload), existing)

    def _add(self, log: Log) -> None:
        self.chain.append(log)
        self.rows.append(("added", log))


def _said(log: Log) -> tuple[int, int]:
    return log.place, log.form


def expected(rows: list[tuple[str, Log]], start: int, *, reorg: bool) -> list[tuple[str, int]]:
    """What a client gets that starts after row ``start``."""
    observed: list[tuple[str, int]] = []
    sent_ids: set[tuple[int, int]] = set()
    alive = {log for op, log in rows[:start] if op == "added"}
    alive -= {log for log in alive if _last(rows[:start], log) == "removed"}
    for op, log in rows[start:]:
        if op == "added":
            if reorg or _said(log) not in sent_ids:
                observed.append(("added", log.place * 100 + log.form))
            sent_ids.add(_said(log))
            alive.add(log)
        elif reorg and log in alive:
            observed.append(("removed", log.place * 100 + log.form))
            alive.discard(log)
    return observed


def _last(rows: list[tuple[str, Log]], log: Log) -> str:
    return [op for op, other in rows if other == log][-1]


@dataclass(eq=False)
class Client:
    """One that may come back, to any process, if its messages have ids."""

    subscription: EventSubscription
    starts: Marks = field(default_factory=dict)
    tail: str = ""
    is_behind: bool = False
    began: Marks = field(default_factory=dict)
    cursor: str | None = None
    frames: list[dict[str, Any]] = field(default_factory=list)
    channel: Channel | None = None
    positions: dict[int, int] | None = None  # while it catches up

    def enqueue(self, frame: bytes) -> None:
        document = json.loads(frame)
        self.frames.append(document)
        self.cursor = document.get("id", self.cursor)

    def fell_behind(self, positions: Marks) -> None:
        self.positions = dict(positions)

    def told(self, network: int) -> list[tuple[str, int]]:
        return [
            ("removed" if frame.get("removed") else "added", int(frame["data"]["tokenId"]))
            for frame in self.frames
            if frame["networkId"] == str(network)
        ]


def detailed(*, reorg: bool) -> EventSubscription:
    return EventSubscription(Filter(), "now", reorg)


class World:
    def __init__(self) -> None:
        self.histories = {network: History(network) for network in NETWORKS}
        self.channels = [Channel(), Channel()]
        for channel in self.channels:
            channel.start(EPOCH, {})

    def publish(self, channel: Channel, most: int) -> None:
        """Let a process tell some of what it hasn't."""
        for network, history in self.histories.items():
            seq = channel.marks.get(network, 0)
            for _ in range(min(most, len(history.rows) - seq)):
                seq += 1
                channel.publish(history.event(seq))

    def restart(self, number: int) -> None:
        """A process is killed; the next one begins where the outbox is."""
        newest = {network: len(item.rows) for network, item in self.histories.items()}
        self.channels[number] = Channel()
        self.channels[number].start(EPOCH, newest)

    def connect(self, client: Client, channel: Channel) -> None:
        client.channel = channel
        if client.cursor is None:
            client.starts = client.began = channel.marks
            client.tail = tail_of(client.subscription, client.starts)
            client.cursor = f"1.{EPOCH}.{','.join(_pairs(channel.marks))}.{client.tail}"
            channel.join(client)
            return
        cursor: Cursor = decode(client.cursor)
        client.starts = cursor.starts
        client.tail = tail_of(client.subscription, cursor.starts)
        client.positions = dict(cursor.positions)

    def catch_up(self, client: Client, most: int) -> None:
        """Tell a client some of what it has missed; it joins when that is everything."""
        channel, positions = client.channel, client.positions
        if channel is None or positions is None:
            return
        for network, history in self.histories.items():
            seq = positions.get(network, 0)
            while seq > channel.marks.get(network, 0):  # another process has published more
                self.publish(channel, len(history.rows))
            newest = channel.marks.get(network, 0)
            events = channel.since(network, seq)
            if events is None:
                events = [history.event(n) for n in range(seq + 1, newest + 1)]
            assert [item.seq for item in events] == [*range(seq + 1, newest + 1)]
            for event in events[:most]:
                positions[network] = event.seq
                frame = message(event, client, EPOCH, positions)
                if frame is not None:
                    client.enqueue(frame)
        if channel.is_current(positions, None):
            client.positions = None
            channel.join(client)

    def disconnect(self, client: Client) -> None:
        if client.channel is not None:
            client.channel.leave(client)
        client.channel = client.positions = None


def _pairs(marks: Marks) -> list[str]:
    return [f"{network}:{seq}" for network, seq in marks.items()]


networks = st.sampled_from(NETWORKS)
few = st.integers(1, 4)
actions = st.one_of(
    st.tuples(st.just("grow"), networks, few),
    st.tuples(st.just("history"), networks),
    st.tuples(
        st.just("reorganise"), networks, st.integers(1, 6), st.lists(st.integers(0, 3), max_size=6)
    ),
    st.tuples(st.just("tell"), st.integers(0, 1), few),
    st.tuples(st.just("restart"), st.integers(0, 1)),
    st.tuples(st.just("connect"), st.integers(0, 3), st.integers(0, 1)),
    st.tuples(st.just("disconnect"), st.integers(0, 3)),
    st.tuples(st.just("catch up"), st.integers(0, 3), few),
    st.tuples(st.just("behind"), st.integers(0, 3), st.booleans()),
)


@settings(max_examples=250, deadline=None)
@given(st.lists(actions, max_size=60))
def test_each_client_is_told_each_event_once_and_in_order(steps: list[Any]) -> None:
    world = World()
    clients = [Client(detailed(reorg=bool(n % 2))) for n in range(4)]
    for client in clients[:2]:
        world.connect(client, world.channels[0])
    for step in steps:
        match step:
            case ("grow", network, count):
                world.histories[network].grow(count)
            case ("history", network):
                world.histories[network].history()
            case ("reorganise", network, depth, fate):
                world.histories[network].reorganise(depth, fate)
            case ("tell", number, most):
                world.publish(world.channels[number], most)
            case ("restart", number):
                for client in clients:
                    if client.channel is world.channels[number]:
                        world.disconnect(client)
                world.restart(number)
            case ("connect", number, process):
                if clients[number].channel is None:
                    world.connect(clients[number], world.channels[process])
            case ("disconnect", number):
                world.disconnect(clients[number])
            case ("catch up", number, most):
                world.catch_up(clients[number], most)
            case ("behind", number, is_behind):
                clients[number].is_behind = is_behind
    # In the end all clients come back, and everything is sent.
    for channel in world.channels:
        world.publish(channel, 10_000)
    for client in clients:
        client.is_behind = False
        if client.channel is None and client.cursor is not None:
            world.connect(client, world.channels[0])
        world.catch_up(client, 10_000)
        if client.cursor is None:
            continue
        for network, history in world.histories.items():
            start = client.began.get(network, 0)
            assert client.told(network) == expected(
                history.rows, start, reorg=client.subscription.reorg
            )


def test_a_plain_client_is_told_from_when_it_came_without_details() -> None:
    world = World()
    channel = world.channels[0]
    client = Client(EventSubscription())
    world.histories[1].grow(2)
    world.publish(channel, 10)
    world.connect(client, channel)
    world.histories[1].grow(1)
    world.histories[1].reorganise(2, [0, 3])
    world.publish(channel, 10)
    # Row 2 was sent before it came; the event of row 3 is sent once.
    assert [frame["data"]["tokenId"] for frame in client.frames] == ["300", "200"]
    assert all(frame.keys() == {"event", "data"} for frame in client.frames)


def test_events_visit_only_groups_that_they_may_concern() -> None:
    channel = Channel()
    channel.start(EPOCH, {})
    everybody = Client(parse({}))
    of_gem = Client(parse({"contract": ["Gem", GEM], "since": ["now"]}))
    of_coin = Client(parse({"contract": ["Coin"], "since": ["now"]}))
    of_minted = Client(parse({"event": ["Minted"]}))
    for client in (everybody, of_gem, of_coin, of_minted):
        channel.join(client)
    history = History(1)
    history.grow(1)
    assert channel.publish(history.event(1)) == 2
    assert len(everybody.frames) == len(of_gem.frames) == 1
    assert of_coin.frames == of_minted.frames == []
    for client in (everybody, of_gem, of_coin, of_minted):
        channel.leave(client)
        channel.leave(client)
    history.grow(1)
    assert channel.publish(history.event(2)) == 0
    assert [*channel.members()] == []


def test_the_cursor_of_a_filtered_connection_is_about_its_networks() -> None:
    channel = Channel()
    channel.start(EPOCH, {2: 7})
    client = Client(parse({"network": ["1"], "since": ["now"]}), starts={1: 0, 2: 7})
    client.tail = tail_of(client.subscription, client.starts)
    channel.join(client)
    history = History(1)
    history.grow(1)
    channel.publish(history.event(1))
    assert client.cursor == "1.e0.1:1."


def test_only_the_latest_events_are_kept() -> None:
    recent = Recent()
    history = History(1)
    history.grow(1)
    item = history.event(1)
    for seq in range(1, RECENT_EVENTS + 51):
        event = history.event(1)
        event.seq = seq
        recent.add(event)
    assert recent.after(49) is None
    after = recent.after(50)
    assert after is not None
    assert [event.seq for event in after] == [*range(51, RECENT_EVENTS + 51)]
    assert recent.after(RECENT_EVENTS + 50) == []
    item.size = 2**30
    recent.add(item)
    assert recent.after(0) is None

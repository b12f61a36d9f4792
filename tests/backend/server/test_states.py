"""The states of a connection: which may follow which, and what a connection's end leaves."""

from __future__ import annotations

import gc
import weakref
from itertools import product
from pathlib import Path

import pytest

from backend.server.connection.protocol import Connection
from backend.server.connection.states import Answering, IllegalTransition, Reading, State
from tests.backend.server.running import Running, connections, running
from tests.backend.server.test_requests_over_sockets import get, post

PARSED = {Reading.IDLE, Reading.HEAD, Reading.BODY, Reading.DRAINING}
LEGAL_READING = {
    (Reading.IDLE, Reading.HEAD),
    (Reading.HEAD, Reading.IDLE),
    (Reading.HEAD, Reading.BODY),
    (Reading.HEAD, Reading.DRAINING),
    (Reading.HEAD, Reading.HANDSHAKE),
    (Reading.BODY, Reading.IDLE),
    (Reading.BODY, Reading.DRAINING),
    (Reading.HANDSHAKE, Reading.DONE),
    (Reading.HANDSHAKE, Reading.REFUSED),
    (Reading.DONE, Reading.ENDED),
    (Reading.REFUSED, Reading.ENDED),
    *product(PARSED, (Reading.DONE, Reading.REFUSED, Reading.ENDED)),
}
WAYS = {
    Reading.IDLE: [],
    Reading.BODY: [Reading.HEAD, Reading.BODY],
    Reading.DRAINING: [Reading.HEAD, Reading.DRAINING],
    Reading.HANDSHAKE: [Reading.HEAD, Reading.HANDSHAKE],
}


def at(reading: Reading) -> State:
    """A connection's state while it reads this."""
    state = State()
    for following in WAYS.get(reading, [reading]):
        state.read(following)
    return state


@pytest.mark.parametrize(("before", "after"), list(product(Reading, Reading)))
def test_reading_changes_along_legal_transitions_only(before: Reading, after: Reading) -> None:
    state = at(before)
    if (before, after) in LEGAL_READING:
        state.read(after)
        assert state.reading is after
    else:
        with pytest.raises(IllegalTransition, match=f"{before.name} to {after.name}"):
            state.read(after)
        assert state.reading is before


@pytest.mark.parametrize("over", [Answering.LINGERING, Answering.CLOSING, Answering.CLOSED])
@pytest.mark.parametrize("after", [Answering.READY, Answering.WAITING, Answering.SENDING])
def test_no_request_is_answered_once_a_connection_ends(over: Answering, after: Answering) -> None:
    state = State()
    state.answer(over)
    assert state.is_over
    with pytest.raises(IllegalTransition):
        state.answer(after)


@pytest.mark.parametrize("reading", Reading)
def test_what_is_not_parsed_is_never_parsed_again(reading: Reading) -> None:
    state = at(reading)
    assert state.is_parsing == (reading in PARSED)
    if not state.is_parsing:
        for parsed in PARSED:
            with pytest.raises(IllegalTransition):
                state.read(parsed)


def test_every_state_of_reading_is_reached_and_left(server: Running) -> None:
    def reading() -> list[Reading]:
        return server.call(lambda: [peer.reading for peer in connections(server.server)])

    def reaches(expected: Reading) -> None:
        server.wait_for(lambda running: [p.reading for p in connections(running)] == [expected])

    with server.connect() as wire:
        reaches(Reading.IDLE)
        response = post(b"x" * 10)
        wire.send(response[:5])
        reaches(Reading.HEAD)
        wire.send(response[5:-5])
        reaches(Reading.BODY)
        wire.send(response[-5:])
        assert wire.response().status == 200
        assert reading() == [Reading.IDLE]
        wire.send(get(b"/wait", b"Connection: close\r\n"))
        reaches(Reading.DONE)
        wire.end()
        reaches(Reading.ENDED)
        server.app.gate.set()
        assert wire.response().status == 200
        assert wire.rest() == b""
    with server.connect() as wire:
        wire.send(b"NONSENSE /\r\n\r\n")
        assert wire.response().status == 501
        assert reading() == [Reading.REFUSED]
    server.is_clean()


def test_a_refused_body_of_a_proxy_is_drained_before_the_response(tmp_path: Path) -> None:
    with running(tmp_path, proxies=frozenset({"127.0.0.1"})) as server, server.connect() as wire:
        wire.send(post(b"x" * 1000, b"X-Limit: 100\r\n")[:-1])
        server.wait_for(
            lambda running: [peer.reading for peer in connections(running)] == [Reading.DRAINING]
        )
        assert wire.send(b"x").response().error == (413, 116)
        assert wire.rest() == b""


@pytest.mark.parametrize(
    "part",
    [
        b"",
        get()[:-1],
        get(),
        post(b"x" * 100)[:-1],
        b"NONSENSE /\r\n\r\n",
        get(b"/stream?size=300000&pieces=100"),
    ],
)
def test_a_closed_connection_is_freed_without_garbage_collection(
    server: Running, part: bytes
) -> None:
    def referenced() -> list[weakref.ref[Connection]]:
        return [weakref.ref(peer) for peer in connections(server.server)]

    gc.collect()
    gc.disable()
    try:
        with server.connect() as wire:
            wire.send(part)
            server.wait_for(lambda running: len(running.connections) == 1)
            (connection,) = server.call(referenced)
            wire.reset()
        server.is_clean()
        server.wait_for(lambda _: connection() is None)
    finally:
        gc.enable()

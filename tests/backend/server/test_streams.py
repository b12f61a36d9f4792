"""Long responses: their iterators are read in turns, fairly between addresses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from backend.server.responses.long_bodies import PIECE, gather
from tests.backend.server.running import PATIENCE, Running, running
from tests.backend.server.test_requests_over_sockets import get

HELD = get(b"/held-stream?size=300000")
LONG = get(b"/stream?size=100000&pieces=40")


def hold(server: Running, address: str, streams: int, threads: int) -> list[object]:
    """Start streams of an address whose iterators stand still in so many threads."""
    wires = [server.connect(address).send(HELD) for _ in range(streams)]
    for _ in range(threads):
        assert server.app.started.acquire(timeout=PATIENCE)
    server.wait_for(lambda running: len(server.app.streams) >= streams)
    return list(wires)


def test_slow_streams_of_one_address_do_not_delay_those_of_another(server: Running) -> None:
    held = hold(server, "127.0.0.2", streams=10, threads=2)
    with server.connect() as wire:
        assert len(wire.send(LONG).response().body) == 4_000_000
    assert len(held) == 10
    assert not server.app.gate.is_set()


def test_slow_streams_of_several_addresses_do_not_delay_others(server: Running) -> None:
    held = [hold(server, f"127.0.0.{2 + number}", 3, threads=2) for number in range(3)]
    with server.connect() as wire:
        assert len(wire.send(LONG).response().body) == 4_000_000
    server.app.gate.set()
    assert len(held) == 3


def test_all_held_streams_are_sent_to_their_end(server: Running) -> None:
    wires = [server.connect().send(HELD) for _ in range(6)]
    server.app.gate.set()
    assert {len(wire.response().body) for wire in wires} == {600_000}
    assert all(stream.has_closed.wait(PATIENCE) for stream in server.app.streams)
    for wire in wires:
        wire.close()
    server.is_clean()
    assert [stream.closed for stream in server.app.streams] == [1] * 6


def test_additional_threads_end_and_two_stay(tmp_path: Path) -> None:
    with running(tmp_path, idle_thread=0.01) as server:
        hold(server, "127.0.0.2", 2, threads=2)
        hold(server, "127.0.0.3", 2, threads=2)
        server.wait_for(lambda running: running.turns.load[2] >= 4)
        server.app.gate.set()
        server.wait_for(lambda running: running.turns.load == (0, 0, 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_client_that_leaves_while_its_stream_is_held_frees_it(
    server: Running, threads: int
) -> None:
    wires = [server.connect().send(HELD) for _ in range(threads)]
    for _ in range(min(threads, 2)):
        assert server.app.started.acquire(timeout=PATIENCE)
    for wire in wires:
        wire.reset()
    server.wait_for(lambda running: len(running.connections) == 0)
    server.app.gate.set()
    assert all(stream.has_closed.wait(PATIENCE) for stream in server.app.streams)
    server.wait_for(lambda running: running.turns.load[:2] == (0, 0))
    assert {stream.closed for stream in server.app.streams} == {1}


def test_a_turn_ends_with_enough_bytes_or_at_its_time() -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    iterator = pieces()
    assert gather(iterator, until=monotonic() - 1) == (b"x" * 10_000, False)
    full, is_last = gather(iterator)
    assert PIECE <= len(full) < PIECE + 10_000
    assert not is_last
    remaining, is_last = gather(iterator, size=10_000_000, until=monotonic() + PATIENCE)
    assert is_last
    assert len(full) + len(remaining) == 990_000
    assert gather(iterator, until=monotonic() - 1) == (b"", True)


def test_connections_that_were_reset_before_they_are_accepted_run_no_request(
    server: Running,
) -> None:
    held, release = threading.Event(), threading.Event()

    def hold_loop() -> None:
        held.set()
        assert release.wait(PATIENCE)

    server.loop.call_soon_threadsafe(hold_loop)
    assert held.wait(PATIENCE)
    for _ in range(100):
        server.connect().send(get(b"/gone")).reset()
    alive = server.connect().send(get(b"/alive"))
    release.set()
    assert alive.response().status == 200
    alive.close()
    server.is_clean()
    assert server.app.calls == ["/alive"]

"""Clients that vanish, stall or trickle: nothing of them stays, and no thread waits for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.server.connection.states import Reading
from tests.backend.server.running import PATIENCE, SMALL, Running, connections, running
from tests.backend.server.test_requests_over_sockets import chunked, get, post

PIECE = 100_000


def open_files(folder: Path) -> int:
    """Temporary files of this process in the folder; they have no name there."""
    count = 0
    for entry in os.scandir("/proc/self/fd"):
        try:
            count += os.readlink(entry.path).startswith(str(folder))
        except FileNotFoundError:
            continue
    return count


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"G",
        get()[:-1],
        post(b"x" * 100)[:-1],
        post(b"x" * PIECE)[:-1],
        chunked(b"%x\r\n%b" % (PIECE, b"x" * PIECE)),
        chunked(b"5\r\nhello\r\n0\r\nX-T: 1"),
        get() + post(b"x" * PIECE)[:-1],
        post(b"x" * PIECE, b"X-Limit: 100\r\n")[:-1],
        b"NONSENSE /\r\n\r\n" + b"x" * PIECE,
        get(b"/stream?size=300000&pieces=100"),
        get(b"/big?size=10000000"),
        get(b"/wait"),
        get(b"/wait") + post(b"x" * PIECE),
        post(b"x" * PIECE, target=b"/wait"),
        get(b"/wait") + b"NONSENSE /\r\n\r\n",
    ],
)
@pytest.mark.parametrize("how", ["reset", "close", "end"])
def test_nothing_is_left_of_a_client_that_vanishes(
    server: Running, tmp_path: Path, part: bytes, how: str
) -> None:
    with server.connect() as wire:
        wire.send(part)
        if b"/wait" in part:
            assert server.app.started.acquire(timeout=PATIENCE)
        else:
            server.wait_for(lambda running: len(running.connections) == 1)
        {"reset": wire.reset, "close": wire.close, "end": wire.end}[how]()
        server.app.gate.set()
        if how == "end":
            wire.rest()
    server.is_clean()
    assert open_files(tmp_path) == 0
    for stream in server.app.streams:
        assert stream.has_closed.wait(PATIENCE)
    server.is_clean()
    assert [stream.closed for stream in server.app.streams] == [1] * len(server.app.streams)


def test_requests_of_clients_that_are_gone_are_not_run(server: Running) -> None:
    busy = [server.connect().send(get(b"/wait")) for _ in range(2)]
    for _ in busy:
        assert server.app.started.acquire(timeout=PATIENCE)
    gone = [server.connect().send(post(b"x" * PIECE, target=b"/never")) for _ in range(10)]
    server.wait_for(lambda running: running.requests.load[0] == 10)
    for wire in gone:
        wire.reset()
    # Without a thread that could take them.
    server.wait_for(lambda running: running.requests.load[0] == 0 and running.spool.size == 0)
    server.app.gate.set()
    assert [wire.response().status for wire in busy] == [200, 200]
    for wire in busy:
        wire.close()
    server.is_clean()
    assert "/never" not in server.app.calls


def test_slow_readers_of_streams_hold_no_thread(server: Running) -> None:
    target = b"/stream?size=262144&pieces=200"
    readers = [server.connect(receive=4096).send(get(target)) for _ in range(20)]
    server.wait_for(lambda _: len(server.app.streams) == 20)
    with server.connect() as other:
        assert other.send(get()).response().status == 200
        assert len(other.send(get(b"/stream?size=300000&pieces=2")).response().body) == 600_000
    assert all(stream.closed == 0 for stream in server.app.streams[:20])
    unsent = server.call(lambda: sum(peer.unsent for peer in connections(server.server)))
    assert unsent < 20 * 1024 * 1024
    for reader in readers:
        reader.reset()
    assert all(stream.has_closed.wait(PATIENCE) for stream in server.app.streams)
    server.is_clean()
    assert {stream.closed for stream in server.app.streams} == {1}


def test_a_slow_reader_gets_all_of_a_stream(server: Running) -> None:
    with server.connect(receive=4096) as wire:
        wire.send(get(b"/stream?size=100000&pieces=30"))
        assert wire.response().body == b"x" * 3_000_000
        assert wire.send(get(b"/next")).response().json["path"] == "/next"
    assert server.app.streams[0].has_closed.wait(PATIENCE)
    assert server.app.streams[0].closed == 1


@pytest.mark.parametrize("path", [b"/short", b"/long", b"/broken"])
@pytest.mark.parametrize("size", [b"100", b"300000"])
def test_a_response_that_breaks_off_is_not_taken_for_whole(
    server: Running, path: bytes, size: bytes
) -> None:
    with server.connect() as wire:
        wire.send(get(path + b"?pieces=3&size=" + size, b"Connection: close\r\n"))
        answer = wire.rest()
    assert not answer.endswith(b"0\r\n\r\n") or answer.startswith(b"HTTP/1.1 500")
    assert server.app.streams[0].has_closed.wait(PATIENCE)
    server.is_clean()
    assert server.app.streams[0].closed == 1


# -- deadlines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "later", "error"),
    [
        (b"G", 11, (408, 124)),
        (b"\r\n", 11, (408, 124)),
        (get()[:-1], 11, (408, 124)),
        (post(b"x" * 100)[:-1], 2, (408, 124)),
        (post(b"x" * PIECE)[:-1], 200, (408, 124)),
        (chunked(b"5\r\nhello\r\n"), 2, (408, 124)),
        (chunked(b"5\r\nhello\r\n0\r\nX-T: "), 2, (408, 124)),
    ],
)
def test_slow_requests_end_with_an_error(
    server: Running, part: bytes, later: float, error: tuple[int, int]
) -> None:
    with server.connect() as wire:
        wire.send(part)
        size = len(part.partition(b"\r\n\r\n")[2])
        server.wait_for(
            lambda running: any(
                peer.reading is Reading.HEAD or (peer.reading is Reading.BODY and size)
                for peer in connections(running)
            )
        )
        server.check(later - 1.5 if later > 2 else 0.5)
        server.check(later)
        assert wire.response().error == error
        assert wire.rest() == b""
    server.is_clean()
    assert server.app.calls == []


def test_an_idle_connection_is_closed_without_a_word(server: Running) -> None:
    with server.connect() as fresh, server.connect() as used:
        assert used.send(get()).response().status == 200
        server.wait_for(lambda running: len(running.connections) == 2)
        server.check(SMALL.idle_time - 10)
        assert used.send(get()).response().status == 200
        server.check(SMALL.idle_time + 10)
        assert fresh.rest() == used.rest() == b""
    server.is_clean()


def test_a_reader_that_stands_still_is_cut_off(server: Running) -> None:
    with server.connect(receive=4096) as wire:
        wire.send(get(b"/big?size=20000000"))
        server.wait_for(lambda running: any(peer.unsent for peer in connections(running)))
        server.check(0)
        server.check(0.9)
        assert server.call(lambda: len(server.server.connections)) == 1
        server.check(20_000)
        server.is_clean()


def test_a_client_whose_last_response_is_long_is_not_cut_off_while_it_reads(
    server: Running,
) -> None:
    last = get(b"/big?size=20000000", b"Connection: close\r\n")
    with server.connect(receive=4096) as wire:
        wire.send(get(b"/wait"))
        assert server.app.started.acquire(timeout=PATIENCE)
        wire.send(last)
        server.wait_for(lambda running: any(peer.waiting for peer in connections(running)))
        server.app.gate.set()
        server.wait_for(lambda running: any(peer.unsent for peer in connections(running)))
        server.check(0)
        server.check(0.9)
        assert [len(reply.body) for reply in wire.responses()][1:] == [20_000_000]


def test_the_rest_of_a_refused_body_is_read_for_a_while_only(tmp_path: Path) -> None:
    with running(tmp_path, linger_time=30, linger_idle=5) as server, server.connect() as wire:
        wire.send(post(b"x" * 10_000, b"X-Limit: 10\r\n")[:-1])
        assert wire.response().status == 413
        server.check(4)
        wire.send(b"more")
        server.check(6)
        server.is_clean()


def test_a_client_that_trickles_through_the_lingering_is_cut_off(tmp_path: Path) -> None:
    with running(tmp_path, linger_time=0.2, linger_idle=60) as server, server.connect() as wire:
        wire.send(post(b"x" * 10_000, b"X-Limit: 10\r\n")[:-1])
        assert wire.response().status == 413
        wire.trickle_until_closed(lambda: server.check(0))
        server.is_clean()


# -- disk ---------------------------------------------------------------------------------------


def test_a_full_disk_is_503_and_leaves_nothing(tmp_path: Path) -> None:
    full = tmp_path / "missing"
    with running(full) as server:
        replies = server.exchange(post(b"x" * PIECE) + get(b"/health"))
        assert [reply.error for reply in replies] == [(503, 1)]
        assert server.exchange(post(b"x" * 100))[0].status == 200
        server.is_clean()


def test_one_address_cannot_take_the_whole_disk(tmp_path: Path) -> None:
    with running(tmp_path, spooled_per_address=150_000) as server:
        with server.connect() as first, server.connect() as second:
            first.send(post(b"x" * PIECE)[:-1])
            server.wait_for(lambda running: running.spool.size > 90_000)
            second.send(post(b"x" * PIECE)[:-1])
            assert second.response().error == (503, 1)
            with server.connect("127.0.0.2") as other:
                assert other.send(post(b"x" * PIECE)).response().json["length"] == PIECE
            assert first.send(b"x").response().json["length"] == PIECE
        server.is_clean()


def test_many_bodies_in_memory_go_to_the_disk(tmp_path: Path) -> None:
    with running(tmp_path, bodies_memory=10_000) as server:
        wires = [server.connect().send(post(b"x" * 4000)[:-1]) for _ in range(10)]
        server.wait_for(lambda running: running.spool.size + running.spool.memory == 39_990)
        assert server.call(lambda: server.server.spool.memory) <= 10_000
        replies = [wire.send(b"x").response() for wire in wires]
        assert {reply.json["length"] for reply in replies} == {4000}
        for wire in wires:
            wire.close()
        server.is_clean()


# -- numbers ------------------------------------------------------------------------------------


def test_an_address_has_a_limited_number_of_connections(tmp_path: Path) -> None:
    with running(tmp_path, max_per_address=5) as server:
        wires = [server.connect() for _ in range(5)]
        server.wait_for(lambda running: len(running.connections) == 5)
        with server.connect() as refused:
            reply = refused.response()
            assert reply.error == (429, 100)
            assert reply.headers["retry-after"] == "1"
            assert refused.rest() == b""
        with server.connect("127.0.0.2") as other:
            assert other.send(get()).response().status == 200
        wires[0].close()
        server.wait_for(lambda running: len(running.connections) == 4)
        assert server.exchange(get())[0].status == 200
        for wire in wires:
            wire.close()
        server.is_clean()


def test_a_full_process_makes_room_for_new_clients(tmp_path: Path) -> None:
    with running(tmp_path, max_connections=50) as server:
        wires = [server.connect().send(b"G") for _ in range(120)]
        with server.connect("127.0.0.2") as other:
            assert other.send(get()).response().status == 200
        assert server.call(lambda: len(server.server.connections)) <= 50
        for wire in wires:
            wire.close()
        server.is_clean()


def test_health_and_ready_do_not_wait_for_slow_requests(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        # All threads that there may be, by several addresses.
        wires = [
            server.connect(f"127.0.0.{2 + number}").send(get(b"/wait")) for number in range(12)
        ]
        for _ in range(8):
            assert server.app.started.acquire(timeout=PATIENCE)
        with server.connect() as other:
            assert other.send(get(b"/health")).response().status == 200
            assert other.send(get(b"/ready")).response().status == 200
        server.app.gate.set()
        assert {wire.response().status for wire in wires} == {200}
        for wire in wires:
            wire.close()


def test_large_responses_are_refused_rather_than_cut_off(server: Running) -> None:
    with server.connect(receive=4096) as reader, server.connect() as other:
        reader.send(get(b"/big?size=20000000"))
        server.wait_for(lambda running: any(peer.unsent for peer in connections(running)))
        refused = other.send(get(b"/big?size=20000000")).response()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert other.send(get()).response().status == 200
        assert len(reader.response().body) == 20_000_000


def test_a_client_that_has_closed_its_side_gets_its_response_for_a_while(server: Running) -> None:
    with server.connect() as patient, server.connect() as gone:
        for wire in (patient, gone):
            wire.send(get(b"/wait")).end()
            assert server.app.started.acquire(timeout=PATIENCE)
        server.wait_for(
            lambda running: all(
                peer.reading is Reading.ENDED for peer in running.connections.snapshot()
            )
        )
        server.check(later=SMALL.half_closed - 2)
        assert len(server.server.connections) == 2
        server.check(later=SMALL.half_closed + 1)
        assert patient.rest() == gone.rest() == b""
        server.app.gate.set()
    server.is_clean()

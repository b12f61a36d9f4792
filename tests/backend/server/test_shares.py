"""Processes that accept from one socket share its connections."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.server.shares import Shares
from tests.backend.server.running import Running, running
from tests.polling import until

FEW, MANY = 12, 40


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as made:
        yield made


def test_a_process_with_more_than_another_one_has_a_large_share() -> None:
    shares = Shares(3)
    first, second = shares.of(4), shares.of(5)
    assert not first.is_large(100)  # no other process accepts
    second.note(10)
    assert [first.is_large(number) for number in (0, 10, 12, 13)] == [False, False, False, True]
    shares.of(6).note(2)
    assert first.is_large(4)
    second.leave()
    shares.of(6).leave()
    assert not first.is_large(100)


def test_nothing_is_left_to_a_process_that_is_silent() -> None:
    shares = Shares(2, silent=0.2)
    first, second = shares.of(0), shares.of(1)
    second.note(0)
    assert first.is_large(100)
    until(lambda: not first.is_large(100), 20)
    second.note(0)
    assert first.is_large(100)


def test_a_fork_sees_the_numbers_of_others() -> None:
    shares = Shares(2)
    child = os.fork()
    if child == 0:
        shares.of(1).note(7)
        os._exit(0)
    os.waitpid(child, 0)
    assert shares.of(0).is_large(9)
    assert not shares.of(0).is_large(8)


def test_connections_are_shared_equally(listener: socket.socket, tmp_path: Path) -> None:
    shares = Shares(2, wait=0.2)
    # Both before a server starts: a copy waits for connections, and so would the others then.
    copies = [listener.dup(), listener.dup()]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(tmp_path, listener=copy, share=shares.of(place)))
            for place, copy in enumerate(copies)
        ]
        until(lambda: all(shares.of(place).is_large(100) for place in range(2)), 20)
        for number in range(1, FEW + 1):
            stack.enter_context(socket.create_connection(listener.getsockname()))
            until(lambda number=number: sum(map(_open, servers)) == number, 20)
        assert min(map(_open, servers)) >= FEW // 3


def test_what_a_process_that_stands_still_does_not_take_others_do(
    listener: socket.socket, tmp_path: Path
) -> None:
    shares = Shares(2)
    shares.of(1).note(0)
    with ExitStack() as stack:
        server = stack.enter_context(running(tmp_path, listener=listener.dup(), share=shares.of(0)))
        clients = [
            stack.enter_context(socket.create_connection(listener.getsockname()))
            for _ in range(MANY)
        ]
        until(lambda: _open(server) == len(clients), 20)


def _open(server: Running) -> int:
    return server.call(lambda: len(server.server.connections))

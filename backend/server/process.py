"""One server process: event loop, listening sockets, an orderly end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence
from typing import Final

import uvloop

from backend.logs import get_logger
from backend.server.connection import Connection
from backend.server.core import Rules, Server
from backend.server.limits import Limits

_BACKLOG: Final = 4096
_GRACE: Final = 10.0
"""Seconds that requests get to finish when the process stops."""

log = get_logger("server")


def serve(rules: Rules, limits: Limits, listeners: Sequence[socket.socket], threads: int) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests that have begun."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(rules, limits, listeners, threads))


async def _serve(
    rules: Rules, limits: Limits, listeners: Sequence[socket.socket], threads: int
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve_until(stop, Server(loop, rules, limits, threads), listeners)


async def serve_until(
    stop: asyncio.Event, server: Server, listeners: Sequence[socket.socket]
) -> None:
    """Serve until ``stop`` is set, then finish the requests that have begun."""
    loop = server.loop
    serving = []
    for listener in listeners:
        listener.setblocking(False)
        make = loop.create_unix_server if listener.family == socket.AF_UNIX else loop.create_server
        serving.append(await make(lambda: Connection(server), sock=listener, backlog=_BACKLOG))
    await stop.wait()
    server.is_stopping = True
    for each in serving:
        each.close()
    for connection in server.connections.everyone():
        connection.shut_down()
    end = loop.time() + _GRACE
    while len(server.connections) and loop.time() < end:
        await asyncio.sleep(0.02)
    for connection in server.connections.everyone():
        connection.drop()
    while len(server.connections):  # the event loop tells them
        await asyncio.sleep(0)
    server.end()

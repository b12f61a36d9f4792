"""One server process: its event loop, its listening sockets and its shutdown."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

import uvloop

from backend.kernel.process import liveness
from backend.logs.setup import get_logger
from backend.server.acceptor import Acceptor
from backend.server.context import Rules, Server
from backend.server.limits import Limits
from backend.server.shares import ALONE, Share

_GRACE: Final = 10.0
"""Seconds that requests get to finish when the process stops."""

_LAST_REQUESTS: Final = 1.0
"""Seconds of it for which open connections are served one more request. A client that sends one to
a connection that is just being closed can't know whether it has run."""

_SWITCH_INTERVAL: Final = 0.002
"""Seconds until a busy thread releases the GIL. The event loop waits that long for each event, and
each forced switch costs throughput (see docs/decisions/processes.md)."""

_HEARTBEAT_INTERVAL: Final = 1.0  # seconds

log = get_logger("server")


def serve(
    rules: Rules,
    limits: Limits,
    listeners: Sequence[socket.socket],
    threads: int,
    share: Share = ALONE,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests that have started."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(rules, limits, listeners, threads, share))


async def _serve(
    rules: Rules,
    limits: Limits,
    listeners: Sequence[socket.socket],
    threads: int,
    share: Share,
) -> None:
    loop = asyncio.get_running_loop()
    server = Server(loop, rules, limits, threads, share)
    _send_heartbeats(server)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve_until(stop, server, listeners)


def _send_heartbeats(server: Server) -> None:
    """Send heartbeats for as long as the process serves: an event loop alone answers nothing."""
    if server.is_stalled():
        log.error("no thread takes requests", waiting=server.requests.load[0])
        liveness.hang()
    else:
        liveness.leave()
    server.loop.call_later(_HEARTBEAT_INTERVAL, _send_heartbeats, server)


async def serve_until(
    stop: asyncio.Event,
    server: Server,
    listeners: Sequence[socket.socket],
    last_requests: float = _LAST_REQUESTS,
) -> None:
    """Serve until ``stop`` is set, then finish the requests that have started, and for
    ``last_requests`` seconds one more of each open connection."""
    loop = server.loop
    acceptors = [Acceptor(server, listener) for listener in listeners]
    for acceptor in acceptors:
        acceptor.start()
    await stop.wait()
    server.is_stopping = True
    server.share.leave()
    for acceptor in acceptors:
        acceptor.stop()
    since = loop.time()
    is_last = False

    def is_open() -> bool:
        return len(server.connections) > 0 or any(each.is_connecting for each in acceptors)

    while is_open() and loop.time() < since + _GRACE:
        if not is_last and loop.time() > since + last_requests:
            is_last = True
            for connection in server.connections.snapshot():
                connection.shut_down()
        await asyncio.sleep(0.02)
    for connection in server.connections.snapshot():
        connection.drop()
    while len(server.connections):  # until the event loop has called connection_lost
        await asyncio.sleep(0)
    server.end()

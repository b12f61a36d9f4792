"""New connections from a listening socket, many at a time.

asyncio's server accepts one connection per iteration of the event loop. While threads are busy, an
iteration takes milliseconds, and a flood of short connections would fill the socket's backlog. The
kernel then drops packets of new clients, which send them again a second later.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from backend.kernel.networks import client_network
from backend.logs.setup import get_logger
from backend.server.connection.protocol import Connection
from backend.server.context import Server
from backend.server.refusals import TooManyAtOnce
from backend.server.responses.heads import error_response, framed

_BATCH: Final = 64
"""Connections that are accepted in one iteration of the event loop, in a flood.

The first iteration accepts one, each further one twice as many while more are waiting, and none
that another process should have (``shares``).
"""
_PAUSE: Final = 0.1
"""Seconds until the next attempt when the process has no file descriptors left."""

log = get_logger("server")


class Acceptor:
    """Accept connections on one listening socket. Call it in the event loop."""

    def __init__(self, server: Server, listener: socket.socket) -> None:
        self._server = server
        self._share = server.share
        self._has_waited = False  # for other processes to accept what is there
        self._is_behind = False  # has waited since nothing was there
        self._loop = server.loop
        self._listener = listener
        self._is_stopped = False
        self._batch = 1
        self._tasks: set[asyncio.Task[None]] = set()
        listener.setblocking(False)

    @property
    def is_connecting(self) -> bool:
        """Whether accepted connections aren't counted yet."""
        return bool(self._tasks)

    def start(self) -> None:
        """Start accepting."""
        if not self._is_stopped:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def stop(self) -> None:
        """Stop accepting, and close the socket."""
        self._is_stopped = True
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()

    def _accept(self) -> None:
        for _ in range(self._batch):
            number = len(self._server.connections) + len(self._tasks)
            self._share.note(number)
            if not self._has_waited and self._share.is_large(number):
                if not self._is_behind:
                    self._batch = 1
                self._has_waited = self._is_behind = True
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(self._share.wait, self.start)
                return
            try:
                connection, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                self._batch = 1
                self._has_waited = self._is_behind = False
                return
            except OSError as error:
                log.error("connections can't be accepted", exc_info=error)
                self._loop.remove_reader(self._listener.fileno())
                self._loop.call_later(_PAUSE, self.start)
                return
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                connection.close()  # reset by the client: nothing is read, and no request runs
                continue
            address = peer[0] if isinstance(peer, tuple) else ""
            network = "" if self._server.is_proxy(address) else client_network(address)
            if not self._server.connections.may_add(network):
                _refuse(connection)
                continue
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._batch = min(2 * self._batch, _BATCH)
        self._has_waited = False

    async def _connect(self, connection: socket.socket) -> None:
        try:
            # uvloop makes the socket non-blocking and sets TCP_NODELAY. Here, each system call
            # would have to wait for the GIL again.
            await self._loop.connect_accepted_socket(lambda: Connection(self._server), connection)
        except OSError:  # the client has disconnected
            connection.close()


def _refuse(connection: socket.socket) -> None:
    """Answer and close at once: lingering connections would use up file descriptors in a flood."""
    connection.setblocking(False)
    response = error_response(TooManyAtOnce())
    head = framed(response, "GET", "1.1", keep_alive=False).head
    with connection:
        try:
            connection.send(head + response.body)
        except OSError:
            return

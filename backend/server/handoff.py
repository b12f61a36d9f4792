"""WebSocket handshakes: from the process that accepted the connection to the realtime process.

The connection itself is passed, as a file descriptor over a Unix socket (``SCM_RIGHTS``), with the
bytes that were read from it. From then on the client talks to the realtime process directly, and
frames cost nothing here.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

from backend.logs.setup import get_logger

_PAUSE: Final = 0.1
MOST_BYTES: Final = 128 * 1024
"""Of the handshake, and of the bytes that arrived with it."""
_TIMEOUT: Final = 5.0
"""Seconds that a web process has to send the message."""

log = get_logger("server")


def pass_on(path: str, descriptor: int, data: bytes) -> bool:
    """Give a connection to the process that listens on ``path``; False if it can't be reached.

    Doesn't wait. The descriptor stays open here.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.setblocking(False)
        try:
            channel.connect(path)
            header = len(data).to_bytes(4, "big")
            sent = socket.send_fds(channel, [header + data], [descriptor])
        except OSError:
            return False
    return sent == len(data) + 4


class Receiver:
    """Receive connections on a listening Unix socket. Call it in the event loop."""

    def __init__(
        self, listener: socket.socket, take: Callable[[socket.socket, bytes], None]
    ) -> None:
        self._listener = listener
        self._take = take
        self._tasks: set[asyncio.Task[None]] = set()
        listener.setblocking(False)

    def start(self) -> None:
        """Start receiving."""
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def stop(self) -> None:
        """Stop receiving, and close the socket."""
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()

    def _accept(self) -> None:
        for _ in range(64):
            try:
                channel, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.error("a connection can't be taken over", exc_info=error)
                self._pause()
                return
            task = asyncio.get_running_loop().create_task(self._receive(channel))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _pause(self) -> None:
        """Accept nothing for a moment: the process has no file descriptors left."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener.fileno())
        loop.call_later(_PAUSE, self._resume)

    def _resume(self) -> None:
        if self._listener.fileno() >= 0:
            self.start()

    async def _receive(self, channel: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            channel.setblocking(False)
            async with asyncio.timeout(_TIMEOUT):
                data = await _read(channel, descriptors)
            if not descriptors:
                return
            connection = socket.socket(fileno=descriptors.pop(0))
            self._take(connection, data)
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("a connection can't be taken over", error=str(error))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            channel.close()


async def _read(channel: socket.socket, descriptors: list[int]) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        try:
            piece, passed, _, _ = socket.recv_fds(channel, 65_536, 4)
        except BlockingIOError:
            readable = loop.create_future()
            loop.add_reader(channel.fileno(), _set, readable)
            try:
                await readable
            finally:
                loop.remove_reader(channel.fileno())
            continue
        descriptors += passed
        if not piece:
            raise ValueError("the message is incomplete")
        data += piece
        if len(data) > 4 + MOST_BYTES:
            raise ValueError("the message is too long")
    return data[4:]


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

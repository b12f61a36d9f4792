"""uvicorn's server, which also takes connections that a web process has accepted."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import uvicorn

from backend.kernel.process import liveness
from backend.logs.setup import get_logger
from backend.server.handoff import Receiver

log = get_logger("sockets")


class SocketServer(uvicorn.Server):
    """``handoff`` is a Unix socket that listens for handshakes passed on by web processes."""

    def __init__(self, config: uvicorn.Config, handoff: socket.socket | None) -> None:
        super().__init__(config)
        self._handoff = handoff
        self._receiver: Receiver | None = None
        self._takeovers: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._handoff is not None:
            self._receiver = Receiver(self._handoff, self._take)
            self._receiver.start()

    async def on_tick(self, counter: int) -> bool:
        liveness.leave()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._receiver is not None:
            self._receiver.stop()
        await super().shutdown(sockets)

    def _take(self, connection: socket.socket, data: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._take_over(connection, data))
        self._takeovers.add(task)
        task.add_done_callback(self._takeovers.discard)

    async def _take_over(self, connection: socket.socket, data: bytes) -> None:
        """Serve a connection that another process accepted; ``data`` are the bytes it has read."""
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._make_protocol(data), connection
            )
        except OSError as error:
            log.warning("a connection can't be taken over", error=str(error))
            connection.close()

    def _make_protocol(self, data: bytes) -> asyncio.Protocol:
        """uvicorn's protocol, which receives ``data`` before anything that the client sends now."""
        make = cast(Any, self.config.http_protocol_class)
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        connection_made = protocol.connection_made

        def connection_made_with_data(transport: asyncio.BaseTransport) -> None:
            connection_made(transport)
            _feed(protocol, cast(asyncio.Transport, transport), data)

        protocol.connection_made = connection_made_with_data  # type: ignore[method-assign]
        return protocol


def _feed(protocol: asyncio.Protocol, transport: asyncio.Transport, data: bytes) -> None:
    # uvicorn's handshake protocol loses data that follows the handshake in the same chunk.
    head, end, frames = data.partition(b"\r\n\r\n")
    try:
        protocol.data_received(head + end)
        if frames and not transport.is_closing():
            cast(asyncio.Protocol, transport.get_protocol()).data_received(frames)
    except Exception:
        # Before it has answered the handshake, uvicorn asserts where it should close.
        log.warning("a client sent no frames after its handshake")
        transport.abort()

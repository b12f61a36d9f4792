"""HTTP/1.1 over raw sockets, for clients that don't keep to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bench.attack.scene import Scene, require_loopback

_CONNECT = 5.0
_LARGEST_LINE = 1 << 20


class Closed(Exception):
    """The server closed the connection before a whole response had come."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response that has been read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The decoded body, None if it isn't JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def is_error(self) -> bool:
        """Whether the body is an error of the API."""
        value = self.json
        return isinstance(value, dict) and {"code", "error"} <= value.keys()

    @property
    def is_last(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


def head(
    method: str, path: str, headers: Mapping[str, str] | None = None, *, end: bool = True
) -> bytes:
    """A request line and its headers; without ``end``, the empty line after them is left out."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + ("\r\n\r\n" if end else "\r\n")).encode()


def request(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None
) -> bytes:
    """A whole request; a body that isn't bytes is sent as JSON."""
    if body is None:
        return head(method, path, headers)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(raw))}
    return head(method, path, given) + raw


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; without data, the last one."""
    return b"%x\r\n%s\r\n" % (len(data), data)


async def connect_and_reset(scene: Scene, source: str, data: bytes) -> None:
    """Connect from this loopback address, send data, and reset the connection at once."""
    require_loopback(scene.host)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.bind((source, 0))
        async with asyncio.timeout(_CONNECT):
            await asyncio.get_running_loop().sock_connect(connection, (scene.host, scene.port))
        connection.send(data)


class Wire:
    """One TCP connection to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, scene: Scene, source: str, receive_buffer: int | None = None) -> Self:
        """Connect from this loopback address, with a receive buffer of so many bytes."""
        require_loopback(scene.host)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            if receive_buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            connection.bind((source, 0))
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(_CONNECT):
                await loop.sock_connect(connection, (scene.host, scene.port))
            # A small limit makes the stream stop reading, as a slow reader does.
            limit = receive_buffer or _LARGEST_LINE
            reader, writer = await asyncio.open_connection(sock=connection, limit=limit)
        except BaseException:
            connection.close()
            raise
        return cls(reader, writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Close without waiting for what hasn't been sent."""
        with contextlib.suppress(Exception):
            self.writer.transport.abort()

    async def send(self, data: bytes) -> None:
        """Write, waiting while the server doesn't read."""
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> Response:
        """The next response; raises ``Closed``. Responses of 100 Continue are passed over."""
        try:
            while True:
                response = await self._receive()
                if response.status != 100:
                    return response
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, IndexError) as error:
            raise Closed(str(error)) from None

    async def _receive(self) -> Response:
        first = await self.reader.readuntil(b"\r\n")
        status = int(first.split(b" ", 2)[1])
        headers: dict[str, str] = {}
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readuntil(b"\r\n")
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Response(status, headers, body)

    async def exchange(self, data: bytes, patience: float = 60.0) -> Response:
        """Send a request and return its response.

        A response that comes while the body is still being sent is returned at once, and so is one
        that the server sent before it closed the connection.
        """
        async with asyncio.timeout(patience):
            sending = asyncio.ensure_future(self.send(data))
            try:
                return await self.receive()
            finally:
                sending.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await sending

"""Clients that send slowly, beside the load that is measured.

Each sends the head of a request and then its body, a byte at a time, over and over, on one
connection. A server that holds a thread or a process for such a client answers the others later.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

_PAUSE: Final = 0.05
"""Seconds between two bytes: 20 bytes/s, or a body in ten seconds."""
_BODY: Final = b'{"text":"' + b"x" * 190 + b'"}'
_RETRY: Final = 0.2  # seconds


class SlowClients:
    """So many slow clients of a server, while the block runs."""

    def __init__(self, port: int, path: str, headers: Mapping[str, str], number: int) -> None:
        fields = {
            "Host": f"127.0.0.1:{port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(_BODY)),
            **headers,
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self._head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self._port, self._number = port, number
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="slow clients", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._client()) for _ in range(self._number)]
            while not self._over.is_set():
                await asyncio.sleep(_PAUSE)
            for task in tasks:
                task.cancel()

    async def _client(self) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._connection()
            await asyncio.sleep(_RETRY)  # the server has closed it: too slow

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        with contextlib.closing(writer):
            while True:
                writer.write(self._head)
                for byte in _BODY:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(_PAUSE)
                # Until the object's id, the last of what is needed of the response.
                await reader.readuntil(b"}")


@contextlib.contextmanager
def slow_clients(number: int, *servers: tuple[int, str, Mapping[str, str]]) -> Iterator[None]:
    """Slow clients of each server (port, path of a create, headers) while the block runs."""
    with contextlib.ExitStack() as stack:
        for port, path, headers in servers:
            stack.enter_context(SlowClients(port, path, headers, number))
        yield

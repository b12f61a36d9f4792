"""The send queue of a socket under servers without ``realtime.sockets.wire``, as in tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from backend.kernel.texts.encoding import encode_text

_LOW_WATER = 65_536


class AsgiQueue:
    """A queue, with a task while it isn't empty."""

    def __init__(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self._send = send
        self._queue: deque[dict[str, Any]] = deque()
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._drained = asyncio.Event()
        self._drained.set()

    def send_text(self, payload: bytes) -> int:
        """Send a text message; return the number of queued bytes."""
        if self._is_closed:
            return 0
        self._bytes += len(payload)
        if self._bytes > _LOW_WATER:
            self._drained.clear()
        self._put({"type": "websocket.send", "text": payload.decode()})
        return self._bytes

    def queued_bytes(self) -> int:
        """Return the number of bytes queued for the client."""
        return self._bytes

    async def drain(self) -> None:
        """Wait until the queue is nearly empty, or the client disconnects."""
        await self._drained.wait()

    def close(self, code: int, reason: str = "") -> None:
        """Close after the queued messages."""
        if not self._is_closed:
            self._is_closed = True
            self._put({"type": "websocket.close", "code": code, "reason": reason})

    async def stop_sending(self) -> None:
        """Stop sending: the connection is closed."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _put(self, message: dict[str, Any]) -> None:
        self._queue.append(message)
        if self._task is None:
            self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._queue:
                message = self._queue.popleft()
                await self._send(message)
                self._bytes -= len(encode_text(message.get("text", "")))
                if self._bytes <= _LOW_WATER:
                    self._drained.set()
        except Exception:  # the client is gone; servers raise different exceptions
            self._is_closed = True
            self._queue.clear()
        finally:
            self._task = None
            self._drained.set()

"""Clients of the event channel that come back with their cursors, many in one event loop."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidHandshake, WebSocketException

from tests.realtime.channel.oracle import token_of

PATIENCE = 120.0  # seconds, for a machine that is busy with other things
_PAUSE = 0.1  # until it tries again, as clients do

Connect = Callable[[str], Awaitable[ClientConnection]]


class Listener:
    """One client. ``frames`` are the events that it received, over all of its connections."""

    def __init__(self, connect: Connect, query: str, since: str = "now") -> None:
        self._connect = connect
        self.query = query
        self.cursor = since
        self.frames: list[dict[str, Any]] = []
        self.hellos = 0
        self.resets: list[str] = []
        self.connection: ClientConnection | None = None

    @property
    def told(self) -> list[int]:
        """The tokens that it received, those of what was removed with a minus."""
        return [token_of(frame) for frame in self.frames]

    async def listen(self) -> None:
        """Connect, read, and come back whenever the connection ends. Until cancelled."""
        while True:
            with suppress(OSError, WebSocketException, InvalidHandshake, TimeoutError):
                await self._once()
            self.connection = None
            await asyncio.sleep(_PAUSE * random.uniform(0.5, 1.5))

    async def _once(self) -> None:
        parts = [part for part in (self.query, f"since={self.cursor}") if part]
        self.connection = await self._connect("/ws?" + "&".join(parts))
        async with self.connection as connection:
            async for text in connection:
                self._take(json.loads(text))

    def _take(self, message: dict[str, Any]) -> None:
        if message["event"] == "hello" and "networkId" not in message:
            self.hellos += 1
            if self.cursor in ("now", "0"):
                self.cursor = message["id"]
            return
        self.cursor = message["id"]
        if message["event"] == "reset" and "networkId" not in message:
            self.resets.append(message["data"]["reason"])
            return
        self.frames.append(message)


async def until(condition: Callable[[], Any], patience: float = PATIENCE) -> None:
    """Return when it is true."""
    async with asyncio.timeout(patience):
        while not condition():
            await asyncio.sleep(0.05)


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

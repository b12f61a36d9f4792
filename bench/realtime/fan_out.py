"""The application that ASGI servers are compared with: one frame, many times a second, to all.

A Channels consumer and nothing of ours: what differs between two runs is the server.
``WRITER`` chooses how a consumer sends: ``task`` (one that waits for the queue, a connection),
``spawned`` (one that lives while there is something to send) or ``wire`` (see
``realtime.sockets.wire``). The sending begins when ``CLIENTS`` are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from typing import Any

from channels.consumer import AsyncConsumer

from realtime.sockets.wire import EXTENSION

CLIENTS = int(os.environ.get("CLIENTS", "1"))
RATE = int(os.environ.get("RATE", "50"))
WRITER = os.environ.get("WRITER", "spawned")
QUEUE = 1_000
PADDING = "x" * (120 - len('{"t":"0123456789012345","data":""}'))


class Listening(AsyncConsumer):
    """A client that is sent everything."""

    clients: set[Listening] = set()
    overflows = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        self.send_message = send
        self.wire = scope.get("extensions", {}).get(EXTENSION)
        self.queue: deque[str] = deque()
        self.news = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        if WRITER == "task":
            self.task = asyncio.create_task(self.write_for_ever())
        self.clients.add(self)
        try:
            while (await receive())["type"] != "websocket.disconnect":
                pass
        finally:
            self.clients.discard(self)
            if self.task:
                self.task.cancel()

    def enqueue(self, frame: str) -> None:
        if len(self.queue) >= QUEUE:
            Listening.overflows += 1
            self.clients.discard(self)
            return
        self.queue.append(frame)
        if WRITER == "task":
            self.news.set()
        elif self.task is None:
            self.task = asyncio.create_task(self.write_what_is_there())

    async def write_for_ever(self) -> None:
        while True:
            await self.news.wait()
            self.news.clear()
            await self.write()

    async def write_what_is_there(self) -> None:
        try:
            await self.write()
        finally:
            self.task = None

    async def write(self) -> None:
        with contextlib.suppress(Exception):  # the client is gone; each server has its own word
            while self.queue:
                await self.send_message({"type": "websocket.send", "text": self.queue.popleft()})


async def pump() -> None:
    """Send to all clients, RATE times a second. Late frames are sent at once."""
    while len(Listening.clients) < CLIENTS:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    due = time.monotonic()
    while True:
        due += 1 / RATE
        await asyncio.sleep(max(0, due - time.monotonic()))
        now = f"{time.monotonic_ns() // 1000:016d}"
        frame = f'{{"t":"{now}","data":"{PADDING}"}}'
        if WRITER == "wire":
            payload = frame.encode()
            for listening in Listening.clients:
                listening.wire.send_text(payload)
            continue
        for listening in list(Listening.clients):
            listening.enqueue(frame)


_pump: asyncio.Task[None] | None = None


async def application(scope: Any, receive: Any, send: Any) -> None:
    """ASGI. ``/overflows`` over HTTP says how many clients were dropped."""
    global _pump
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "http":
        body = b"%d %d" % (len(Listening.clients), Listening.overflows)
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    if _pump is None:
        _pump = asyncio.create_task(pump())
    await Listening()(scope, receive, send)

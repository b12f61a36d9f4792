"""Sockets in the event loop of a test, with a realtime process that ends with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from channels.testing import WebsocketCommunicator

from realtime.process.process import Process
from realtime.sockets.connections import Socket

PATIENCE = 30.0  # seconds, for a machine that is busy with other things
T = TypeVar("T")


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """The outcome of a scenario, in an event loop and a realtime process of its own."""

    async def whole() -> T:
        try:
            async with asyncio.timeout(PATIENCE):
                return await scenario
        finally:
            await Process.stop_current()

    return asyncio.run(whole())


async def eventually(condition: Callable[[], T]) -> T:
    """The condition's value once it is true."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, "it doesn't come true"
        await asyncio.sleep(0.005)
    return value


class Echo(Socket):
    """Echoes messages; ``fail`` lets it fail, ``junk`` counts as invalid, ``bye`` closes."""

    kind = "echo"
    opened: list[Echo] = []
    closed: list[Echo] = []

    async def on_open(self) -> None:
        Echo.opened.append(self)

    async def on_message(self, text: str) -> None:
        if text == "fail":
            raise RuntimeError("requested failure")
        if text == "junk":
            self.count_junk()
        elif text == "bye":
            self.enqueue("the last")
            self.close_with(4001, "as you said")
            self.enqueue("after the last")
        else:
            self.enqueue(text)

    async def on_close(self) -> None:
        Echo.closed.append(self)


class Client(WebsocketCommunicator):
    """A client of an ``Echo``, with what a proxy and a browser say of it."""

    def __init__(
        self,
        path: str = "/echo",
        *,
        kind: type[Socket] = Echo,
        peer: tuple[str, int] | None = None,
        **headers: str,
    ) -> None:
        source = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        super().__init__(kind.as_asgi(), path, headers=source)
        self.scope["client"] = peer
        self.scope["extensions"] = {"websocket.http.response": {}}

    async def open(self) -> Client:
        """Connect; assert that the handshake is accepted."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(PATIENCE)
        assert answer["type"] == "websocket.accept", answer
        return self

    async def rejection(self) -> tuple[int, bytes]:
        """Connect; assert that it is rejected, and return status and body."""
        await self.send_input({"type": "websocket.connect"})
        begin = await self.receive_output(PATIENCE)
        assert begin["type"] == "websocket.http.response.start", begin
        body = await self.receive_output(PATIENCE)
        return begin["status"], body["body"]

    async def send_messages(self, *texts: str | bytes) -> None:
        for text in texts:
            kind = "text" if isinstance(text, str) else "bytes"
            await self.send_input({"type": "websocket.receive", kind: text})

    async def next_text(self) -> str:
        """Return the next text message."""
        message = await self.receive_output(PATIENCE)
        assert message["type"] == "websocket.send", message
        return str(message["text"])

    async def close_code(self) -> int:
        """Return the code with which the server closes the connection."""
        message = await self.receive_output(PATIENCE)
        assert message["type"] == "websocket.close", message
        await self.leave(message["code"])
        return int(message["code"])

    async def leave(self, code: int = 1000) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": code})
        await self.wait(PATIENCE)

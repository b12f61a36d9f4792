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
    """Echoes messages; ``fail`` lets it fail, ``junk`` makes no sense, ``bye`` closes."""

    kind = "echo"
    came: list[Echo] = []
    went: list[Echo] = []

    async def opened(self) -> None:
        Echo.came.append(self)

    async def received(self, text: str) -> None:
        if text == "fail":
            raise RuntimeError("as it was told")
        if text == "junk":
            self.count_junk()
        elif text == "bye":
            self.enqueue("the last")
            self.close_with(4001, "as you said")
            self.enqueue("after the last")
        else:
            self.enqueue(text)

    async def closed(self) -> None:
        Echo.went.append(self)


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
        """Connect; the client is let in."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(PATIENCE)
        assert answer["type"] == "websocket.accept", answer
        return self

    async def refused(self) -> tuple[int, bytes]:
        """Connect; the client is not let in. Status and body of the answer."""
        await self.send_input({"type": "websocket.connect"})
        begin = await self.receive_output(PATIENCE)
        assert begin["type"] == "websocket.http.response.start", begin
        body = await self.receive_output(PATIENCE)
        return begin["status"], body["body"]

    async def say(self, *texts: str | bytes) -> None:
        for text in texts:
            kind = "text" if isinstance(text, str) else "bytes"
            await self.send_input({"type": "websocket.receive", kind: text})

    async def heard(self) -> str:
        """The next text."""
        message = await self.receive_output(PATIENCE)
        assert message["type"] == "websocket.send", message
        return str(message["text"])

    async def closed(self) -> int:
        """The code by which the server closes next."""
        message = await self.receive_output(PATIENCE)
        assert message["type"] == "websocket.close", message
        await self.leave(message["code"])
        return int(message["code"])

    async def leave(self, code: int = 1000) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": code})
        await self.wait(PATIENCE)

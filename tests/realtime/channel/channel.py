"""A realtime process without a server: its application in an event loop of its own, and clients."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from channels.testing import WebsocketCommunicator

from realtime.channel.feeds import Feed
from realtime.channel.pump import Pump
from realtime.core.event_queries import LATEST, Finality
from realtime.process.process import Process
from tests.realtime.channel.oracle import token_of

PATIENCE = 60  # seconds, for a machine that is busy with other things
T = TypeVar("T")


class House:
    """The process, and the loop that it runs in."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="house", daemon=True)
        self._thread.start()
        self._clients: list[Client] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the process's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def connect(self, query: str = "", path: str = "/ws") -> Client:
        """A client that is connected."""
        # The process itself would wait ten seconds for its first look at the outbox, which are few
        # on a machine that is busy with other things.
        self.run(self._begun())
        client = Client(self, f"{path}?{query}" if query else path)
        connected, code = client.opened
        assert connected, code
        self._clients.append(client)
        return client

    def refused(self, query: str) -> int | None:
        """The code by which a handshake is refused."""
        connected, code = Client(self, f"/ws?{query}").opened
        assert not connected
        return code

    async def _begun(self) -> None:
        await Process.current().part(Pump).started()

    async def _pump(self) -> Pump:
        return Process.current().part(Pump)

    @property
    def pump(self) -> Pump:
        return self.run(self._pump())

    def feed(self, finality: Finality = LATEST) -> Feed:
        return self.run(self.pump.feed(finality))

    def look(self) -> None:
        """Send everything that is committed."""
        self.run(self.pump.poll())

    def stop(self) -> None:
        for client in self._clients:
            client.leave()
        self.run(Process.stop_current())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class Client:
    """One connection."""

    def __init__(self, house: House, path: str) -> None:
        self.house = house
        self.cursor: str | None = None
        self.opened: tuple[bool, int | None] = house.run(self._open(path))

    async def _open(self, path: str) -> tuple[bool, int | None]:
        from backend.asgi import application

        self._communicator = WebsocketCommunicator(application, path)
        return await self._communicator.connect(timeout=PATIENCE)

    def next(self) -> dict[str, Any]:
        """The next message."""
        text = self.house.run(self._communicator.receive_from(timeout=PATIENCE))
        document: dict[str, Any] = json.loads(text)
        self.cursor = document.get("id", self.cursor)
        return document

    def tokens(self, count: int) -> list[int]:
        """The tokens of so many messages, those of what was removed with a minus; and no more."""
        results = [token_of(self.next()) for _ in range(count)]
        self.is_told_nothing()
        return results

    def has_more(self) -> bool:
        """Whether something comes, of what was committed until now."""
        self.house.look()
        nothing = self._communicator.receive_nothing(timeout=0.05, interval=0.005)
        return not self.house.run(nothing)

    def is_told_nothing(self) -> None:
        """Nothing more comes, of what was committed until now."""
        self.house.look()
        assert self.house.run(self._communicator.receive_nothing(timeout=0.01, interval=0.005))

    def say(self, text: str) -> None:
        self.house.run(self._communicator.send_to(text_data=text))

    def leave(self) -> None:
        """Close it; as often as one likes."""
        if not self._communicator.future.done():
            self.house.run(self._communicator.disconnect(timeout=PATIENCE))

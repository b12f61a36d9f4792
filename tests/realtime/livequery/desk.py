"""Live queries of one process without a server: the engine and its sockets in a loop of their own.

What clients are sent is kept here. That it travels over real sockets is shown elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from realtime.livequery.consumer import LiveQuerySocket
from realtime.livequery.engine import LiveQueries
from realtime.process.notifications import Woken
from realtime.sockets.connections import Socket

APPLICATION = {"applicationId": "test-app"}
CLIENT_KEYS = {**APPLICATION, "javascriptKey": "test-javascript-key"}
MASTER_KEYS = {**APPLICATION, "masterKey": "test-master-key"}
READER_KEYS = {**APPLICATION, "masterKey": "test-read-only-key"}
PATIENCE = 60  # seconds, for a machine that is busy with other things


class _Listener:
    """It gets no notifications; waiting for an event wakes the engine."""

    def __init__(self) -> None:
        self.woken: Woken = lambda payload: None

    def subscribe(self, channel: str, woken: Woken) -> Callable[[], None]:
        self.woken = woken
        return lambda: None


class _Process:
    """As much of a realtime process as live queries need."""

    def __init__(self) -> None:
        self.listener = _Listener()


class Desk:
    """An engine that runs, and the clients who are connected to it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="desk", daemon=True)
        self._thread.start()
        self._process = _Process()
        self._task: asyncio.Task[None]
        self.run(self._begin())

    async def _begin(self) -> None:
        self.engine = LiveQueries(self._process)  # type: ignore[arg-type]
        self._task = asyncio.create_task(self.engine.run())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something in the engine's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def wake(self) -> None:
        """As a notification of PostgreSQL does."""
        self._loop.call_soon_threadsafe(lambda: self._process.listener.woken(None))

    @property
    def status(self) -> dict[str, Any]:
        """The engine's figures."""

        async def asked() -> dict[str, Any]:
            return self.engine.status()

        figures: dict[str, Any] = self.run(asked())
        return figures

    def stranger(self) -> Caller:
        """A connection without a connect message."""
        return Caller(self)

    def connect(self, token: str | None = None, **keys: str) -> Caller:
        """A client who is connected."""
        caller = Caller(self)
        session = {} if token is None else {"sessionToken": token}
        caller.say({"op": "connect", **(keys or CLIENT_KEYS), **session})
        caller.client_id = caller.next("connected")["clientId"]
        return caller

    def begin_again(self) -> None:
        """As a process does with a part that has failed."""

        async def begun() -> None:
            await self._stopped()
            self._task = asyncio.create_task(self.engine.run())

        self.run(begun())

    async def _stopped(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def stop(self) -> None:
        """End the engine, and give up its connections."""
        self.run(self._stopped())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class _KeptSocket(LiveQuerySocket):
    """A socket whose frames are kept."""

    def __init__(self, engine: LiveQueries) -> None:
        Socket.__init__(self)
        self.address, self.query, self.headers = "127.0.0.1", {}, {"user-agent": "desk"}
        self.is_open = True
        self.frames: queue.Queue[dict[str, Any]] = queue.Queue()
        self.closed_with: int | None = None
        self.junk_count = 0
        self._engine = engine

    def count_junk(self) -> None:
        self.junk_count += 1

    def enqueue(self, frame: str | bytes) -> None:
        if self.closed_with is None:
            self.frames.put(json.loads(frame))

    def close_with(self, code: int, reason: str = "") -> None:
        self.closed_with = self.closed_with or code


class Caller:
    """A client of live queries."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.client_id = ""
        self.socket: _KeptSocket = desk.run(self._made())

    async def _made(self) -> _KeptSocket:
        return _KeptSocket(self.desk.engine)

    def say(self, message: Any) -> None:
        """Send a message; its answer is there when this returns."""
        text = message if isinstance(message, str) else json.dumps(message)
        self.desk.run(self.socket.received(text))

    def next(self, op: str | None = None, request_id: int | None = None) -> dict[str, Any]:
        """The next message, which has to be of this kind and about this subscription."""
        waited = 0.0
        while True:
            try:
                message = self.socket.frames.get(timeout=0.02)
                break
            except queue.Empty:
                waited += 0.02
                assert waited < PATIENCE, f"nothing was sent instead of {op}"
                self.desk.wake()
        if op is not None:
            assert message["op"] == op, message
        if request_id is not None:
            assert message["requestId"] == request_id, message
        return message

    def ask(
        self,
        request_id: int,
        class_name: str,
        where: Any = None,
        op: str = "subscribe",
        **more: Any,
    ) -> dict[str, Any]:
        """Ask to subscribe; the answer."""
        token = {"sessionToken": more.pop("token")} if "token" in more else {}
        query = {"className": class_name, "where": where or {}, **more}
        self.say({"op": op, "requestId": request_id, "query": query, **token})
        return self.next(request_id=request_id)

    def subscribe(self, request_id: int, class_name: str, where: Any = None, **more: Any) -> None:
        """Subscribe, which has to succeed."""
        answer = self.ask(request_id, class_name, where, **more)
        assert answer["op"] == "subscribed", answer

    def refused(self, request_id: int, class_name: str, where: Any = None, **more: Any) -> int:
        """Ask for what is refused; the code."""
        answer = self.ask(request_id, class_name, where, **more)
        assert answer["op"] == "error", answer
        assert answer["reconnect"] is False
        code: int = answer["code"]
        return code

    def told(self, count: int) -> list[tuple[str, int, str]]:
        """The next events: what happened, to which subscription, to which object."""
        events = [self.next() for _ in range(count)]
        return [(event["op"], event["requestId"], event["object"]["objectId"]) for event in events]

    def leave(self) -> None:
        """Close the connection."""
        self.socket.is_open = False
        self.desk.run(self.socket.closed())

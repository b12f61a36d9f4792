"""Clients of live queries on real sockets of a realtime process that runs beside the test.

The process is an event loop in a thread of its own, on the application as it is served. What the
test does over REST is committed, and reaches the sockets as it would in a deployment.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from channels.testing import WebsocketCommunicator

from tests.people import User

_PATIENCE = 60.0  # seconds, for a machine that is busy with other things
KEYS = {"applicationId": "test-app", "restAPIKey": "test-rest-key"}
MASTER_KEYS = {"applicationId": "test-app", "masterKey": "test-master-key"}
READER_KEYS = {"applicationId": "test-app", "masterKey": "test-read-only-key"}

_T = TypeVar("_T")


class Realtime:
    """The realtime process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open: list[WebsocketCommunicator] = []

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in its event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    def connect(self, address: str = "127.0.0.1", **connect: Any) -> Subscriber:
        """A socket on which this was the first message. Its answer is the first frame."""
        from backend.asgi import application

        communicator = WebsocketCommunicator(application, "/livequery")
        communicator.scope["client"] = (address, 40_000)
        is_accepted, _ = self.run(communicator.connect(_PATIENCE))
        assert is_accepted
        self._open.append(communicator)
        subscriber = Subscriber(self, communicator)
        subscriber.say(op="connect", **connect)
        return subscriber

    def subscriber(self, user: User | None = None, **connect: Any) -> Subscriber:
        """A client that is connected: with the master key, or with a user's session, or without."""
        session = {} if user is None else {"sessionToken": user.token}
        subscriber = self.connect(**{**KEYS, **session, **connect})
        assert subscriber.next()["op"] == "connected"
        return subscriber

    def close(self, item: WebsocketCommunicator) -> None:
        """Let a client go."""
        self._open.remove(item)
        self.run(item.disconnect(timeout=_PATIENCE))

    def stop(self) -> None:
        """Close everything."""
        self.run(self._stopped())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    async def _stopped(self) -> None:
        from realtime.process.process import Process

        for item in self._open:
            await item.disconnect(timeout=_PATIENCE)
        await Process.current().stop()


class Subscriber:
    """One client."""

    def __init__(self, realtime: Realtime, communicator: WebsocketCommunicator) -> None:
        self._realtime = realtime
        self._communicator = communicator

    def say(self, **message: Any) -> None:
        self.say_text(json.dumps(message))

    def say_text(self, text: str) -> None:
        self._realtime.run(self._communicator.send_to(text))

    def close(self) -> None:
        self._realtime.close(self._communicator)

    def frame(self) -> dict[str, Any]:
        """What the server does next, as ASGI has it: a frame or the close."""
        output: dict[str, Any] = self._realtime.run(self._communicator.receive_output(_PATIENCE))
        return output

    def next(self) -> dict[str, Any]:
        """The next message."""
        frame = self.frame()
        assert frame["type"] == "websocket.send", frame
        message: dict[str, Any] = json.loads(frame["text"])
        return message

    def ask(self, request_id: int, class_name: str, where: Any = None, **more: Any) -> Any:
        """The answer to a subscription; ``sessionToken`` and ``op`` are the message's, the rest is
        the query's."""
        message = {"op": more.pop("op", "subscribe"), "requestId": request_id}
        if "sessionToken" in more:
            message["sessionToken"] = more.pop("sessionToken")
        self.say(**message, query={"className": class_name, "where": where or {}, **more})
        while "object" in (answer := self.next()):
            # Of the subscription that had this number before.
            assert answer["requestId"] == request_id, answer
        return answer

    def subscribe(self, request_id: int, class_name: str, where: Any = None, **more: Any) -> None:
        """The same for one that isn't refused."""
        answer = self.ask(request_id, class_name, where, **more)
        assert (answer["op"], answer.get("requestId")) == ("subscribed", request_id), answer

    def until(self, name: str) -> list[dict[str, Any]]:
        """The messages before the one about an object of this name."""
        observed: list[dict[str, Any]] = []
        while True:
            message = self.next()
            if message.get("object", {}).get("name") == name:
                return observed
            observed.append(message)


@contextmanager
def realtime_process() -> Iterator[Realtime]:
    """A realtime process for the time of the block."""
    realtime = Realtime()
    try:
        yield realtime
    finally:
        realtime.stop()

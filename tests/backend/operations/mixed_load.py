"""Clients of every kind on a running service, and what they received: REST, functions, a live
query, the event channel, and a chain whose events come all the time.

An exception in a client's thread fails the test: ``Load`` raises it at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_soon
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.backend.operations.service import NO_CERTIFICATES, PATIENCE, Service
from tests.evm.artefacts import Contract
from tests.polling import until
from tests.realtime.faults.listeners import Listener

FUNCTIONS = """
from functions import Request, function

@function()
def note(request: Request) -> str:
    return request.objects("Note").create(text="by a function").id
"""
"""A module of server functions that the load calls."""

# All in seconds.
_BLOCK_PAUSE: Final = 0.3  # between two blocks of the chain
_REQUEST_PAUSE: Final = 0.01  # between two requests of a client
_RECONNECT_PAUSE: Final = 0.1  # before a live query connects again
_LOOK_PAUSE: Final = 0.1  # after which a client that only listens sees that the load is over
_OPEN_PATIENCE: Final = 15.0  # for a handshake of the event channel

# New results of each kind that show that the service works again.
_NEW_OBJECTS: Final = 20
_NEW_CALLS: Final = 3
_NEW_EVENTS: Final = 2


def headers(service: Service) -> dict[str, str]:
    """The master key's."""
    return {
        "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
        "X-Svc-Master-Key": service.printed(r"X-Svc-Master-Key: ([\w-]+)"),
    }


def is_whole(service: Service) -> bool:
    """Whether the service is ready, and so is everything that ``/ready`` checks."""
    try:
        response = service.get("/ready")
    except httpx.HTTPError:
        return False
    return response.status_code == 200 and set(response.json()["checks"].values()) == {"ok"}


def stored(service: Service) -> set[str]:
    """The ids of all notes."""
    ids: list[str] = []
    while True:
        where = json.dumps({"objectId": {"$gt": ids[-1] if ids else ""}})
        parameters = {"where": where, "order": "objectId", "keys": "objectId", "limit": 1000}
        response = httpx.get(
            f"{service.url}/api/classes/Note",
            headers=headers(service),
            params=parameters,
            timeout=PATIENCE,
            verify=NO_CERTIFICATES,
        )
        page = [row["objectId"] for row in response.json()["results"]]
        if not page:
            return {*ids}
        ids += page


def create_note(service: Service) -> httpx.Response:
    """A request that creates a note, with a connection of its own."""
    return httpx.post(
        f"{service.url}/api/classes/Note",
        headers=headers(service),
        json={"text": "x"},
        timeout=PATIENCE,
        verify=NO_CERTIFICATES,
    )


def index(service: Service, contract: Contract) -> None:
    """Register the contract and its network."""
    network = contract.node.chain_id
    rows = {
        "Blockchain": {"networkId": network, "rpcEndpoint": contract.node.url, "pollInterval": 200},
        "SmartContract": {
            "name": "Gem",
            "address": contract.address,
            "networkId": network,
            "abi": contract.abi,
            "startBlock": 0,
        },
    }
    for name, row in rows.items():
        url = f"{service.url}/api/classes/{name}"
        response = httpx.post(url, headers=headers(service), json=row, timeout=PATIENCE)
        assert response.status_code == 201, response.text


@dataclass
class Load:
    """Clients that create objects, count them and call functions, until it is stopped.

    ``answers`` counts responses by status, and failures by their kind; ``stored`` are the ids of
    objects whose creation was acknowledged. Leaving the block raises the exceptions of its threads
    as a group; where the block has failed already, they become notes of its exception.
    """

    service: Service
    stored: set[str] = field(default_factory=set)
    answers: Counter[Any] = field(default_factory=Counter)
    without_advice: list[str] = field(default_factory=list)
    bodies: Counter[str] = field(default_factory=Counter)
    errors: list[Exception] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._headers = headers(self.service)
        for work in self._works():
            thread = threading.Thread(target=self._run, args=[work])
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if error is not None:
            for each in self.errors:
                error.add_note(f"A thread of the load failed: {each!r}")
        elif self.errors:
            raise ExceptionGroup("threads of the load failed", self.errors)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.errors.append(error)

    def _works(self) -> list[Callable[[], None]]:
        return [
            lambda: self._repeat(self._create),
            lambda: self._repeat(self._create),
            lambda: self._repeat(self._find),
        ]

    def _repeat(self, work: Callable[[httpx.Client], httpx.Response]) -> None:
        with httpx.Client(
            base_url=self.service.url,
            headers=self._headers,
            timeout=PATIENCE,
            verify=NO_CERTIFICATES,
        ) as client:
            while not self._over.wait(_REQUEST_PAUSE):
                self._count(work, client)

    def _count(self, work: Callable[[httpx.Client], httpx.Response], client: httpx.Client) -> None:
        try:
            response = work(client)
        except httpx.HTTPError as error:
            self.answers[type(error).__name__] += 1
            return
        self.answers[response.status_code] += 1
        if response.status_code == 503 and "Retry-After" not in response.headers:
            self.without_advice.append(response.text)
        if response.status_code not in (200, 201, 503):
            self.bodies[response.text] += 1

    def _create(self, client: httpx.Client) -> httpx.Response:
        response = client.post("/api/classes/Note", json={"text": "x"})
        if response.status_code == 201:
            self.stored.add(response.json()["objectId"])
        return response

    def _find(self, client: httpx.Client) -> httpx.Response:
        return client.get("/api/classes/Note?limit=1")

    def seconds_to_recover(self) -> float:
        """Wait until the service is ready and creates objects; return the seconds."""
        began = time.monotonic()
        self._wait(lambda: is_whole(self.service))
        before = len(self.stored)
        self._wait(lambda: len(self.stored) > before + _NEW_OBJECTS)
        return time.monotonic() - began

    def _wait(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds. Fails at once if a thread has failed."""
        until(lambda: self.errors or holds(), PATIENCE)
        assert not self.errors, "a thread of the load failed"


@dataclass
class MixedLoad(Load):
    """As ``Load``, with functions (the service has to have ``FUNCTIONS``), a live query, and a
    contract that is indexed, whose events ``/ws`` streams."""

    contract: Contract | None = None
    notified: set[str] = field(default_factory=set)
    """The ids of notes that the live query has delivered."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Errors of the live query, after each of which it connects again: the class of the notes
    doesn't exist before the first of them."""
    calls: int = 0
    mined: int = 0
    _is_mined: threading.Event = field(default_factory=threading.Event)
    _mining: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        assert self.contract is not None
        query = f"network={self.contract.node.chain_id}"
        self.listener = Listener(self._open, query, since="0")
        return super().__enter__()

    def _works(self) -> list[Callable[[], None]]:
        return [
            *super()._works(),
            lambda: self._repeat(self._call),
            self._mine,
            self._subscribe,
            lambda: asyncio.run(self._listen()),
        ]

    def _call(self, client: httpx.Client) -> httpx.Response:
        response = client.post("/api/functions/note", json={})
        if response.status_code == 200:
            self.stored.add(response.json()["result"])
            self.calls += 1
        return response

    def stop_mining(self) -> None:
        """No more events. Returns when the last is on the chain."""
        self._is_mined.set()
        with self._mining:
            pass

    def _mine(self) -> None:
        assert self.contract is not None
        while not self._is_mined.wait(_BLOCK_PAUSE) and not self._over.is_set():
            with self._mining:
                if self._is_mined.is_set():
                    return
                self.contract.transact("spam", 1, gas=500_000)
                self.mined += 1

    async def _open(self, path: str) -> ClientConnection:
        url = f"ws://127.0.0.1:{self.service.port}{path}"
        return await connect_soon(url, open_timeout=_OPEN_PATIENCE)

    async def _listen(self) -> None:
        task = asyncio.create_task(self.listener.listen())
        while not self._over.is_set() and not task.done():
            await asyncio.sleep(_LOOK_PAUSE)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def _subscribe(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, WebSocketException):
                self._receive_notifications()
            self._over.wait(_RECONNECT_PAUSE)

    def _receive_notifications(self) -> None:
        keys = {
            "applicationId": self._headers["X-Svc-Application-Id"],
            "masterKey": self._headers["X-Svc-Master-Key"],
        }
        query = {"className": "Note", "where": {}}
        url = f"ws://127.0.0.1:{self.service.port}/livequery"
        with connect(url, open_timeout=PATIENCE) as socket:
            socket.send(json.dumps({"op": "connect", **keys}))
            socket.send(json.dumps({"op": "subscribe", "requestId": 1, "query": query}))
            while not self._over.is_set():
                with contextlib.suppress(TimeoutError):
                    message = json.loads(socket.recv(_LOOK_PAUSE))
                    if message["op"] == "create":
                        self.notified.add(message["object"]["objectId"])
                    elif message["op"] == "error":
                        self.refusals[message["error"]] += 1
                        return

    def seconds_to_recover(self) -> float:
        """Wait until every kind of client receives new results; return the seconds."""
        began = time.monotonic()
        super().seconds_to_recover()
        notified, calls, frames = len(self.notified), self.calls, len(self.listener.frames)
        self._wait(lambda: self.calls > calls + _NEW_CALLS)
        try:
            self._wait(lambda: len(self.notified) > notified + _NEW_OBJECTS)
        except AssertionError as error:
            error.add_note(f"The live query got these errors: {self.refusals}")
            raise
        self._wait(lambda: len(self.listener.frames) > frames + _NEW_EVENTS)
        return time.monotonic() - began

    def has_every_event(self) -> bool:
        """Whether ``/ws`` has delivered every event of the chain once, in order. For the end, when
        nothing is mined any more."""
        return self.listener.tokens == [*range(self.mined)]

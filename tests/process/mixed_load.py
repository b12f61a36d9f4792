"""Clients of every kind on a running service, and what they were told: REST, functions, a live
query, the event channel, and a chain whose events come all the time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_soon
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.evm.artefacts import Contract
from tests.process.service import PATIENCE, Service
from tests.realtime.faults.listeners import Listener
from tests.waiting import until

FUNCTIONS = """
from functions import Request, function

@function()
def note(request: Request) -> str:
    return request.objects("Note").create(text="by a function").id
"""
"""A module of server functions that the load calls."""

_BLOCKS = 0.3  # seconds between two
_PAUSE = 0.01  # seconds between two requests of a client
_ENOUGH = 20  # objects that are made before all is well again


def headers(service: Service) -> dict[str, str]:
    """The master key's."""
    return {
        "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
        "X-Svc-Master-Key": service.printed(r"X-Svc-Master-Key: ([\w-]+)"),
    }


def is_whole(service: Service) -> bool:
    """Whether it and everything that it needs says that it is well."""
    with contextlib.suppress(httpx.HTTPError, ValueError, AttributeError):
        answer = service.get("/ready")
        checks = answer.json()["checks"]
        return answer.status_code == 200 and set(checks.values()) == {"ok"}
    return False


def stored(service: Service) -> set[str]:
    """The ids of all notes."""
    found: list[str] = []
    while True:
        where = json.dumps({"objectId": {"$gt": found[-1] if found else ""}})
        parameters = {"where": where, "order": "objectId", "keys": "objectId", "limit": 1000}
        answer = httpx.get(
            f"{service.url}/api/classes/Note",
            headers=headers(service),
            params=parameters,
            timeout=PATIENCE,
        )
        page = [row["objectId"] for row in answer.json()["results"]]
        if not page:
            return {*found}
        found += page


def follow(service: Service, contract: Contract) -> None:
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
        answer = httpx.post(url, headers=headers(service), json=row, timeout=PATIENCE)
        assert answer.status_code == 201, answer.text


@dataclass
class Load:
    """Clients that create objects, count them and call functions, until it is stopped.

    ``answers`` counts responses by status, and failures by their kind; ``stored`` are the ids of
    objects that were said to be there.
    """

    service: Service
    stored: set[str] = field(default_factory=set)
    answers: Counter[Any] = field(default_factory=Counter)
    without_advice: list[str] = field(default_factory=list)
    bodies: Counter[str] = field(default_factory=Counter)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._headers = headers(self.service)
        for work in self._works():
            thread = threading.Thread(target=work)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _works(self) -> list[Callable[[], None]]:
        return [
            lambda: self._repeat(self._create),
            lambda: self._repeat(self._create),
            lambda: self._repeat(self._find),
        ]

    def _repeat(self, work: Callable[[httpx.Client], httpx.Response]) -> None:
        with httpx.Client(
            base_url=self.service.url, headers=self._headers, timeout=PATIENCE
        ) as client:
            while not self._over.wait(_PAUSE):
                self._count(work, client)

    def _count(self, work: Callable[[httpx.Client], httpx.Response], client: httpx.Client) -> None:
        try:
            answer = work(client)
        except httpx.HTTPError as error:
            self.answers[type(error).__name__] += 1
            return
        self.answers[answer.status_code] += 1
        if answer.status_code == 503 and "Retry-After" not in answer.headers:
            self.without_advice.append(answer.text)
        if answer.status_code not in (200, 201, 503):
            self.bodies[answer.text] += 1

    def _create(self, client: httpx.Client) -> httpx.Response:
        answer = client.post("/api/classes/Note", json={"text": "x"})
        if answer.status_code == 201:
            self.stored.add(answer.json()["objectId"])
        return answer

    def _find(self, client: httpx.Client) -> httpx.Response:
        return client.get("/api/classes/Note?limit=1")

    def heals(self) -> float:
        """Seconds until everything answers again, and creates objects."""
        began = time.monotonic()
        until(lambda: is_whole(self.service), PATIENCE)
        before = len(self.stored)
        until(lambda: len(self.stored) > before + _ENOUGH, PATIENCE)
        return time.monotonic() - began


@dataclass
class MixedLoad(Load):
    """As ``Load``, with functions (the service has to have ``FUNCTIONS``), a live query, and a
    contract that is followed, whose events ``/ws`` streams."""

    contract: Contract | None = None
    told: set[str] = field(default_factory=set)
    """The ids of notes that the live query has told."""
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
        answer = client.post("/api/functions/note", json={})
        if answer.status_code == 200:
            self.stored.add(answer.json()["result"])
            self.calls += 1
        return answer

    def stop_mining(self) -> None:
        """No more events. Returns when the last is on the chain."""
        self._is_mined.set()
        with self._mining:
            pass

    def _mine(self) -> None:
        assert self.contract is not None
        while not self._is_mined.wait(_BLOCKS) and not self._over.is_set():
            with self._mining:
                self.contract.transact("spam", 1, gas=500_000)
                self.mined += 1

    async def _open(self, path: str) -> ClientConnection:
        return await connect_soon(f"ws://127.0.0.1:{self.service.port}{path}", open_timeout=15)

    async def _listen(self) -> None:
        task = asyncio.create_task(self.listener.listen())
        while not self._over.is_set():
            await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _subscribe(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                self._follow()

    def _follow(self) -> None:
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
                    message = json.loads(socket.recv(0.5))
                    if message["op"] == "create":
                        self.told.add(message["object"]["objectId"])

    def heals(self) -> float:
        """Seconds until every kind of client has new answers."""
        began = time.monotonic()
        super().heals()
        told, calls, frames = len(self.told), self.calls, len(self.listener.frames)
        until(lambda: self.calls > calls + 3, PATIENCE)
        until(lambda: len(self.told) > told + _ENOUGH, PATIENCE)
        until(lambda: len(self.listener.frames) > frames + 2, PATIENCE)
        return time.monotonic() - began

    def has_heard_all(self) -> bool:
        """Whether ``/ws`` has told every event of the chain once, in order. For the end, when
        nothing is mined any more."""
        return self.listener.told == [*range(self.mined)]

"""The clients of a soak: REST and functions at a rate, sockets that come and go, a chain.

A client that fails unexpectedly ends the soak: otherwise it would run on with less load.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import multiprocessing
import random
import secrets
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from multiprocessing.sharedctypes import Synchronized
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from bench.client import Client
from bench.failure import BenchFailure
from bench.whole import MASTER_KEY
from tests.evm.artefacts import Contract

WATCHED: Final = "SoakWatched"
"""A class with a trigger in the background, which deletes its objects (``bench.cloud``)."""
_KEPT: Final = 50
"""Objects of one client; it removes the oldest."""
_SIGN_IN_EVERY: Final = 50  # rounds of a client
_UPLOAD_EVERY: Final = 200
_WATCHED_EVERY: Final = 5
_MOST_BEHIND: Final = 5.0  # seconds that a client catches up after a pause of the service
_STAY: Final = 60.0  # seconds of one connection of a socket, at most
_BLOCKS: Final = 1.0  # seconds between two


class Rest:
    """Processes with clients that make requests: as many as possible, or so many a second."""

    def __init__(self, port: int, headers: Mapping[str, str], processes: int, threads: int) -> None:
        self._processes, self._threads = processes, threads
        # Read and written by the clients' processes.
        self._rate: Synchronized[float] = multiprocessing.Value("d", 0.0)
        self._done: Synchronized[int] = multiprocessing.Value("q", 0)
        self._failed: Synchronized[int] = multiprocessing.Value("q", 0)
        self._slowest: Synchronized[float] = multiprocessing.Value("d", 0.0)
        self._crashed: Synchronized[int] = multiprocessing.Value("q", 0)
        # Forked: a process of another kind couldn't take a bound method.
        context = multiprocessing.get_context("fork")
        self._running = [
            context.Process(target=self._run, args=(port, dict(headers)), daemon=True)
            for _ in range(processes)
        ]

    def start(self) -> None:
        for process in self._running:
            process.start()

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
            process.join()

    def limit(self, rate: float) -> None:
        """So many requests a second at most, all clients together; 0 is as many as possible."""
        self._rate.value = rate

    def count(self) -> tuple[int, int]:
        """Requests and failures until now. Raises ``BenchFailure`` if a client has ended."""
        if self._crashed.value or not all(process.is_alive() for process in self._running):
            raise BenchFailure("a client of REST has ended")
        return self._done.value, self._failed.value

    def slowest(self) -> float:
        """The seconds of the slowest request since the last call."""
        with self._slowest.get_lock():
            slowest, self._slowest.value = self._slowest.value, 0.0
        return slowest

    def _run(self, port: int, headers: dict[str, str]) -> None:
        threads = [
            threading.Thread(target=self._work, args=(port, headers), daemon=True)
            for _ in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, port: int, headers: dict[str, str]) -> None:
        try:
            self._request_without_end(Person(port, headers))
        except Exception:
            traceback.print_exc()
            with self._crashed.get_lock():
                self._crashed.value += 1

    def _request_without_end(self, person: Person) -> None:
        due = time.monotonic()
        while True:
            done, failed, slowest = person.round()
            with self._done.get_lock():
                self._done.value += done
                self._failed.value += failed
            with self._slowest.get_lock():
                self._slowest.value = max(self._slowest.value, slowest)
            now = time.monotonic()
            if not self._rate.value:
                due = now
                continue
            pause = done * self._processes * self._threads / self._rate.value
            # A round that took longer than its share makes the next pauses shorter.
            due = max(due, now - _MOST_BEHIND) + pause * random.uniform(0.5, 1.5)
            time.sleep(max(0.0, due - now))


class Person:
    """One client, with its connection and its objects."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port, self._headers = port, headers
        self._client = Client(port, "/api", headers)
        self._own: list[str] = []
        self._rounds = 0
        self._name = secrets.token_hex(8)
        self._done = self._failed = 0
        self._slowest = 0.0

    def round(self) -> tuple[int, int, float]:
        """Requests, failed ones, and the seconds of the slowest."""
        self._done = self._failed = 0
        self._slowest = 0.0
        number = random.randrange(1000)
        made = self._send("POST", "/classes/Soak", {"number": number, "text": "x" * 100})
        if made:
            self._own.append(made["objectId"])
        if self._own:
            path = f"/classes/Soak/{random.choice(self._own)}"
            self._send("GET", path)
            self._send("PUT", path, {"number": {"__op": "Increment", "amount": 1}})
        where = json.dumps({"number": {"$gte": number}}, separators=(",", ":"))
        self._send("GET", f"/classes/Soak?limit=20&order=number&where={where}")
        if self._rounds % _WATCHED_EVERY == 0:
            self._send("POST", f"/classes/{WATCHED}", {"number": number})
        self._send("POST", "/functions/benchAdd", {"a": number, "b": 1, "note": "soak"})
        while len(self._own) > _KEPT:
            self._send("DELETE", f"/classes/Soak/{self._own.pop(0)}")
        if self._rounds % _SIGN_IN_EVERY == 0:
            self._sign_in()
        if self._rounds % _UPLOAD_EVERY == 0:
            self._upload()
        self._rounds += 1
        return self._done, self._failed, self._slowest

    def _sign_in(self) -> None:
        account = {"username": self._name, "password": "a password of a soak"}
        if self._rounds == 0:
            signed_up = self._send("POST", "/users", account)
        else:
            signed_up = self._send("POST", "/login", account)
        if signed_up:
            headers = self._headers | {"X-Svc-Session-Token": signed_up["sessionToken"]}
            del headers[MASTER_KEY]
            with Client(self._port, "/api", headers) as client:
                self._send("GET", "/users/me", client=client)
                self._send("POST", "/logout", {}, client=client)

    def _upload(self) -> None:
        stored = self._send("POST", "/files/soak.txt", "y" * 10_000)
        if stored:
            self._send("DELETE", f"/files/{stored['name']}")

    def _send(self, method: str, path: str, body: Any = None, client: Client | None = None) -> Any:
        """The decoded response; None for anything but a success, which counts as failed."""
        client = client or self._client
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        began = time.monotonic()
        response = None
        try:
            status, content = client.attempt(method, f"/api{path}", text)
            if 200 <= status < 300:
                response = json.loads(content)
        except (OSError, http.client.HTTPException, ValueError):
            client.close()
        self._slowest = max(self._slowest, time.monotonic() - began)
        self._done += 1
        if response is None:
            self._failed += 1
        return response


class _Background(ABC):
    """Something that runs in a thread, until it is stopped."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise ``BenchFailure`` if it has ended."""
        if not self._thread.is_alive():
            raise BenchFailure(f"{type(self).__name__} has ended: {self._error!r}")

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            traceback.print_exc()
            self._error = error

    @abstractmethod
    def _work(self) -> None:
        """Work until ``_over`` is set."""


class RefusedMessage(Exception):
    """The service answered a message of a live query by another one than expected."""


class Sockets(_Background):
    """Live queries and listeners of the event channel, which come and go.

    ``messages``, ``connections`` and ``failures`` count until now. A failure is a handshake or a
    subscription that doesn't succeed, or a connection that the server closes.
    """

    def __init__(self, port: int, keys: Mapping[str, str], number: int) -> None:
        super().__init__()
        self._port, self._keys, self._number = port, dict(keys), number
        self.messages = 0
        self.connections = 0
        self.failures = 0

    def _work(self) -> None:
        asyncio.run(self._come_and_go_all())

    async def _come_and_go_all(self) -> None:
        query = {"className": "Soak", "where": {"number": {"$lt": 20}}}
        subscription = [
            (json.dumps({"op": "connect", **self._keys}), "connected"),
            (json.dumps({"op": "subscribe", "requestId": 1, "query": query}), "subscribed"),
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    self._come_and_go("/livequery", subscription)
                    if number % 2
                    else self._come_and_go("/ws", [])
                )
                for number in range(self._number)
            ]
            while not self._over.is_set():
                await asyncio.sleep(0.2)
            for task in tasks:
                task.cancel()

    async def _come_and_go(self, path: str, messages: list[tuple[str, str]]) -> None:
        """Connect, send messages that are answered by these ops, and listen, again and again."""
        while True:
            try:
                async with connect(
                    f"ws://127.0.0.1:{self._port}{path}", compression=None
                ) as socket:
                    self.connections += 1
                    for text, expected in messages:
                        await socket.send(text)
                        answer = json.loads(await socket.recv())
                        if answer.get("op") != expected:
                            raise RefusedMessage(answer)
                    await self._stay(socket)
            except (OSError, WebSocketException, RefusedMessage):
                self.failures += 1
            await asyncio.sleep(0.1)

    async def _stay(self, socket: ClientConnection) -> None:
        """Read for a while. Raises ``ConnectionClosed`` if the server closes the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0.2, 1.0) * _STAY):
                while True:
                    await socket.recv()
                    self.messages += 1


class Miner(_Background):
    """Mines a block with five events every second."""

    def __init__(self, contract: Contract) -> None:
        super().__init__()
        self._contract = contract

    def _work(self) -> None:
        while not self._over.wait(_BLOCKS):
            self._contract.transact("spam", 5, gas=500_000)

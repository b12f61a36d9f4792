"""The clients of a soak: REST and functions at a rate, sockets that come and go, a chain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import random
import secrets
import threading
import time
from collections.abc import Mapping
from multiprocessing.sharedctypes import Synchronized
from typing import Any, Final

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bench.client import Client
from bench.whole import MASTER_KEY
from tests.evm.artefacts import Contract

_KEPT: Final = 50
"""Objects of one client; it removes the oldest."""
_SIGN_IN_EVERY: Final = 50  # rounds of a client
_UPLOAD_EVERY: Final = 200
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
        self._running = [
            multiprocessing.Process(target=self._run, args=(port, dict(headers)), daemon=True)
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

    def count(self) -> tuple[int, int, float]:
        """Requests and failures until now, and the longest time of one, in seconds, since the last
        count."""
        with self._slowest.get_lock():
            slowest, self._slowest.value = self._slowest.value, 0.0
        return self._done.value, self._failed.value, slowest

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
        person = _Person(port, headers)
        while True:
            began = time.monotonic()
            done, failed, slowest = person.round()
            with self._done.get_lock():
                self._done.value += done
                self._failed.value += failed
            with self._slowest.get_lock():
                self._slowest.value = max(self._slowest.value, slowest)
            if self._rate.value:
                pause = done * self._processes * self._threads / self._rate.value
                time.sleep(max(0.0, began + pause * random.uniform(0.5, 1.5) - time.monotonic()))


class _Person:
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
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        began = time.monotonic()
        status, answer = 0, b""
        try:
            status, answer = (client or self._client).attempt(method, f"/api{path}", text)
        except OSError:
            self._client = Client(self._port, "/api", self._headers)
        self._slowest = max(self._slowest, time.monotonic() - began)
        self._done += 1
        if not 200 <= status < 300:
            self._failed += 1
            return None
        return json.loads(answer)


class Sockets:
    """Live queries and listeners of the event channel, which come and go, in a thread."""

    def __init__(self, port: int, keys: Mapping[str, str], number: int) -> None:
        self._port, self._keys, self._number = port, dict(keys), number
        self.messages = 0
        self.connections = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    async def _run(self) -> None:
        query = {"className": "Soak", "where": {"number": {"$lt": 20}}}
        subscribing = [
            json.dumps({"op": "connect", **self._keys}),
            json.dumps({"op": "subscribe", "requestId": 1, "query": query}),
        ]
        tasks = []
        for number in range(self._number):
            path, said = ("/livequery", subscribing) if number % 2 else ("/ws", [])
            tasks.append(asyncio.create_task(self._come_and_go(path, said)))
        while not self._over.is_set():
            await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _come_and_go(self, path: str, said: list[str]) -> None:
        while True:
            with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                async with (
                    connect(f"ws://127.0.0.1:{self._port}{path}", compression=None) as socket,
                    asyncio.timeout(random.uniform(0.2, 1.0) * _STAY),
                ):
                    self.connections += 1
                    for text in said:
                        await socket.send(text)
                    async for _ in socket:
                        self.messages += 1
            await asyncio.sleep(0.1)


class Miner:
    """Mines a block with five events every second, in a thread."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(_BLOCKS):
            self._contract.transact("spam", 5, gas=500_000)

"""The workload of an ordinary client, measured in a process of its own while others attack.

Requests start by the clock, whether or not earlier ones have been answered, and their latency
counts from when they were due: a service that stands still is measured as a client meets it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from bench.attack.frames import UPGRADE, frame, message
from bench.attack.scene import MOUNT, VICTIM, VICTIM_ADDRESS, Scene
from bench.attack.wire import Closed, Response, Wire, head, request
from bench.failure import BenchFailure
from bench.servers import ROOT

_PATIENCE = 10.0
"""Seconds after which a request counts as failed."""
EVENT = "event"
"""The kind of the victim's events of live queries."""
_LAST_EVENT = 2.0
"""Seconds after the last response in which events are still expected."""
_REUSE = 10
"""Requests of a connection before a new one replaces it: connecting is measured as well."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of request, so many a second."""

    name: str
    rate: float
    data: bytes
    status: int
    key: str
    """A key that only the response to this kind of request has."""


def _kinds(scene: Scene) -> list[_Kind]:
    where = quote('{"views": {"$gte": 10}}')
    one, some = f"/classes/{VICTIM}/{scene.article}", f"/classes/{VICTIM}?limit=10&where={where}"
    article = {"title": "An article of the victim", "views": 1}
    client = scene.client
    return [
        _Kind("health", 10, request("GET", "/health"), 200, "status"),
        _Kind("get", 10, request("GET", MOUNT + one, client), 200, "views"),
        _Kind("find", 10, request("GET", MOUNT + some, client), 200, "results"),
        _Kind(
            "create",
            5,
            request("POST", f"{MOUNT}/classes/{VICTIM}", client, article),
            201,
            "objectId",
        ),
    ]


@dataclass(slots=True)
class Measured:
    """Milliseconds of each request by its kind, failures included, and errors by description."""

    latencies: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        return sum(len(values) for name, values in self.latencies.items() if name != EVENT)

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def percentile(self, share: float, kind: str | None = None) -> float:
        """Milliseconds after which this share of the requests was answered or had failed.

        Events aren't requests: they count for ``EVENT`` alone.
        """
        ordered = sorted(
            value
            for name, values in self.latencies.items()
            if (name != EVENT if kind is None else name == kind)
            for value in values
        )
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0

    def figures(self) -> dict[str, Any]:
        """Percentiles of each kind, for the file of results."""
        return {
            kind: {"p50_ms": self.percentile(0.5, kind), "p99_ms": self.percentile(0.99, kind)}
            for kind in self.latencies
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(**values)


class Victim:
    """The measuring process, started once for all rows."""

    def __init__(self, scene: Scene) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.attack.victim"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(scene.as_dict())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._process.kill()
        self._process.communicate()

    def measure(self, seconds: float, listens: bool = False) -> Measured:
        """Run the workload for so many seconds; blocks until everything is answered or failed.

        ``listens`` measures live queries of what it creates as well.
        """
        self._send([seconds, listens])
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise BenchFailure("the victim's process ended; the reason is above")
        return Measured.from_dict(json.loads(line))

    def _send(self, value: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps(value)}\n")
        self._process.stdin.flush()


class _Client:
    """Keep-alive connections from the victim's address."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._idle: list[tuple[Wire, int]] = []

    async def exchange(self, data: bytes) -> Response:
        wire, uses = self._idle.pop() if self._idle else (None, 0)
        if wire is not None:
            try:
                return await self._exchange(wire, uses, data)
            except (Closed, OSError):
                # A server may close an idle connection at any time; clients then use another one.
                pass
        return await self._exchange(await Wire.open(self._scene, VICTIM_ADDRESS), 0, data)

    async def _exchange(self, wire: Wire, uses: int, data: bytes) -> Response:
        try:
            response = await wire.exchange(data)
        except BaseException:
            wire.close()
            raise
        if response.is_last or uses + 1 >= _REUSE:
            wire.close()
        else:
            self._idle.append((wire, uses + 1))
        return response


@contextlib.asynccontextmanager
async def _listening(scene: Scene, delays: list[float]) -> AsyncIterator[None]:
    """Subscribe to the victim's class, and collect the milliseconds from a create to its event.

    Raises ``BenchFailure`` if there is no subscription.
    """

    async def listen() -> None:
        while True:
            event = json.loads(await message(wire))
            if event["op"] == "create":
                created = datetime.fromisoformat(event["object"]["createdAt"])
                delays.append((time.time() - created.timestamp()) * 1000)

    async with await Wire.open(scene, VICTIM_ADDRESS) as wire:
        connect = {"op": "connect", "applicationId": scene.application, "restAPIKey": scene.key}
        query = {"className": VICTIM, "where": {}}
        await wire.exchange(head("GET", "/livequery", UPGRADE))
        for request_ in (connect, {"op": "subscribe", "requestId": 1, "query": query}):
            await wire.send(frame(json.dumps(request_)))
            answer = json.loads(await message(wire))
            if answer["op"] == "error":
                raise BenchFailure(f"the victim can't subscribe: {answer}")
        listener = asyncio.ensure_future(listen())
        try:
            yield
            await asyncio.sleep(_LAST_EVENT)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)


async def measure(scene: Scene, seconds: float, listens: bool = False) -> Measured:
    """Run the workload for so many seconds, and wait for what is outstanding."""
    if not listens:
        return await _measure(scene, seconds)
    delays: list[float] = []
    async with _listening(scene, delays):
        measured = await _measure(scene, seconds)
    measured.latencies[EVENT] = delays
    created = len(measured.latencies["create"]) - sum(
        count for error, count in measured.errors.items() if error.startswith("create")
    )
    if len(delays) < created:
        measured.errors["event: none"] = created - len(delays)
    return measured


async def _measure(scene: Scene, seconds: float) -> Measured:
    client, measured = _Client(scene), Measured()
    errors: Counter[str] = Counter()

    async def once(kind: _Kind, due: float) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                response = await client.exchange(kind.data)
        except TimeoutError:
            errors[f"{kind.name}: no answer"] += 1
        except (Closed, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else "closed"
            errors[f"{kind.name}: {reason}"] += 1
        else:
            if response.status != kind.status:
                errors[f"{kind.name}: {response.status}"] += 1
            elif kind.key not in (response.json or ()):
                errors[f"{kind.name}: the answer to another request"] += 1
        elapsed = (time.monotonic() - due) * 1000
        measured.latencies.setdefault(kind.name, []).append(elapsed)

    start = time.monotonic()
    tasks = []
    for due, kind in _schedule(_kinds(scene), seconds):
        await asyncio.sleep(max(start + due - time.monotonic(), 0))
        tasks.append(asyncio.ensure_future(once(kind, start + due)))
    await asyncio.gather(*tasks)
    measured.errors = dict(errors)
    return measured


def _schedule(kinds: list[_Kind], seconds: float) -> Iterator[tuple[float, _Kind]]:
    """When each request is due, in order; kinds don't start at the same moment."""
    times = (
        ((number + place / len(kinds)) / kind.rate, place, kind)
        for place, kind in enumerate(kinds)
        for number in itertools.takewhile(lambda n: n < seconds * kind.rate, itertools.count())  # noqa: B023
    )
    for due, _, kind in sorted(times, key=lambda item: item[:2]):
        yield due, kind


def main() -> None:
    scene = Scene.from_dict(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        measured = asyncio.run(measure(scene, *json.loads(line)))
        print(json.dumps(asdict(measured)), flush=True)


if __name__ == "__main__":
    main()

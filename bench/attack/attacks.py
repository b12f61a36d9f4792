"""What an attack is, and what its attackers have in common."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from bench.attack.scene import Scene, attacker_address
from bench.attack.wire import Closed, Response, Wire, connect_and_reset

_LOOK = 0.1
_RETRY = 1.0
"""Seconds before an attacker whose connection was closed connects again."""


@dataclass(slots=True)
class Tally:
    """What the attackers of a row got: responses by status, and what happened to connections."""

    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """Responses that no attack may ever get, by description."""
    connections: int = 0

    def count(self, response: Response) -> Response:
        self.answers[str(response.status)] += 1
        # 503 is the answer of a limit; any other 5xx is a defect.
        if response.status >= 500 and response.status != 503:
            self.faults[f"{response.status} for an attacker"] += 1
        return response


@dataclass(slots=True)
class Row:
    """One run of an attack: where, from which addresses, until when."""

    scene: Scene
    number: int
    addresses: int
    until: float
    tally: Tally = field(default_factory=Tally)
    attempts: int = 0

    @property
    def left(self) -> float:
        return self.until - time.monotonic()


@dataclass(slots=True)
class Attacker:
    """One of the clients of a row."""

    row: Row
    number: int

    @property
    def scene(self) -> Scene:
        return self.row.scene

    @property
    def tally(self) -> Tally:
        return self.row.tally

    @property
    def is_over(self) -> bool:
        return self.row.left <= 0

    async def connect(self, receive_buffer: int | None = None) -> Wire:
        """A connection from this attacker's address."""
        source = attacker_address(self.row.number, self.number, self.row.addresses)
        wire = await Wire.open(self.scene, source, receive_buffer)
        self.tally.connections += 1
        return wire

    async def connect_and_reset(self, data: bytes = b"") -> None:
        """Connect, send data and reset the connection at once, without a response."""
        source = attacker_address(self.row.number, self.number, self.row.addresses)
        self.tally.connections += 1
        await connect_and_reset(self.scene, source, data)

    async def exchange(self, wire: Wire, data: bytes) -> Response:
        """Send a request, and count its response."""
        return self.tally.count(await wire.exchange(data))

    async def drip(self, wire: Wire, start: bytes, data: bytes) -> None:
        """Send ``start`` at once and then a byte of ``data`` a second, until the server answers.

        A connection that the server closes without a response raises ``Closed``.
        """
        await wire.send(start)
        answer = asyncio.ensure_future(wire.receive())
        try:
            for value in data:
                done, _ = await asyncio.wait({answer}, timeout=1.0)
                if done or self.is_over:
                    break
                await wire.send(bytes([value]))
            if answer.done():
                self.tally.count(answer.result())
        finally:
            answer.cancel()
            with contextlib.suppress(asyncio.CancelledError, Closed, OSError):
                await answer


class Attack:
    """A row of the table. Subclasses say what one attacker does; it is repeated until the end."""

    name: ClassVar[str]
    description: ClassVar[str]
    attackers: ClassVar[int] = 16
    """Clients at the same time."""
    most: ClassVar[int] = 20_000
    """Repetitions of a row, of all attackers together, after which they stop."""
    pause: ClassVar[float] = 0.0
    """Seconds between two repetitions of an attacker."""
    p99: ClassVar[float] = 250.0
    """Milliseconds within which the victim is answered."""
    allowance: ClassVar[int] = 64
    """Megabytes that the service's limits let this attack take."""
    events_p99: ClassVar[float | None] = None
    """Milliseconds within which the victim gets events of live queries, if that is measured."""
    short: ClassVar[bool] = False
    """Whether the short form of the command includes it."""

    async def attack(self, attacker: Attacker) -> None:
        """What an attacker does once; ``Closed`` and errors of the connection end it."""
        raise NotImplementedError

    async def verify(self, scene: Scene) -> list[str]:
        """What must hold for the victim after the attack, each as a sentence if it doesn't."""
        return []

    async def run(self, row: Row) -> None:
        """Run all attackers until the row's end, which may be moved meanwhile."""
        tasks = [
            asyncio.ensure_future(self._repeat(Attacker(row, n))) for n in range(self.attackers)
        ]
        try:
            while row.left > 0:
                await asyncio.sleep(min(row.left, _LOOK))
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _repeat(self, attacker: Attacker) -> None:
        row = attacker.row
        while not attacker.is_over and row.attempts < self.most:
            row.attempts += 1
            try:
                await self.attack(attacker)
                await asyncio.sleep(self.pause)
            except (Closed, ConnectionResetError, BrokenPipeError):
                row.tally.answers["closed"] += 1
                await asyncio.sleep(_RETRY)
            except TimeoutError:
                row.tally.answers["timeout"] += 1
                await asyncio.sleep(_RETRY)
            except OSError as error:
                row.tally.answers[error.strerror or "not connected"] += 1
                await asyncio.sleep(_RETRY)

"""The state of a realtime process: its sockets, its listener, and the parts that feed the sockets.

It starts with the first socket or with the server, and stops with the server: sockets are closed
with 1001 then, so that clients reconnect elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from backend.kernel.randomness import random_bytes
from backend.logs.setup import get_logger
from realtime.process import reports
from realtime.process.admission import Admission
from realtime.process.notifications import Listener
from realtime.process.shares import Shares

_GOING_AWAY: Final = 1001
# Seconds: between attempts of a failing part; until it counts as running after a failure; until a
# part that is down counts as hopeless.
_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
_PROBATION: Final = 2.0
_HOPELESS: Final = 60.0
_CANCELLED_WITHIN: Final = 1.0
_MOST_UNANSWERED: Final = 32 * 1024 * 1024
_MOST_UNANSWERED_OF_ADDRESS: Final = 8 * 1024 * 1024

log = get_logger("realtime")


class Part(Protocol):
    """A service that runs once in a process, such as the pump of events.

    ``run`` runs until it is cancelled. If it raises, the error is logged and it is run again after
    a pause; the process isn't ready meanwhile.
    """

    name: str

    def __init__(self, process: Process) -> None: ...

    async def run(self) -> None: ...

    def status(self) -> dict[str, Any]:
        """Figures for the admin and for metrics: plain JSON, cheap, no secrets."""


class OpenSocket(Protocol):
    """A socket that the process closes when it stops."""

    kind: ClassVar[str]

    def close_with(self, code: int, reason: str = "") -> None: ...


P = TypeVar("P", bound=Part)


class _Run:
    """A task that is restarted when it fails."""

    def __init__(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.failures = 0
        self.failed_at: float | None = None  # the last time
        self.down_since: float | None = None
        self._run = run
        self.task = asyncio.create_task(self._keep_running(), name=f"realtime {name}")

    @property
    def is_up(self) -> bool:
        return self.down_since is None and not self.task.done()

    @property
    def is_hopeless(self) -> bool:
        down = self.down_since is not None and monotonic() - self.down_since > _HOPELESS
        return down or self.task.done()

    async def _keep_running(self) -> None:
        in_a_row = 0
        while True:
            began = monotonic()
            trusted = asyncio.get_running_loop().call_later(_PROBATION, self._trust)
            try:
                await self._run()
                log.error("a part ended", part=self.name)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                log.error("a part failed", part=self.name, exc_info=error)
            except Exception as error:
                log.error("a part failed", part=self.name, exc_info=error)
            finally:
                trusted.cancel()
            in_a_row = 0 if monotonic() - began > _HOPELESS else in_a_row + 1
            self.failures += 1
            self.failed_at = monotonic()
            self.down_since = self.down_since or self.failed_at
            await asyncio.sleep(_PAUSES[min(in_a_row, len(_PAUSES) - 1)])

    def _trust(self) -> None:
        self.down_since = None


class Process:
    """The realtime process of the running event loop."""

    _of_loops: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Process]] = WeakKeyDictionary()

    id: str
    listener: Listener
    sockets: set[OpenSocket]

    def __init__(self) -> None:
        self.id = random_bytes(6).hex()
        self.host = socket.gethostname()
        self.started_at = time()
        self.sockets = set()
        self.ended = 0  # sockets that were open
        self.admission = Admission()
        self.unanswered = Shares(
            "The messages that wait", _MOST_UNANSWERED, _MOST_UNANSWERED_OF_ADDRESS
        )
        self.listener = Listener()
        self.closed: Counter[int] = Counter()
        self._parts: dict[type, Part] = {}
        self._runs = [_Run("listener", self.listener.run)]
        self._runs.append(_Run("reports", lambda: reports.report(self.id, self.status)))

    @classmethod
    def current(cls) -> Process:
        """Return the process of the running event loop, started by the first call."""
        loop = asyncio.get_running_loop()
        process = cls._of_loops.get(loop)
        if process is None:
            process = cls._of_loops[loop] = cls()
        return process

    @classmethod
    async def stop_current(cls) -> None:
        """End the process of the running event loop, if there is one."""
        process = cls._of_loops.get(asyncio.get_running_loop())
        if process is not None:
            await process.stop()

    def part(self, kind: type[P]) -> P:
        """Return the process's only part of this kind, made and started at the first call."""
        part = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = kind(self)
            self._runs.append(_Run(part.name, part.run))
        return cast(P, part)

    @property
    def is_ready(self) -> bool:
        """Whether every part has been running for ``_PROBATION`` seconds."""
        return all(run.is_up for run in self._runs)

    @property
    def is_hopeless(self) -> bool:
        """Whether a part has been down for so long that the process should be restarted."""
        return any(run.is_hopeless for run in self._runs)

    def count_closed(self, code: int) -> None:
        """Count a connection that the service closed with this code."""
        self.closed[code] += 1

    def status(self) -> dict[str, Any]:
        """Return the state as JSON: counts of sockets by kind, each part's status."""
        parts = {part.name: part.status() for part in self._parts.values()}
        return {
            "id": self.id,
            "host": self.host,
            "pid": os.getpid(),
            "startedAt": self.started_at,
            "ready": self.is_ready,
            "connections": dict(Counter(part.kind for part in self.sockets)),
            "refused": {str(status): count for status, count in self.admission.refused.items()},
            "closed": {str(code): count for code, count in self.closed.items()},
            "listening": self.listener.is_connected,
            "failures": {part.name: part.failures for part in self._runs if part.failures},
            "parts": parts,
        }

    async def stop(self) -> None:
        """Close all sockets with 1001 and end every task."""
        self.admission.is_closed = True
        for open_socket in tuple(self.sockets):
            open_socket.close_with(_GOING_AWAY)
        running = {run.task for run in self._runs}
        while running:
            # Repeatedly, since libraries can swallow a cancellation.
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=_CANCELLED_WITHIN)
        await reports.withdraw(self.id)
        Process._of_loops.pop(asyncio.get_running_loop(), None)

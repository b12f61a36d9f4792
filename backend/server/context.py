"""What the connections of one process share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from backend.server import handoff
from backend.server.connections import Connections
from backend.server.dispatcher import Dispatcher
from backend.server.limits import Limits
from backend.server.requests.bodies import Spool
from backend.server.requests.head_cache import HeadCache
from backend.server.requests.request import Application, Request
from backend.server.responses.heads import Response
from backend.server.responses.long_bodies import Closing
from backend.server.shares import ALONE, Share

Environ = dict[str, Any]

_STREAMING_THREADS: Final = 2
"""Threads that read long responses; up to four times as many while some of them are slow."""
_TICK: Final = 0.05
"""Seconds between two runs of the periodic checks."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The application, and what it decides for the server. The functions never block."""

    application: Application
    is_proxy: Callable[[str], bool]
    """Whether connections from this peer address come from a trusted proxy."""
    client_address: Callable[[Environ], str]
    body_limit: Callable[[Environ], int]
    """Bytes that the body of this request may have, by its route and its headers."""
    answers_too_large: Callable[[Environ], bool]
    """Whether the application answers a body over the limit itself, by ``CONTENT_LENGTH``."""
    inline: Container[str]
    """Paths, as in ``PATH_INFO``, that the event loop answers: they never wait for I/O."""
    apart: Container[str]
    """Paths that run in threads which other requests don't use."""
    spool_folder: Callable[[], Path]
    realtime: str = ""
    """The Unix socket that takes WebSocket handshakes; empty if there is none."""
    end_thread: Callable[[], None] = lambda: None
    is_working: Callable[[int, float], bool] = lambda thread, seconds: False
    """Whether a thread (its number) may have been running a request for so many seconds. If no
    thread may while requests wait for ``Limits.stall_time``, the process counts as hung."""
    prepare: Callable[[Environ], object] = lambda _: None
    """Called before a head is cached. What it keeps in the environment is in that of later requests
    with the same header lines, so it must depend on them alone, and never be changed."""


class Server:
    """One process's connections, threads and limits. Call it in the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        rules: Rules,
        limits: Limits,
        threads: int,
        share: Share = ALONE,
    ) -> None:
        self.loop = loop
        self.share = share
        share.note(0)
        self.limits = limits
        self.application = rules.application
        self.is_proxy = rules.is_proxy
        self.client_address = rules.client_address
        self.body_limit = rules.body_limit
        self.answers_too_large = rules.answers_too_large
        self.prepare = rules.prepare
        self.is_stopping = False
        self.heads = HeadCache()
        self.connections = Connections(limits)
        self.spool = Spool(limits, rules.spool_folder)
        self.environ: Environ = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": _NoErrors(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        self._rules = rules
        self.requests = self._dispatcher(limits, threads, "request")
        self._apart = self._dispatcher(limits, 1, "apart")
        # A connection has one turn at most, so turns need no limit of their own.
        turns = replace(limits, waiting=sys.maxsize, waiting_per_address=sys.maxsize, wait_time=inf)
        self.turns = self._dispatcher(turns, _STREAMING_THREADS, "streaming")
        self._ticking = loop.call_later(_TICK, self._tick)

    def _dispatcher(self, limits: Limits, threads: int, name: str) -> Dispatcher:
        rules = self._rules
        return Dispatcher(self.loop, limits, threads, rules.end_thread, name, rules.is_working)

    def is_stalled(self) -> bool:
        """Whether requests wait that no thread will take."""
        return any(each.is_stalled() for each in (self.requests, self._apart, self.turns))

    def _tick(self) -> None:
        self._ticking = self.loop.call_later(_TICK, self._tick)
        self.requests.tick()
        self._apart.tick()
        self.turns.tick()
        self.connections.sweep(self.loop.time())
        if not self.is_stopping:
            self.share.note(len(self.connections))

    def submit(self, request: Request) -> None:
        """Run a complete request in the event loop or in a thread, as ``Rules`` decide."""
        path = request.environ["PATH_INFO"]
        if path in self._rules.inline:
            # Later: a packet full of such requests would block all other connections.
            self.loop.call_soon(_run_inline, request)
        elif path in self._rules.apart:
            self._apart.submit(request)
        else:
            self.requests.submit(request)

    def pass_on(self, descriptor: int, data: bytes) -> bool:
        """Give a connection to the realtime process; False if it can't be reached."""
        return bool(self._rules.realtime) and handoff.pass_on(
            self._rules.realtime, descriptor, data
        )

    def discard(self, response: Response, address: str) -> None:
        """Close a response that isn't sent."""
        if response.close is not None:
            self.turns.submit(Closing(response.close, address))

    def end(self) -> None:
        """Stop the periodic checks, and the threads once their queues are empty."""
        self._ticking.cancel()
        self.requests.end()
        self._apart.end()
        self.turns.end()


def _run_inline(request: Request) -> None:
    request.finish(request.run())


class _NoErrors:
    """``wsgi.errors``: discards everything. The service logs through ``backend.logs.setup``."""

    def write(self, text: str) -> int:
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        return None

    def flush(self) -> None:
        return None

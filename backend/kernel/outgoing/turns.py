"""Turns: how many requests to other servers a process waits for at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Final

from django.conf import settings

from backend.kernel.outgoing.failures import Unreachable
from backend.kernel.outgoing.urls import origin_of

PATIENCE: Final = 2.0  # seconds to wait for other threads
_MAX_SERVERS: Final = 1000  # slow servers that are remembered


@contextmanager
def turn(url: str) -> Iterator[None]:
    """Hold a turn for a request to the server of ``url`` while the block runs.

    - One server has at most half of the threads, so that a server that hangs doesn't hold them all.
    - All servers have three quarters. Above half, only servers without a turn get one.
    - Other requests wait up to ``PATIENCE`` seconds, unless every request of their server has
      already taken longer.

    Each of these shares is at least one request. Raises ``Unreachable`` for requests that get no
    turn.
    """
    with _turns().turn(origin_of(url)):
        yield


@contextmanager
def spare_turn() -> Iterator[bool]:
    """Hold a turn for a request that may as well be sent later, if one is free. Yields whether the
    block has it.

    A quarter of the threads may have such turns, of the three quarters for all requests.
    """
    with _turns().spare_turn() as has_turn:
        yield has_turn


class Turns:
    """The turns of one process: requests that are running, and threads that wait for a turn."""

    def __init__(self, threads: int, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._half = max(1, threads // 2)
        self._quarter = max(1, threads // 4)
        self._changed = threading.Condition()
        self._running: list[tuple[str, float]] = []  # servers, and when the requests began
        self._waiting = 0
        self._spare = 0
        self._slow: dict[str, None] = {}  # whose last request took longer than the patience

    @contextmanager
    def turn(self, server: str) -> Iterator[None]:
        """Hold a turn for a request to a server while the block runs. Raises ``Unreachable``."""
        with self._changed:
            if not (self._is_free(server) or self._wait_for_turn(server)):
                raise Unreachable("too many requests wait for responses of other servers")
            request = (server, monotonic())
            self._running.append(request)
        try:
            yield
        finally:
            self._end(request)

    @contextmanager
    def spare_turn(self) -> Iterator[bool]:
        """Hold a turn that others need more, if one is free. Yields whether the block has it."""
        with self._changed:
            is_free = self._spare < self._quarter and self._is_thread_left()
            self._spare += is_free
        try:
            yield is_free
        finally:
            with self._changed:
                self._spare -= is_free

    def _is_thread_left(self) -> bool:
        threads = len(self._running) + self._waiting + self._spare
        return threads < self._half + self._quarter

    def _is_free(self, server: str) -> bool:
        if len(self._running) < self._half:
            return True
        has_none = all(other != server for other, _ in self._running)
        return has_none and self._is_thread_left()

    def _wait_for_turn(self, server: str) -> bool:
        """Wait for a turn; return whether there is one."""
        if not self._is_thread_left():
            return False
        end = monotonic() + self.patience
        self._waiting += 1
        try:
            while not self._is_slow(server) and (left := end - monotonic()) > 0:
                self._changed.wait(left)
                if len(self._running) < self._half:
                    return True
            return False
        finally:
            self._waiting -= 1

    def _is_slow(self, server: str) -> bool:
        late = monotonic() - self.patience
        own = [began_at for other, began_at in self._running if other == server]
        return server in self._slow or (bool(own) and max(own) < late)

    def _end(self, request: tuple[str, float]) -> None:
        server, began_at = request
        with self._changed:
            self._running.remove(request)
            self._slow.pop(server, None)
            if monotonic() - began_at > self.patience:
                self._slow[server] = None
                if len(self._slow) > _MAX_SERVERS:
                    del self._slow[next(iter(self._slow))]
            self._changed.notify_all()


_of_worker = 0


def set_threads(count: int) -> None:
    """Set how many threads this process has, if it has more than ``WEB_THREADS``."""
    global _of_worker
    _of_worker = count
    _turns.cache_clear()


@cache
def _turns() -> Turns:
    return Turns(max(settings.WEB_THREADS, _of_worker))

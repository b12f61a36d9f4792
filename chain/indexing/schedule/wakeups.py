"""A network's next step as soon as its node tells of a new block, instead of at the next poll.

In the process that follows networks, a thread listens for new heads, and a few others take the
step at once, not through the queue. Polls are rarer while that works
(``chain.indexing.schedule.polls``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final

from celery import signals
from django.db import close_old_connections, connections

from backend.logs.setup import get_logger
from chain.indexing.schedule import polls
from chain.rpc.endpoints import socket_urls
from chain.rpc.subscriptions import Subscriptions

THREADS: Final = 8

log = get_logger("chain")


class Waker:
    """Does ``work`` for networks on a few threads: for each of them once at a time, and once more
    if it was woken meanwhile."""

    def __init__(self, work: Callable[[int], None], threads: int = THREADS) -> None:
        self._work = work
        self._waiting: SimpleQueue[int | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._again: set[int] = set()
        self._threads = [
            threading.Thread(target=self._run, name=f"chain-wake-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def wake(self, network_id: int) -> None:
        """Returns at once, however often it is called."""
        with self._lock:
            if network_id in self._busy:
                self._again.add(network_id)
                return
            self._busy.add(network_id)
        self._waiting.put(network_id)

    def stop(self, seconds: float = 3.0) -> None:
        """Take no more steps, and wait so long for those that are under way."""
        for _ in self._threads:
            self._waiting.put(None)
        end = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))

    def _run(self) -> None:
        try:
            while (network_id := self._waiting.get()) is not None:
                self._step(network_id)
        finally:
            connections.close_all()  # this thread's

    def _step(self, network_id: int) -> None:
        try:
            close_old_connections()
            self._work(network_id)
        except Exception as error:
            log.exception("a step failed", network=network_id, error=type(error).__name__)
        with self._lock:
            if network_id in self._again:
                self._again.discard(network_id)
                self._waiting.put(network_id)
            else:
                self._busy.discard(network_id)


class _Listener:
    """Has a network polled when its subscription says something, or ends."""

    def __init__(self, waker: Waker) -> None:
        self._waker = waker

    def opened(self, network_id: int) -> None:
        polls.heads_of(network_id).opened()
        self._waker.wake(network_id)  # there may have been blocks before it

    def announced(self, network_id: int, height: int | None) -> None:
        if polls.heads_of(network_id).announced(height, monotonic()):
            self._waker.wake(network_id)

    def closed(self, network_id: int) -> None:
        if polls.heads_of(network_id).closed():
            self._waker.wake(network_id)


class _Running:
    """What listens in this process, if anything does."""

    waker: Waker | None = None
    subscriptions: Subscriptions | None = None


def install() -> None:
    """Listen while the Celery worker of this process runs."""
    signals.worker_ready.connect(begin)
    signals.worker_shutting_down.connect(end)


def begin(**kwargs: Any) -> None:
    _Running.waker = Waker(polls.poll)
    _Running.subscriptions = Subscriptions(_urls, _Listener(_Running.waker))
    _Running.subscriptions.start()


def end(**kwargs: Any) -> None:
    if _Running.subscriptions is not None and _Running.waker is not None:
        _Running.subscriptions.stop()
        _Running.waker.stop()
    _Running.subscriptions = _Running.waker = None
    polls.forget()


def _urls() -> dict[int, str]:
    try:
        return socket_urls()
    finally:
        connections.close_all()  # this thread's

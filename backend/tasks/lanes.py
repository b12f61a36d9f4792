"""Lanes: places of a worker's threads for tasks that wait for other servers.

Each kind of such tasks has a lane, and each server its share of the lane. A task that gets no place
ends at once and is sent again when there is one. So a server that is slow, or never answers, delays
only what is for itself: other servers have places left in the lane, and tasks of other kinds have
threads that no lane uses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from math import inf
from time import monotonic, sleep
from typing import Any, Final

from celery import Task
from celery.exceptions import Ignore, Reject
from django.conf import settings

from backend.logs.setup import get_logger
from backend.tasks import broker, overflow
from backend.tasks.broker import BrokerAway

_MAX_WAITING: Final = 1000  # calls that wait for a place
_MAX_SERVERS: Final = 1000  # servers whose last tasks are remembered
_ENOUGH: Final = 3
"""Tasks of a server in a row that have to be quick before it counts as quick."""

log = get_logger("lanes")


class _Place:
    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.since = monotonic()


class Lane:
    """At most ``places`` tasks at the same moment in this process, and ``share`` for one server.

    A server is quick if none of its tasks holds its place for more than ``slow`` seconds, and its
    last three didn't. Every other one has half of that share, and all of them together have half of
    the lane, so servers that are slow or unknown leave places to those that are quick.
    """

    def __init__(self, places: int, share: int, slow: float = inf) -> None:
        self.places = places
        self.share = share
        self._slow_after = slow
        self._lock = threading.Lock()
        self._held: list[_Place] = []
        self._quick: dict[str, int] = {}  # tasks in a row, up to ``_ENOUGH``
        self._waiting: dict[tuple[str, Hashable], Callable[[], object]] = {}

    @contextmanager
    def place(self, peer: str) -> Iterator[bool]:
        """Hold a place for a request to ``peer`` while the block runs, if one is free. Yields
        whether the block has it."""
        with self._lock:
            place = _Place(peer) if self._has_room(peer) else None
            if place is not None:
                self._held.append(place)
        try:
            yield place is not None
        finally:
            if place is not None:
                self._leave(place)

    def call_with_room(self, peer: str, key: Hashable, call: Callable[[], object]) -> None:
        """Call ``call`` once there is room for ``peer``: now, or when a place becomes free.

        Waiting calls with the same ``key`` are called once. A call is dropped if a thousand already
        wait, or if the process ends.
        """
        with self._lock:
            has_room = self._has_room(peer)
            if not has_room and len(self._waiting) < _MAX_WAITING:
                self._waiting.setdefault((peer, key), call)
        if has_room:
            call()

    def _leave(self, place: _Place) -> None:
        with self._lock:
            self._held.remove(place)
            self._note(place.peer, is_quick=monotonic() - place.since <= self._slow_after)
            call = self._next_waiting()
        if call is None:
            return
        try:
            call()
        except Exception:  # it isn't about the task whose place became free
            log.exception("a task that waited for a place wasn't started")

    def _next_waiting(self) -> Callable[[], object] | None:
        for waiting in self._waiting:
            if self._has_room(waiting[0]):
                return self._waiting.pop(waiting)
        return None

    def _note(self, peer: str, *, is_quick: bool) -> None:
        before = self._quick.pop(peer, 0)
        if is_quick:
            self._quick[peer] = min(_ENOUGH, before + 1)
            if len(self._quick) > _MAX_SERVERS:
                del self._quick[next(iter(self._quick))]

    def _has_room(self, peer: str) -> bool:
        if len(self._held) >= self.places:
            return False
        late = monotonic() - self._slow_after
        slow = {place.peer for place in self._held if place.since < late}

        def is_quick(server: str) -> bool:
            has_been = self._slow_after == inf or self._quick.get(server) == _ENOUGH
            return has_been and server not in slow

        own = sum(place.peer == peer for place in self._held)
        if is_quick(peer):
            return own < self.share
        others = sum(not is_quick(place.peer) for place in self._held)
        return own < max(1, self.share // 2) and others < max(1, self.places // 2)


WEBHOOKS: Final = Lane(4, share=2, slow=1.0)
"""Deliveries, by the receivers' origins."""
PUSHES: Final = Lane(4, share=2, slow=20.0)
"""Turns of pushes, by the services that they are sent to; a turn takes 15 seconds where these are
quick."""
MAILS: Final = Lane(2, share=2)
"""Emails; there is one mail server."""
TRIGGERS: Final = Lane(4, share=2, slow=1.0)
"""Background triggers, which may call servers; each counts as a server."""
_FREE: Final = 2
"""Threads for tasks that wait for no other server."""
THREADS: Final = sum(lane.places for lane in (WEBHOOKS, PUSHES, MAILS, TRIGGERS)) + _FREE
"""Threads of a process of the worker."""

BACKFILLS: Final = Lane(4, share=1)
"""Reading the history of networks, by network."""
_CHAINS_OF_SMALL: Final = 6
SMALL_THREADS: Final = THREADS + BACKFILLS.places + _CHAINS_OF_SMALL
"""Threads of the worker of a small machine, which has the tasks of networks too."""


def threads() -> int:
    """Return how many threads and processes of workers run tasks on this machine."""
    if settings.PROFILE == "small":
        return SMALL_THREADS + settings.JOB_CONCURRENCY
    worker = settings.CELERY_WORKER_CONCURRENCY * THREADS
    backfill = settings.BACKFILL_CONCURRENCY * BACKFILLS.places
    return worker + backfill + settings.CHAIN_CONCURRENCY + settings.JOB_CONCURRENCY


@cache
def chains() -> Lane:
    """Return the lane for the heads and transactions of networks."""
    is_small = settings.PROFILE == "small"
    return Lane(_CHAINS_OF_SMALL if is_small else settings.CHAIN_CONCURRENCY, share=4, slow=5.0)


@contextmanager
def task_place(task: Task[Any, Any], lane: Lane, peer: str) -> Iterator[None]:
    """Hold a place while the block runs, for a task that exists only as a message.

    Without a place the message moves to the overflow of its server and this raises ``Ignore``; that
    doesn't count as an attempt.
    """
    name = f"{task.name}:{peer}"
    start_next = partial(overflow.start_next, name)
    with lane.place(peer) as has_place:
        if not has_place:
            try:
                overflow.put(task, name)
            except BrokerAway as error:
                sleep(broker.PATIENCE)  # it comes back at once
                raise Reject(str(error), requeue=True) from error
            lane.call_with_room(peer, name, start_next)
            raise Ignore
        # Also what other processes have put there.
        lane.call_with_room(peer, name, start_next)
        yield

"""Turns: how many requests to other servers a process waits for at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from django.conf import settings

from backend.kernel.outgoing.failures import Unreachable

PATIENCE: Final = 2.0  # seconds to wait for other threads


@contextmanager
def turn() -> Iterator[None]:
    """One of the requests that the process may wait for at the same moment.

    At most half of the threads send requests, and at most a quarter wait for their turn: a receiver
    that hangs must not hold every thread of the process. Raises ``Unreachable`` if the others take
    too long, or if too many wait already.
    """
    turns = _turns()
    if not turns.acquire(blocking=False) and not _waited_for(turns):
        raise Unreachable("too many requests are waiting for answers")
    try:
        yield
    finally:
        turns.release()


def _waited_for(turns: threading.BoundedSemaphore) -> bool:
    places = _waiting_places()
    if not places.acquire(blocking=False):
        return False
    try:
        return turns.acquire(timeout=PATIENCE)
    finally:
        places.release()


@cache
def _turns() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 2))


@cache
def _waiting_places() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))

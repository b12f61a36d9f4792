"""Polls of a network's head, and when the next one is due.

``chain.dispatch`` has each network polled at its interval. The process that has a subscription
to the network's new heads polls at each of them, and defers the next poll of the interval for as
long as ``chain.core.blocks.heads`` trusts the subscription. That is a moment in the cursor's
``next_poll_at`` and nothing else: when the process dies or hears nothing more, it passes.
"""

from __future__ import annotations

import random
from datetime import timedelta
from threading import Lock
from time import monotonic
from typing import NamedTuple

from django.db.models import DateTimeField, Value
from django.db.models.functions import Coalesce, Least, Now

from chain.core.blocks.heads import LONGEST_PAUSE, Heads
from chain.indexing import head as following
from chain.models import Blockchain, Cursor
from chain.models.expressions import in_seconds
from objects.database.orm import orm_queries

_heads: dict[int, Heads] = {}
_lock = Lock()


class _State(NamedTuple):
    head: int | None
    interval: float
    """Seconds."""
    is_read: bool


def heads_of(network_id: int) -> Heads:
    """What this process knows of a network's heads, for its subscription."""
    with _lock:
        return _heads.setdefault(network_id, Heads())


def forget() -> None:
    """Start like a new process, without subscriptions."""
    with _lock:
        _heads.clear()


def poll(network_id: int) -> None:
    """Read what a network has got since, as ``following.follow`` does, and decide when it is polled
    next, if this process has a subscription to its heads."""
    heads = _heads.get(network_id)
    before = None if heads is None else heads.newest
    is_complete = following.follow(network_id)
    if heads is not None:
        _set_next(network_id, heads, before, is_complete)


def _set_next(network_id: int, heads: Heads, before: int | None, is_complete: bool) -> None:
    state = _state(network_id)
    if state is None:
        return
    interval, pause, now = state.interval, None, monotonic()
    if is_complete and state.head is not None:
        heads.compare(before, state.head, now, interval)
        # Blocks that other providers don't have yet are read by the next poll, not the next head.
        pause = heads.pause(now, interval) if state.is_read else None
    cursors = Cursor.objects.filter(network_id=network_id)
    if pause is None:
        usual = in_seconds(interval)
        with orm_queries():
            cursors.filter(next_poll_at__gt=usual).update(next_poll_at=usual)
        return
    # At moments that have nothing to do with the blocks, so that polls see a subscription being
    # late.
    longest = timedelta(seconds=max(interval, LONGEST_PAUSE * random.uniform(0.8, 1.0)))
    latest = Coalesce("polled_at", Now()) + Value(longest)
    with orm_queries():
        cursors.filter(next_poll_at__isnull=False).update(
            next_poll_at=Least(in_seconds(pause), latest, output_field=DateTimeField())
        )


def _state(network_id: int) -> _State | None:
    """How far a network has been read; None for one that isn't followed."""
    with orm_queries():
        cursor = Cursor.objects.filter(network_id=network_id).first()
        network = Blockchain.objects.filter(network_id=network_id, active=True).first()
    if cursor is None or network is None:
        return None
    is_read = (
        cursor.number is not None
        and cursor.head is not None
        and cursor.number >= cursor.head - network.confirmations
        and cursor.trouble is None
        and cursor.halted is None
    )
    return _State(cursor.head, network.poll_interval / 1000, is_read)

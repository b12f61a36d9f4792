"""Polls of a network's head, and when the next one is due.

``chain.dispatch`` has each network polled at its interval. The process that has a subscription
to the network's new heads polls at each of them, and defers the next poll of the interval for as
long as ``chain.core.blocks.heads`` trusts the subscription. That is a moment in the cursor's
``next_poll_at`` and nothing else: when the process dies or hears nothing more, it passes.
"""

from __future__ import annotations

import random
from threading import Lock
from time import monotonic
from typing import Annotated, Final, NamedTuple

from chain.core.blocks.heads import LONGEST_PAUSE, Heads
from chain.indexing import head as following
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows

_heads: dict[int, Heads] = {}
_lock = Lock()


class _State(NamedTuple):
    head: int | None
    interval: Annotated[float, "b.poll_interval / 1000.0"]
    is_read: Annotated[
        bool | None,
        "{row}.number >= {row}.head - b.confirmations"
        " AND {row}.trouble IS NULL AND {row}.halted IS NULL",
    ]


_STATE: Final = f"""
SELECT {select_list(_State, "c")}
  FROM chain_cursor c JOIN chain_blockchain b ON b.network_id = c.network_id AND b.active
 WHERE c.network_id = %(network)s
"""
_DEFER: Final = """
UPDATE chain_cursor
   SET next_poll_at = LEAST(statement_timestamp() + make_interval(secs => %(pause)s),
                            COALESCE(polled_at, statement_timestamp())
                            + make_interval(secs => %(longest)s))
 WHERE network_id = %(network)s AND next_poll_at IS NOT NULL
"""
_RESTORE: Final = """
UPDATE chain_cursor SET next_poll_at = statement_timestamp() + make_interval(secs => %(interval)s)
 WHERE network_id = %(network)s
   AND next_poll_at > statement_timestamp() + make_interval(secs => %(interval)s)
"""


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
    rows = fetch_rows(_State, _STATE, {"network": network_id}, prepare=True)
    if not rows:
        return
    [(head, interval, is_read)] = rows
    now, pause = monotonic(), None
    if is_complete and head is not None:
        heads.compare(before, head, now, interval)
        # Blocks that other providers don't have yet are read by the next poll, not the next head.
        pause = heads.pause(now, interval) if is_read else None
    if pause is None:
        fetch(_RESTORE, {"network": network_id, "interval": interval}, prepare=True)
        return
    # At moments that have nothing to do with the blocks, so that polls see a subscription being
    # late.
    longest = max(interval, LONGEST_PAUSE * random.uniform(0.8, 1.0))
    params = {"network": network_id, "pause": pause, "longest": longest}
    fetch(_DEFER, params, prepare=True)

"""Blocks of history that no provider has, since nodes prune them.

Some return an error for such blocks, some have no headers of them, some return no logs as if there
were none. So a node has to show that it has the receipts of the first block of a range that has
transactions; it has those of later ones then. Where no provider has, the rest of the range is read,
and a row of its own stands for what is missing. It is checked again every minute, and read as
soon as a provider has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.failures import (
    EmptyPromise,
    Moved,
    NoAnswer,
    NodeFailure,
    Refused,
    SlowDown,
    TryAgain,
)
from chain.core.node import Node
from chain.indexing import verification
from chain.indexing.coverage import note_read
from chain.indexing.history.progress import Group, Lost
from chain.indexing.storage import cursors
from chain.models import Backfill
from objects.database import maintenance

_SCANNED: Final = 16 * verification.WIDTH
"""Blocks of which the first one with transactions is searched for."""
_PAUSE: Final = timedelta(seconds=60)
_SECONDS: Final = 60.0  # of one provider, a request after the other
_PROVIDERS: Final = 100

log = get_logger("chain")


def has_history(node: Node, first: int, last: int) -> bool:
    """Whether the node has the block ``first``, and the receipts of the first block from there to
    ``last`` that has transactions, if it is near. Raises ``NodeFailure``."""
    heights = [range(first, first + 1)]
    heights += [
        range(start, start + verification.WIDTH)
        for start in range(first + 1, first + _SCANNED, verification.WIDTH)
    ]
    for window in heights:
        for header in node.headers([height for height in window if height <= last]):
            if header is None:
                return False
            if header.transactions != []:
                return verification.has_receipts(node, header)
    return True


@contextmanager
def provider_trouble() -> Iterator[None]:
    """Raise ``TryAgain`` for what a provider refuses or doesn't have of final blocks: they don't
    move, and another provider may have them."""
    try:
        yield
    except (EmptyPromise, Moved, Refused) as failure:
        raise TryAgain(str(failure)) from failure


def set_aside(group: Group, final: int) -> bool:
    """Set the first blocks of a group aside if no provider has them, and let the group begin with
    those that one has. Return whether any were."""
    last = min(*group.lasts, final)
    start = _first_available(group.network_id, group.first, last)
    if start is None or start == group.first:
        return False
    _divide(group, start)
    log.error(
        "no provider has blocks of a backfill",
        network=group.network_id,
        first=group.first,
        last=start - 1,
    )
    return True


def look_again(group: Group, final: int) -> None:
    """Let a group that was set aside be read as far as a provider has its blocks now."""
    last = min(*group.lasts, final)
    start = _first_available(group.network_id, group.first, last)
    _divide(group, last + 1 if start is None else start)


def _first_available(network_id: int, first: int, last: int) -> int | None:
    """The first of these final blocks that a provider has with its receipts, ``last + 1`` if none
    has any; None if no provider can be used."""
    search = partial(first_held, first=first, last=last)
    starts = rpc.ask_several(network_id, search, most=_PROVIDERS, seconds=_SECONDS, each=True)
    return min(starts, default=None)


def first_held(node: Node, *, first: int, last: int) -> int:
    """Return the first of these blocks that a node has, ``last + 1`` if it has none.

    Raises ``SlowDown`` and ``NoAnswer``.
    """
    try:
        if not has_history(node, last, last):
            return last + 1
    except (Moved, Refused):
        return last + 1
    if _holds(node, first, last):
        return first
    without, held = first, last
    while held - without > 1:
        middle = (without + held) // 2
        if _holds(node, middle, last):
            held = middle
        else:
            without = middle
    return held


def _holds(node: Node, first: int, last: int) -> bool:
    """As ``has_history``. An error means that it hasn't: nodes word it in many ways.

    Raises ``SlowDown``, and ``NoAnswer``, which says nothing of the blocks.
    """
    try:
        return has_history(node, first, last)
    except (SlowDown, NoAnswer):
        raise
    except NodeFailure:
        return False


def _divide(group: Group, start: int) -> None:
    """Let the rows of a group go on with the block ``start``. What lies before it becomes a row of
    its own for each that is set aside, and all of it if nothing is left."""
    aside: dict[str, Any] = {
        "unavailable": True,
        "trouble": _trouble(group.first, start - 1),
        "paused_until": Now() + _PAUSE,
    }
    with transaction.atomic():
        maintenance.check()
        if cursors.lock(group.network_id) is None:
            raise Lost  # the network was removed
        rows = Backfill.objects.filter(
            pk__in=group.ids, next_block=group.first, seeking=False, done_at=None
        )
        for row in rows:
            changes: dict[str, Any] = {
                "unavailable": False,
                "trouble": None,
                "failures": 0,
                "paused_until": None,
            }
            if start > row.last_block:
                changes = aside
            elif start > row.next_block:
                note_read(row.network_id, row.address, (row.first_block, row.next_block - 1))
                Backfill.objects.create(
                    network_id=row.network_id,
                    address=row.address,
                    first_block=row.next_block,
                    next_block=row.next_block,
                    last_block=start - 1,
                    asked=row.asked,
                    **aside,
                )
                changes |= {"first_block": start, "next_block": start}
            Backfill.objects.filter(pk=row.pk).update(**changes)


def _trouble(first: int, last: int) -> str:
    return (
        f"No provider that responds has the blocks {first:,} to {last:,}: their events are missing."
        " Add a provider that has the whole history (an archive node), which is then read"
        f" automatically, or set the contract's startBlock to {last + 1}."
    )

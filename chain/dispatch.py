"""What is due on which network.

Each network has tasks of its own, which expire when the next ones are sent: a network that doesn't
answer keeps one thread, and no queue grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from celery import Task
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from chain.core.transactions.states import LATE_DELAY
from chain.models import Backfill, Blockchain, Cursor, Transaction
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.database.statements import fetch_rows

_SECONDS: Final = 5.0  # until a task that no worker has taken is dropped

log = get_logger("chain")

# SQL, since the update returns what it has claimed.
# Polls are due on a tick of beat, which comes each second: those that would be due before the
# middle of the next second are due now, so that an interval of two seconds doesn't become three.
# A last poll in the future says that the clock was set back.
_DUE = """
UPDATE chain_cursor c SET polled_at = statement_timestamp(), next_poll_at = statement_timestamp()
       + make_interval(secs => b.poll_interval / 1000.0)
  FROM chain_blockchain b
 WHERE b.network_id = c.network_id AND b.active
   AND (c.next_poll_at IS NULL OR c.next_poll_at <= statement_timestamp() + interval '0.5 s'
        OR c.polled_at > statement_timestamp() + interval '1 s')
RETURNING c.network_id, b.poll_interval
"""
_FARTHEST: Final = timedelta(milliseconds=LATE_DELAY, minutes=1)


class _Due(NamedTuple):
    network_id: int
    poll_interval: int


def networks() -> list[int]:
    """The networks that are followed."""
    blockchains = Blockchain.objects.filter(active=True, network_id__isnull=False)
    return [*blockchains.order_by("network_id").values_list("network_id", flat=True)]


def dispatch() -> None:
    """Send the tasks that are due. Called each second; twice at once is harmless."""
    if maintenance.is_chain_paused():
        return
    with orm_queries():
        active = networks()
        _add_cursors(active)
        with_checks = _with_checks(active)
        with_backfills = _with_backfills(active)
    for row in fetch_rows(_Due, _DUE, (), prepare=True):
        expires = max(1.0, row.poll_interval / 1000)
        task("chain.follow").apply_async((row.network_id,), expires=expires)
    for network_id in with_checks:
        task("chain.check_due").apply_async((network_id,), expires=1.0)
    for network_id in with_backfills:
        task("chain.backfill").apply_async((network_id,), expires=1.0)


def _add_cursors(network_ids: Sequence[int]) -> None:
    existing = Cursor.objects.filter(network_id__in=network_ids)
    missing = {*network_ids}.difference(existing.values_list("network_id", flat=True))
    if missing:
        Cursor.objects.bulk_create(
            [Cursor(network_id=network_id) for network_id in sorted(missing)], ignore_conflicts=True
        )


def _with_checks(network_ids: Sequence[int]) -> list[int]:
    """The networks with transactions whose check is due."""
    due = Transaction.objects.filter(
        network_id__in=[str(network_id) for network_id in network_ids], next_check_at__lte=Now()
    )
    return [int(each) for each in due.order_by().values_list("network_id", flat=True).distinct()]


def _with_backfills(network_ids: Sequence[int]) -> list[int]:
    """The networks whose history is to be read. Contracts that have changed are planned by the
    backfill, too."""
    is_open = Exists(Backfill.objects.filter(network_id=OuterRef("network_id"), done_at=None))
    is_unplanned = ~Q(planned=F("contracts")) & Q(number__isnull=False, halted=None)
    cursors = Cursor.objects.filter(is_open | is_unplanned, network_id__in=network_ids)
    return [*cursors.order_by("network_id").values_list("network_id", flat=True)]


def bring_checks_forward() -> None:
    """Have transactions checked that would wait for a time which the clock had reached before."""
    # No check is planned as far ahead, but before the clock was set back.
    with orm_queries():
        Transaction.objects.filter(next_check_at__gt=Now() + _FARTHEST).update(next_check_at=Now())


def start_backfills(network_id: int) -> None:
    """Have a network's history read when the transaction has been committed, without waiting for
    the next ``dispatch``: what there is to be read has changed. If the task is lost, that sends
    another."""
    transaction.on_commit(partial(_start_backfills, network_id), robust=True)


def send_again(name: str, network_id: int) -> None:
    """Send a network's task that got no place. If it is lost, ``dispatch`` sends another."""
    with suppress(BrokerAway):
        broker.send(task(name), network_id, expires=_SECONDS)


def _start_backfills(network_id: int) -> None:
    if not Blockchain.objects.filter(network_id=network_id, active=True).exists():
        return
    cursor = Cursor.objects.filter(network_id=network_id).only("number").first()
    if cursor is None:
        return
    # A network's first poll decides what its history is.
    due = task("chain.follow" if cursor.number is None else "chain.backfill")
    try:
        broker.send(due, network_id, expires=_SECONDS)
    except BrokerAway as error:
        log.warning("no broker; a backfill starts later", exc_info=error)


def for_each_network(each: Task[Any, Any], expires: float = 60.0) -> None:
    """Send a task for each network; one that hasn't begun after ``expires`` seconds is dropped."""
    if not maintenance.is_chain_paused():
        for network_id in networks():
            each.apply_async((network_id,), expires=expires)

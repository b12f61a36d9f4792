"""What is due on which network.

Each network has tasks of its own, which expire when the next ones are sent: a network that doesn't
answer keeps one thread, and no queue grows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from celery import Task
from django.db import transaction

from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from backend.tasks.registered import task
from chain.core.transactions.states import LATE_DELAY
from chain.models import Blockchain, Cursor
from objects.database import maintenance
from objects.database.statements import fetch, fetch_rows, fetch_values

_SECONDS: Final = 5.0  # until a task that no worker has taken is dropped

log = get_logger("chain")

# Looks are due on a tick of beat, which comes each second: those that would be due before the
# middle of the next second are due now, so that an interval of two seconds doesn't become three.
# A last look in the future says that the clock was set back.
_DUE = """
UPDATE chain_cursor c SET polled_at = statement_timestamp(), next_poll_at = statement_timestamp()
       + make_interval(secs => b.poll_interval / 1000.0)
  FROM chain_blockchain b
 WHERE b.network_id = c.network_id AND b.active
   AND (c.next_poll_at IS NULL OR c.next_poll_at <= statement_timestamp() + interval '0.5 s'
        OR c.polled_at > statement_timestamp() + interval '1 s')
RETURNING c.network_id, b.poll_interval
"""
# Contracts that have changed are planned by the backfill, too.
_WITH_BACKFILLS = """
SELECT b.network_id FROM chain_blockchain b JOIN chain_cursor c USING (network_id)
 WHERE b.active AND (
       EXISTS (SELECT FROM chain_backfill f WHERE f.network_id = b.network_id AND f.done_at IS NULL)
       OR c.planned <> c.contracts AND c.number IS NOT NULL AND c.halted IS NULL)
 ORDER BY b.network_id
"""
_WITH_CHECKS = """
SELECT DISTINCT t.network_id FROM chain_transaction t
  JOIN chain_blockchain b ON b.network_id::text = t.network_id AND b.active
 WHERE t.next_check_at <= statement_timestamp()
"""


# No check is planned as far ahead, but before the clock was set back.
_BRING_FORWARD = """
UPDATE chain_transaction SET next_check_at = statement_timestamp()
 WHERE next_check_at > statement_timestamp() + make_interval(secs => %(farthest)s)
"""
_FARTHEST: Final = LATE_DELAY / 1000 + 60.0  # seconds


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
    fetch(
        "INSERT INTO chain_cursor (network_id) SELECT network_id FROM chain_blockchain"
        " WHERE active AND network_id IS NOT NULL ON CONFLICT DO NOTHING",
        (),
        prepare=True,
    )
    for row in fetch_rows(_Due, _DUE, (), prepare=True):
        expires = max(1.0, row.poll_interval / 1000)
        task("chain.follow").apply_async((row.network_id,), expires=expires)
    for network_id in fetch_values(int, _WITH_CHECKS, (), prepare=True):
        task("chain.check_due").apply_async((network_id,), expires=1.0)
    for network_id in fetch_values(int, _WITH_BACKFILLS, (), prepare=True):
        task("chain.backfill").apply_async((network_id,), expires=1.0)


def bring_checks_forward() -> None:
    """Have transactions checked that would wait for a time which the clock had reached before."""
    fetch(_BRING_FORWARD, {"farthest": _FARTHEST}, prepare=True)


def start_backfills(network_id: int) -> None:
    """Have a network's history read when the transaction has been committed, without waiting for
    the next ``dispatch``: what there is to be read has changed. If the task is lost, that sends
    another."""
    transaction.on_commit(partial(_start_backfills, network_id), robust=True)


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

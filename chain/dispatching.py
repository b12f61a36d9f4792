"""What is due on which network.

Each network has tasks of its own, which expire when the next ones are sent: a network that doesn't
answer keeps one thread, and no queue grows.
"""

from __future__ import annotations

from celery import Task

from chain.models import Backfill, Blockchain
from objects import maintenance
from objects.database import fetch

# Looks are due on a tick of beat, which comes each second: those that would be due before the
# middle of the next second are due now, so that an interval of two seconds doesn't become three.
_DUE = """
UPDATE chain_cursor c SET next_poll_at = statement_timestamp()
       + make_interval(secs => b.poll_interval / 1000.0)
  FROM chain_blockchain b
 WHERE b.network_id = c.network_id AND b.active
   AND (c.next_poll_at IS NULL OR c.next_poll_at <= statement_timestamp() + interval '0.5 s')
RETURNING c.network_id, b.poll_interval
"""
_WITH_CHECKS = """
SELECT DISTINCT t.network_id FROM chain_transaction t
  JOIN chain_blockchain b ON b.network_id::text = t.network_id AND b.active
 WHERE t.next_check_at <= statement_timestamp()
"""


def networks() -> list[int]:
    """The networks that are followed."""
    found = Blockchain.objects.filter(active=True, network_id__isnull=False)
    return [*found.order_by("network_id").values_list("network_id", flat=True)]


def dispatch() -> None:
    """Send the tasks that are due. Called each second; twice at once is harmless."""
    from chain.tasks import backfill, check_due, follow

    if maintenance.is_chain_paused():
        return
    fetch(
        "INSERT INTO chain_cursor (network_id) SELECT network_id FROM chain_blockchain"
        " WHERE active AND network_id IS NOT NULL ON CONFLICT DO NOTHING",
        (),
        prepare=True,
    )
    for network_id, interval in fetch(_DUE, (), prepare=True):
        follow.apply_async((int(network_id),), expires=max(1.0, int(interval) / 1000))
    for (network_id,) in fetch(_WITH_CHECKS, (), prepare=True):
        check_due.apply_async((int(network_id),), expires=1.0)
    behind = Backfill.objects.filter(done_at=None, network_id__in=networks())
    for network_id in behind.values_list("network_id", flat=True).distinct().order_by():
        backfill.apply_async((network_id,), expires=1.0)


def for_each_network(task: Task, expires: float = 60.0) -> None:
    """Send a task for each network; one that hasn't begun after ``expires`` seconds is dropped."""
    if not maintenance.is_chain_paused():
        for network_id in networks():
            task.apply_async((network_id,), expires=expires)

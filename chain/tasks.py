"""The tasks of the chain app: each a line that calls what does the work.

All of them may run twice at once or die in the middle; what they call bears that. ``dispatch``
finds out each second what is due, so a task that is lost is sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from celery import shared_task

from backend.tasks import lanes
from backend.tasks.lanes import Lane


@shared_task(name="chain.dispatch", ignore_result=True)
def dispatch() -> None:
    """Scheduled by beat: start what is due on each network."""
    from chain import dispatch as dispatching

    dispatching.dispatch()


@shared_task(name="chain.follow", ignore_result=True)
def follow(network_id: int) -> None:
    """Read the blocks that a network has got since."""
    from chain.indexing.schedule import polls

    _in_lane(lanes.chains(), "chain.follow", polls.poll, network_id)


@shared_task(name="chain.check_due", ignore_result=True)
def check_due(network_id: int) -> None:
    """Check the pending transactions of a network that are due."""
    from chain import monitor

    _in_lane(lanes.chains(), "chain.check_due", monitor.check_due, network_id)


@shared_task(name="chain.backfill", ignore_result=True)
def backfill(network_id: int) -> None:
    """Read some of what lies behind the cursor."""
    from chain.indexing.history import backfill as backfilling

    _in_lane(lanes.BACKFILLS, "chain.backfill", backfilling.advance, network_id)


@shared_task(name="chain.finalize_all", ignore_result=True)
def finalize_all() -> None:
    """Scheduled by beat: mark what has become final, on each network by a task of its own."""
    from chain import dispatch as dispatching

    dispatching.bring_checks_forward()
    dispatching.for_each_network(finalize)


@shared_task(name="chain.finalize", ignore_result=True)
def finalize(network_id: int) -> None:
    """Mark what has become final on a network."""
    from chain import monitor

    _in_lane(lanes.chains(), "chain.finalize", monitor.finalize, network_id)


@shared_task(name="chain.resend_all", ignore_result=True)
def resend_all() -> None:
    """Scheduled by beat: look after the transactions that the service has signed."""
    from chain import dispatch as dispatching

    dispatching.for_each_network(resend)


@shared_task(name="chain.resend", ignore_result=True)
def resend(network_id: int) -> None:
    """Send again what was signed and isn't mined; replace what is stuck."""
    from chain.sending import maintenance

    _in_lane(lanes.chains(), "chain.resend", maintenance.resend, network_id)


@shared_task(name="chain.audit_all", ignore_result=True)
def audit_all() -> None:
    """Scheduled by beat: compare what was read lately with the chain again."""
    from chain import dispatch as dispatching

    # They may take minutes, and wait for backfills and each other.
    dispatching.for_each_network(audit, expires=300.0)


@shared_task(name="chain.audit", ignore_result=True)
def audit(network_id: int) -> None:
    """Compare what is stored of a network with its chain."""
    from chain.indexing.repair import audits

    _in_lane(lanes.BACKFILLS, "chain.audit", audits.audit, network_id)


@shared_task(name="chain.prune", ignore_result=True)
def prune() -> None:
    """Scheduled by beat: remove expired rows."""
    from chain.indexing.storage import retention

    retention.prune()


def _in_lane(lane: Lane, name: str, work: Callable[[int], object], network_id: int) -> None:
    """Do work for a network if its nodes have a place, or send the task again when they have."""
    from chain import dispatch as dispatching

    network = str(network_id)
    with lane.place(network) as has_place:
        if has_place:
            work(network_id)
        else:
            lane.call_with_room(network, name, partial(dispatching.send_again, name, network_id))

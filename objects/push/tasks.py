"""Celery tasks of pushes. Each takes a few seconds: emails don't wait behind a large push."""

from __future__ import annotations

from functools import partial
from time import monotonic

from celery import shared_task

from backend.tasks import lanes
from objects.push import delivery, expansion, retention, statuses
from objects.push.service import continue_sending, start


@shared_task(name="objects.prepare_push", ignore_result=True)
def prepare_push(push_id: str) -> None:
    """Read targets of a push, and have other tasks send to them meanwhile."""
    end = monotonic() + delivery.TURN
    pages = 0
    is_more = True
    while is_more and monotonic() < end:
        is_more = expansion.expand(push_id)
        if pages < delivery.SENDERS or not is_more:
            continue_sending(push_id)
        pages += 1
    statuses.publish(push_id)
    if is_more:
        start(push_id)


@shared_task(name="objects.send_push", ignore_result=True)
def send_push(push_id: str, service: str | None = None) -> None:
    """Send targets of a push to one service that are due; a repeated task sends each of them once.

    Without a service, as older versions have sent it, there is one task for each.
    """
    if service is None:
        continue_sending(push_id)
        return
    again = partial(continue_sending, push_id, service)
    with lanes.PUSHES.place(service) as has_place:
        is_more = has_place and delivery.send(push_id, service)
    if is_more:
        again()
    elif not has_place:
        lanes.PUSHES.call_with_room(service, push_id, again)


@shared_task(name="objects.send_due_pushes", ignore_result=True)
def send_due_pushes() -> None:
    """Start scheduled pushes and attempts that are due, and what a worker or the broker lost."""
    delivery.start_due(start, continue_sending)


@shared_task(name="objects.forget_old_pushes", ignore_result=True)
def forget_old_pushes() -> None:
    """Delete the targets of pushes that ended ``PUSH_RETENTION`` days ago."""
    retention.prune()

"""Celery tasks of webhooks."""

from __future__ import annotations

from celery import shared_task

from functions.webhooks import deliveries


@shared_task(name="functions.deliver", ignore_result=True)
def deliver(hook_id: int) -> None:
    """Send what is due of a webhook; a repeated task sends each delivery only once."""
    deliveries.deliver(hook_id)


@shared_task(name="functions.deliver_due", ignore_result=True)
def deliver_due() -> None:
    """Start webhooks with deliveries that are due, also those that a worker or the broker lost."""
    deliveries.start_due()


@shared_task(name="functions.forget_old_deliveries", ignore_result=True)
def forget_old_deliveries() -> None:
    """Delete old deliveries that have ended."""
    deliveries.prune()

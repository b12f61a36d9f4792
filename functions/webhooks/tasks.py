"""Celery tasks of webhooks."""

from __future__ import annotations

from celery import shared_task

from functions.webhooks import deliveries


@shared_task(name="functions.deliver", ignore_result=True)
def deliver(delivery_id: int) -> None:
    """Send a delivery; a repeated task sends it only once."""
    deliveries.deliver(delivery_id)


@shared_task(name="functions.deliver_due", ignore_result=True)
def deliver_due() -> None:
    """Queue deliveries that are due, including those lost by a worker or the broker."""
    deliveries.start_due()


@shared_task(name="functions.forget_old_deliveries", ignore_result=True)
def forget_old_deliveries() -> None:
    """Delete old deliveries that have ended."""
    deliveries.prune()

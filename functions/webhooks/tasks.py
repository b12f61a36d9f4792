"""Background work of webhooks."""

from __future__ import annotations

from celery import shared_task

from functions.webhooks import outbox


@shared_task(name="functions.deliver", ignore_result=True)
def deliver(delivery_id: int) -> None:
    """Send one; run twice, it sends once."""
    outbox.deliver(delivery_id)


@shared_task(name="functions.deliver_due", ignore_result=True)
def deliver_due() -> None:
    """Scheduled by beat: what is due again, and what got lost with a worker or the broker."""
    outbox.start_due()


@shared_task(name="functions.forget_old_deliveries", ignore_result=True)
def forget_old_deliveries() -> None:
    """Scheduled by beat: remove what ended long ago."""
    outbox.forget_old()

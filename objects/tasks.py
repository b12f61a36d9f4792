"""The task that removes what has expired, in all rooms."""

from __future__ import annotations

from celery import shared_task

from backend.logs.setup import get_logger
from objects.analytics.retention import remove_old_events
from objects.changes import retention
from objects.files import service as files
from objects.idempotency.replays import remove_expired_answers
from objects.users import expired

log = get_logger("mail")


@shared_task(name="objects.remove_expired", ignore_result=True)
def remove_expired() -> None:
    """Remove expired sessions, email tokens and stored responses, old events, captured changes
    without a reader, and unfinished uploads."""
    retention.trim()
    unfinished = files.remove_unfinished()
    if unfinished:
        log.info("unfinished files removed", files=unfinished)
    removed = expired.remove_expired() + remove_expired_answers() + remove_old_events()
    if removed:
        log.info("expired rows removed", rows=removed)

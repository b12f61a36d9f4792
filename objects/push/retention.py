"""Old pushes: their targets are deleted, their statuses stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.database.orm import delete_in_batches
from objects.push.models import Push, PushTarget

_BATCH_SIZE: Final = 1000

log = get_logger("push")


def prune() -> int:
    """Delete the rows of pushes that ended ``PUSH_RETENTION`` days ago; return their number."""
    age = timedelta(days=service_settings.PUSH_RETENTION)
    ended = Push.objects.filter(ended_at__lt=Now() - age)
    targets = PushTarget.objects.filter(push__in=ended).order_by()
    deleted = delete_in_batches(targets, _BATCH_SIZE)
    deleted += delete_in_batches(ended.order_by(), _BATCH_SIZE)
    if deleted:
        log.info("old pushes removed", rows=deleted)
    return deleted

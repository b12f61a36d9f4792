"""Events that are kept no longer."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Max
from django.db.models.functions import Now

from backend.settings.conf import service_settings
from objects.analytics.models import Event
from objects.database.orm import delete_in_batches, orm_queries

_AT_ONCE = 5000


def remove_old_events() -> int:
    """Remove the events beyond ``EVENT_RETENTION`` and ``EVENT_LIMIT``; how many that were.

    It may run twice at once.
    """
    age = timedelta(days=service_settings.EVENT_RETENTION)
    by_age = Event.objects.filter(received_at__lt=Now() - age)
    removed = delete_in_batches(by_age.order_by("pk"), _AT_ONCE)
    with orm_queries():
        newest = Event.objects.aggregate(newest=Max("pk"))["newest"] or 0
    # Ids are drawn one after the other; those that were drawn and not used make it fewer.
    beyond = Event.objects.filter(pk__lte=newest - service_settings.EVENT_LIMIT)
    return removed + delete_in_batches(beyond.order_by("pk"), _AT_ONCE)

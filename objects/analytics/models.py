"""Where events are. ``service`` writes and counts them, ``retention`` removes old ones."""

from __future__ import annotations

from django.db import models


class Event(models.Model):
    """One event. ``at`` is when it happened by the client's clock."""

    name = models.TextField(db_collation="C")
    dimensions = models.JSONField(default=dict)
    at = models.DateTimeField()
    received_at = models.DateTimeField()

    class Meta:
        db_table = "objects_event"
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("name", "at"), name="objects_event_name"),
            models.Index(fields=("at",), name="objects_event_time"),
            models.Index(fields=("received_at",), name="objects_event_age"),
        )

    def __str__(self) -> str:
        return self.name

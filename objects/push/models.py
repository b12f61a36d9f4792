"""Models of pushes under way and their targets.

``service`` creates pushes; ``expansion``, ``delivery`` and ``statuses`` write the rows afterwards.
Clients and dashboards see the objects of ``_PushStatus`` instead, which are written from these.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Push(models.Model):
    """A push from its request until its targets are forgotten. ``id`` is that of its status.

    ``due_at`` is when the next page of targets is to be read; a worker locks the row meanwhile.
    A push in local time is sent wave by wave: ``wave`` is the offset from UTC, in minutes, of the
    zones that are next, from east to west. ``cursor`` is the last installation that was read.
    ``started_at`` is when the first page was read, of the wave for a push in local time.
    ``planned`` counts its targets so far. ``is_published`` says that the status shows all of it.
    After ``publish_failures`` in a row the status isn't written again before ``publish_at``.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "targets to be read"
        SENDING = "sending", "being sent"
        ENDED = "ended", "ended"

    id = models.TextField(primary_key=True, db_collation="C")
    request = models.TextField()
    source = models.TextField()
    state = models.TextField(choices=State.choices, default=State.WAITING)
    push_at = models.DateTimeField()
    is_local = models.BooleanField(default=False)
    wave = models.IntegerField(null=True)
    cursor = models.TextField(default="", db_collation="C")
    due_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    pages = models.IntegerField(default=0)
    planned = models.BigIntegerField(default=0)
    sent = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    totals = models.JSONField(default=dict)
    error = models.TextField(default="", blank=True)
    is_published = models.BooleanField(default=True)
    publish_at = models.DateTimeField(null=True)
    publish_failures = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "objects_push"
        ordering = ("-created_at",)
        verbose_name = "push"
        verbose_name_plural = "pushes"
        indexes = (
            models.Index(
                fields=("due_at",),
                name="objects_push_open",
                condition=~Q(state="ended") | Q(is_published=False),
            ),
            models.Index(fields=("created_at",), name="objects_push_age"),
        )

    def __str__(self) -> str:
        return self.id


class PushTarget(models.Model):
    """An installation that a push is sent to, at most one row for each push.

    ``due_at`` is the time of the next attempt, and a lease while a worker sends it. ``badge`` is
    the number that the installation has since this push.
    """

    class State(models.TextChoices):
        PENDING = "pending", "to be sent"
        SENT = "sent", "sent"
        FAILED = "failed", "failed"
        GONE = "gone", "failed: the token isn't valid any more"

    push = models.ForeignKey(Push, models.CASCADE, related_name="targets")
    installation = models.TextField(db_collation="C")
    device_token = models.TextField()
    device_type = models.TextField()
    push_type = models.TextField()
    app_identifier = models.TextField(default="")
    locale = models.TextField(default="")
    badge = models.FloatField(null=True)
    utc_offset = models.IntegerField(null=True)
    expires_at = models.DateTimeField(null=True)
    state = models.TextField(choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    error = models.TextField(default="", blank=True)

    class Meta:
        db_table = "objects_push_target"
        ordering = ("id",)
        verbose_name = "target of a push"
        verbose_name_plural = "targets of pushes"
        constraints = (
            models.UniqueConstraint(
                fields=("push", "installation"), name="objects_push_target_once"
            ),
        )
        indexes = (
            models.Index(
                fields=("push", "due_at"),
                name="objects_push_target_due",
                condition=Q(state="pending"),
            ),
        )

    def __str__(self) -> str:
        return self.installation

"""The history of backups: one row for each run, of which the newest ones are stored."""

from __future__ import annotations

import sys

from django.db import models


class BackupRun(models.Model):
    """A run of the schedule, of ``manage.py backup --now``, or one that staff have requested.

    ``sent_at`` is when the schedule sent its message. ``name`` is that of the archive in ``place``,
    a ``BACKUP_TO``. A row that is ``running`` although no process
    holds the lock of backups belongs to a process that was killed; ``history.mark_killed`` finds
    these.
    """

    class State(models.TextChoices):
        RUNNING = "running", "running"
        OK = "ok", "ok"
        FAILED = "failed", "failed"
        KILLED = "killed", "killed"

    class Verification(models.TextChoices):
        NONE = "", "none"
        CHECKSUMS = "checksums", "read back and compared"
        RESTORED = "restored", "restored, rows counted"

    sent_at = models.DateTimeField("scheduled", null=True)
    started_at = models.DateTimeField("started")
    finished_at = models.DateTimeField("finished", null=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    place = models.CharField(max_length=300, blank=True, default="")
    name = models.CharField("archive", max_length=200, blank=True, default="")
    size = models.BigIntegerField("bytes", null=True)
    rows = models.BigIntegerField(null=True)
    files = models.BigIntegerField(null=True)
    verification = models.CharField(
        max_length=10, choices=Verification.choices, blank=True, default=Verification.NONE
    )
    note = models.TextField(
        blank=True, default="", help_text="What failed, or why less was verified."
    )

    # For a restore, these rows are no data (``ANY_NUMBER`` of ``objects.database.fresh_rows``).
    fresh_rows = sys.maxsize

    class Meta:
        app_label = "backend"
        default_permissions = ("view", "add")
        verbose_name = "backup"
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name or f"backup of {self.started_at:%Y-%m-%d %H:%M}"

    @property
    def seconds(self) -> float | None:
        """Return how long the run took, or None while it is running."""
        if self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()

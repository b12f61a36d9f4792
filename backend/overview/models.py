"""The tables of the service's own figures."""

from __future__ import annotations

import sys

from django.contrib.postgres.fields import ArrayField
from django.db import models


class _Figures(models.Model):
    """What happened in a part of time in the whole deployment, and what was measured at its end.

    A null is a figure that couldn't be read. ``minutes`` are those that have counts of requests,
    ``latencies`` the groups of ``backend.kernel.latencies``. Measured figures are those of the
    whole deployment, the disk's those of the node whose disk is fullest, ``chain_lag`` is that of
    the network with the largest.
    """

    start = models.DateTimeField(primary_key=True)
    minutes = models.SmallIntegerField()
    succeeded = models.BigIntegerField(null=True)
    redirected = models.BigIntegerField(null=True)
    rejected = models.BigIntegerField(null=True)
    failed = models.BigIntegerField(null=True)
    latencies = ArrayField(models.BigIntegerField(), null=True)
    sign_ups = models.BigIntegerField(null=True)
    failed_jobs = models.BigIntegerField(null=True)
    failed_deliveries = models.BigIntegerField(null=True)
    failed_pushes = models.BigIntegerField(null=True)
    sockets = models.BigIntegerField(null=True)
    queued = models.BigIntegerField(null=True)
    queue_seconds = models.FloatField(null=True)
    chain_lag = models.FloatField(null=True)
    database_bytes = models.BigIntegerField(null=True)
    disk_used = models.BigIntegerField(null=True)
    disk_total = models.BigIntegerField(null=True)

    # For a restore, these rows are no data (``ANY_NUMBER`` of ``objects.database.fresh_rows``).
    fresh_rows = sys.maxsize

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H:%M}"


class Minute(_Figures):
    """The figures of a minute."""

    class Meta:
        app_label = "backend"
        default_permissions = ("view",)
        verbose_name = "minute"


class Hour(_Figures):
    """The figures of the minutes of an hour together, which longer ranges are read from: 30 days of
    minutes take half a second."""

    class Meta:
        app_label = "backend"
        default_permissions = ()
        verbose_name = "hour"


class UserSketch(models.Model):
    """The users of an hour as Redis's HyperLogLog, so that they outlive Redis."""

    hour = models.DateTimeField(primary_key=True)
    sketch = models.BinaryField()

    fresh_rows = sys.maxsize

    class Meta:
        app_label = "backend"
        default_permissions = ()
        verbose_name = "sketch of users"
        verbose_name_plural = "sketches of users"

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H:00}"


class Checkup(models.Model):
    """The latest run of the checks of ``doctor``: one row.

    ``claimed_at`` is when a process has begun to run them, ``outcomes`` those of the last run that
    has finished, on ``node``.
    """

    id = models.SmallIntegerField(primary_key=True)
    claimed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    node = models.TextField(default="")
    outcomes = models.JSONField(default=list)

    fresh_rows = sys.maxsize

    class Meta:
        app_label = "backend"
        default_permissions = ("view", "change")
        verbose_name = "checkup"

    def __str__(self) -> str:
        return "never" if self.finished_at is None else f"{self.finished_at:%Y-%m-%d %H:%M}"

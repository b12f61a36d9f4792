"""The models of the project package. Those that are declared here have no table: they are in Redis,
or a switch, and staff have permissions for them."""

from __future__ import annotations

from django.db import models

from backend.backups.models import BackupRun
from backend.overview.models import Checkup, Hour, Minute, UserSketch

__all__ = [
    "BackupRun",
    "Checkup",
    "Hour",
    "LogRecord",
    "Maintenance",
    "Minute",
    "RateLimit",
    "UserSketch",
]


class LogRecord(models.Model):
    """What ``backend.logs.store`` keeps."""

    class Meta:
        managed = False
        default_permissions = ("view",)


class RateLimit(models.Model):
    """Counts of rate limits; changing one resets it."""

    class Meta:
        managed = False
        default_permissions = ("view", "change")


class Maintenance(models.Model):
    """Maintenance mode; to change it is to switch it."""

    class Meta:
        managed = False
        default_permissions = ("view", "change")

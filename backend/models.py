"""The models of the project package. Those that are declared here have no table: they are in Redis,
or a switch, and staff have permissions for them."""

from __future__ import annotations

from django.db import models

from backend.backups.models import BackupRun
from backend.overview.models import Checkup, Hour, Minute, UserSketch

__all__ = [
    "BackupRun",
    "Checkup",
    "Documentation",
    "Hour",
    "LogRecord",
    "Maintenance",
    "Minute",
    "RateLimit",
    "Setting",
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


class Setting(models.Model):
    """Settings of the service, which ``backend.settings`` reads. Secrets are never shown."""

    class Meta:
        managed = False
        default_permissions = ("view",)


class Documentation(models.Model):
    """The documentation, which the admin shows from the folder ``docs``."""

    class Meta:
        managed = False
        default_permissions = ("view",)

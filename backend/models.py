"""The models of the project package. All but ``BackupRun`` have no table: they are in Redis, or a
switch, and staff have permissions for them."""

from __future__ import annotations

from django.db import models

from backend.backups.models import BackupRun

__all__ = ["BackupRun", "LogRecord", "Maintenance", "RateLimit"]


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

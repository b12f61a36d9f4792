"""Where the parameters are. ``service`` reads and writes them."""

from __future__ import annotations

from django.db import models


class AppConfig(models.Model):
    """All parameters: one row at most, so that one lock orders all saves.

    ``params`` are values in wire form by name; ``master_key_only`` are the names of those that
    clients don't see.
    """

    id = models.SmallIntegerField(primary_key=True)
    params = models.JSONField(default=dict)
    master_key_only = models.JSONField(default=list)
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "objects_config"
        verbose_name = "config"
        verbose_name_plural = "config"

    def __str__(self) -> str:
        return "config"

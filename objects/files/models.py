"""What is known about each stored file. ``records`` reads and writes it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class StoredFile(models.Model):
    """One file in storage.

    ``read_acl`` holds the ids that may read it (user ids, ``role:NAME``); null means everybody,
    empty means the master key alone. ``owner_id`` is the user who uploaded it, if one did.
    """

    name = models.TextField(primary_key=True, db_collation="C")
    size = models.BigIntegerField()
    content_type = models.TextField()
    sha256 = models.TextField()
    metadata = models.JSONField(default=dict)
    tags = models.JSONField(default=dict)
    owner_id = models.TextField(null=True, db_collation="C")
    read_acl = ArrayField(models.TextField(), null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "objects_file"
        ordering = ("-created_at",)
        verbose_name = "file"
        indexes = (models.Index(fields=("created_at", "name"), name="objects_file_age"),)

    def __str__(self) -> str:
        return self.name

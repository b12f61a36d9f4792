"""What is known about each stored file. ``records`` reads and writes it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from objects.database.fresh_rows import ANY_NUMBER
from objects.users.models import User


class StoredFile(models.Model):
    """One file in storage.

    ``read_acl`` holds the ids that may read it (user ids, ``role:NAME``); null means everybody,
    empty means the master key alone. ``owner_id`` is the user who uploaded it, if one did,
    ``charged_to`` the account whose quota it uses (see ``quotas``). It is ``complete`` while its
    bytes are in storage as a whole.
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
    charged_to = models.TextField(null=True, db_collation="C")
    complete = models.BooleanField(default=True, db_default=True)

    class Meta:
        db_table = "objects_file"
        ordering = ("-created_at",)
        verbose_name = "file"
        indexes = (
            models.Index(fields=("created_at", "name"), name="objects_file_age"),
            models.Index(
                fields=("charged_to",),
                condition=models.Q(charged_to__isnull=False),
                include=("size",),
                name="objects_file_charged",
            ),
            models.Index(
                fields=("created_at",),
                condition=models.Q(complete=False),
                name="objects_file_unfinished",
            ),
        )

    def __str__(self) -> str:
        return self.name


class FileUsage(models.Model):
    """The bytes of all files that are charged to an account; ``records`` keeps it."""

    fresh_rows = ANY_NUMBER

    account = models.TextField(primary_key=True, db_collation="C")
    bytes = models.BigIntegerField()

    class Meta:
        db_table = "objects_file_usage"

    def __str__(self) -> str:
        return self.account


class FileQuota(models.Model):
    """A user's own storage quota in bytes, in place of ``FILE_QUOTA``; 0 is no limit."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="file_quota")
    quota = models.BigIntegerField()

    class Meta:
        db_table = "objects_file_quota"

    def __str__(self) -> str:
        return str(self.pk)

"""Where answers are kept. ``store`` reads and writes them."""

from __future__ import annotations

from django.db import models

from objects.database.fresh_rows import ANY_NUMBER


class KeptAnswer(models.Model):
    """The answer to the first request with an id.

    ``key`` is a hash of the caller and the id, ``fingerprint`` a keyed hash of the request.
    ``answer`` is encrypted; null if it was too large, or isn't to be given again.
    """

    fresh_rows = ANY_NUMBER

    key = models.TextField(primary_key=True, db_collation="C")
    fingerprint = models.TextField()
    answer = models.TextField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "objects_kept_answer"
        indexes = (models.Index(fields=("expires_at",), name="objects_kept_answer_expiry"),)

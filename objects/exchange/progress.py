"""The progress of imports in the database, which is committed together with what they store.

The checkpoint's file is written afterwards, so this is the more recent one after a crash, and the
right one after a database was restored from a backup.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from objects.definitions.models import ImportProgress
from objects.exchange.checkpoint import Checkpoint

_FORGOTTEN_AFTER = timedelta(days=90)


def save(checkpoint: Checkpoint) -> None:
    """Store the counts of a checkpoint, as part of the transaction."""
    ImportProgress.objects.bulk_create(
        [
            ImportProgress(
                key=checkpoint.key,
                rows=checkpoint.rows,
                stored=checkpoint.stored,
                refused=checkpoint.refused,
                updated_at=timezone.now(),
            )
        ],
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["rows", "stored", "refused", "updated_at"],
    )


def restore(checkpoint: Checkpoint) -> None:
    """Set the counts of a checkpoint to those that the database has, if it has any."""
    row = ImportProgress.objects.filter(key=checkpoint.key).first()
    if row is not None:
        checkpoint.rows, checkpoint.stored = row.rows, row.stored
        checkpoint.refused = row.refused


def remove(checkpoint: Checkpoint) -> None:
    """Remove the progress of a completed import, and of imports that were never resumed."""
    ImportProgress.objects.filter(key=checkpoint.key).delete()
    ImportProgress.objects.filter(updated_at__lt=timezone.now() - _FORGOTTEN_AFTER).delete()

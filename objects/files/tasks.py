"""Background work on files."""

from __future__ import annotations

from celery import shared_task

from objects.files.cleaning import remove_unused


@shared_task(name="objects.clean_files", ignore_result=True)
def clean_files() -> None:
    """Remove the files that nothing refers to. Scheduled with ``FILE_CLEAN_UP=on``."""
    remove_unused()

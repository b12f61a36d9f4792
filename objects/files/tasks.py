"""Background work on files."""

from __future__ import annotations

from celery import shared_task

from backend.conf import service_settings
from objects.files.cleaning import remove_unused


@shared_task(name="objects.clean_files", ignore_result=True)
def clean_files() -> None:
    """Remove the files that nothing refers to, with ``FILE_CLEAN_UP=on``.

    The schedule is kept in the database, also after the setting is off again.
    """
    if service_settings.FILE_CLEAN_UP:
        remove_unused()

"""Background work on files."""

from __future__ import annotations

from celery import shared_task

from backend.kernel.errors import UnderMaintenance
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.files.orphans import remove_unused

log = get_logger("files")


@shared_task(name="objects.clean_files", ignore_result=True)
def clean_files() -> None:
    """Remove the files that nothing refers to, with ``FILE_CLEAN_UP=on``.

    The schedule is kept in the database, also after the setting is off again. In maintenance mode
    it waits for the next time.
    """
    if not service_settings.FILE_CLEAN_UP:
        return
    try:
        remove_unused()
    except UnderMaintenance:
        log.info("files not cleaned up: maintenance mode is on")

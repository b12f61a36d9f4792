"""The banner of an instance whose WAL isn't archived."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time

from django.conf import settings
from django.http import HttpRequest

from backend.instance import wal_archive
from backend.site.model_admin import BannerLevel, banner


@banner
def archive_banner(request: HttpRequest) -> tuple[BannerLevel, str] | None:
    """Return the banner for all pages that says since when WAL isn't archived, and why."""
    if not settings.EMBEDDED_POSTGRES:
        return None
    try:
        state = wal_archive.read(settings.DATA_FOLDER)
    except wal_archive.StateError as error:
        return "error", f"Whether WAL is archived is unknown: {error}."
    if not state.is_on or state.is_held or not state.log.trouble:
        return None
    if wal_archive.age(state.log, time()) < wal_archive.LATE:
        return None
    done = state.log.done
    since = "" if done is None else f" since {datetime.fromtimestamp(done, UTC):%Y-%m-%d %H:%M} UTC"
    return "error", (
        f"WAL isn't archived{since}: {state.log.trouble} What was written since then is lost if"
        " this machine is."
    )

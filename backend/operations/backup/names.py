"""Names of archives in a place: ``archives/APP_ID-20260131T030000Z.tar``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings

FOLDER: Final = "archives/"

_TIME: Final = "%Y%m%dT%H%M%SZ"
_NAME: Final = re.compile(r"archives/(?P<app>.+)-(?P<time>[0-9]{8}T[0-9]{6}Z)\.tar")
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_+=@-]")


def name_of(at: datetime) -> str:
    """Return the name of this application's archive of a moment."""
    return f"{FOLDER}{_app()}-{at.astimezone(UTC).strftime(_TIME)}.tar"


def own_prefix() -> str:
    """Return how the names of this application's archives begin. Those of an application whose id
    begins with this one's have no time, which begins with the century, at this place."""
    return f"{FOLDER}{_app()}-20"


def own_time(name: str) -> datetime | None:
    """Return when an archive was made, or None for what isn't one of this application."""
    parts = _parts(name)
    return parts[1] if parts is not None and parts[0] == _app() else None


def latest(place: Place) -> str:
    """Return the name of the newest archive in a place.

    A fresh instance has another ``APP_ID`` than the archives, so those of the only application
    that has any count as well. Raises ``BackupError``.
    """
    newest: dict[str, tuple[datetime, str]] = {}
    for entry in place.entries(FOLDER):
        if parts := _parts(entry.name):
            app, at = parts
            newest[app] = max(newest.get(app, (at, "")), (at, entry.name))
    if not newest:
        raise BackupError(f"{place.title} has no backups, or none that are read with BACKUP_KEY.")
    own = newest.get(_app()) or (next(iter(newest.values())) if len(newest) == 1 else None)
    if own is None:
        examples = ", ".join(name for _, name in sorted(newest.values())[-3:])
        raise BackupError(
            f"{place.title} has backups of several applications: name one of them, such as"
            f" {examples}."
        )
    return own[1]


def _parts(name: str) -> tuple[str, datetime] | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return match["app"], datetime.strptime(match["time"], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _app() -> str:
    """The application's id as names may have it."""
    return f"{_STRANGE.sub('-', service_settings.APP_ID).lstrip('-+=@') or 'app'}"[:100]

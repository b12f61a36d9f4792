"""Names of archives in a place: ``archives/APP_ID-20260131T030000Z.tar``."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from backend.operations.backup.places.place import ENCRYPTED, Place
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings

FOLDER: Final = "archives/"

_TIME: Final = "%Y%m%dT%H%M%SZ"
_NAME: Final = re.compile(r"archives/(?P<app>.+)-(?P<time>[0-9]{8}T[0-9]{6}Z)\.tar")
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_+=@-]")
_MAX_LENGTH: Final = 100  # characters of an application's id
_DIGITS: Final = 10
_CLOCKS_DIFFER: Final = timedelta(hours=1)


def name_of(at: datetime) -> str:
    """Return the name of this application's archive of a moment."""
    return f"{FOLDER}{_app()}-{at.astimezone(UTC).strftime(_TIME)}.tar"


def is_own(name: str) -> bool:
    """Return whether a name is that of an archive of this application."""
    return own_time(name) is not None


def own_time(name: str) -> datetime | None:
    """Return when an archive was made, or None for what isn't one of this application."""
    parts = _parts(name)
    return parts[1] if parts is not None and parts[0] == _app() else None


def latest(place: Place) -> str:
    """Return the name of the newest archive in a place.

    A fresh instance has another ``APP_ID`` than the archives, so those of the only application
    that has any count as well. Raises ``BackupError``.
    """
    # Those of a clock that was ahead come last: they may be older than others.
    now = datetime.now(UTC)
    newest: dict[str, tuple[bool, datetime, str]] = {}
    for entry in place.entries(FOLDER):
        if parts := _parts(entry.name):
            app, at = parts
            archive = (at <= now + _CLOCKS_DIFFER, at, entry.name)
            newest[app] = max(newest.get(app, archive), archive)
    if not newest:
        raise BackupError(
            f"{place.title} has no backups. With BACKUP_KEY only files that end with"
            f" {ENCRYPTED} are listed, without it only others."
        )
    own = newest.get(_app()) or (next(iter(newest.values())) if len(newest) == 1 else None)
    if own is None:
        examples = ", ".join(name for _, _, name in sorted(newest.values())[-3:])
        raise BackupError(
            f"{place.title} has backups of several applications: name one of them, such as"
            f" {examples}."
        )
    return own[2]


def _parts(name: str) -> tuple[str, datetime] | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return match["app"], datetime.strptime(match["time"], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _app() -> str:
    """Return the application's id as names may have it. Where that isn't the id itself, it has a
    dot and a digest at its end, so that each id has a name of its own."""
    app_id = service_settings.APP_ID
    text = _STRANGE.sub("-", app_id).lstrip("-+=@")[:_MAX_LENGTH]
    if text == app_id:
        return text
    digest = hashlib.sha256(app_id.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{text or 'app'}.{digest}"

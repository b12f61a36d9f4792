"""The machine: disk, file storage, clock, mail server."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection

from backend.kernel.doctor import DATABASE, Finding, check, fail, ok, warn
from backend.kernel.texts.redaction import mask_text
from backend.kernel.texts.sizes import readable_size

_LITTLE, _TOO_LITTLE = 2 * 2**30, 200 * 2**20  # bytes
_CLOCK, _CLOCK_WRONG = 2.0, 20.0  # seconds; one-time passwords bear 30
_PROBE = b"doctor"


@check("disk")
def disk() -> Iterator[Finding]:
    """Whether ``DATA_DIR`` (and where the embedded engines are) can be written, and has room."""
    for folder in dict.fromkeys((settings.DATA_FOLDER.path, settings.DATA_FOLDER.engines)):
        yield from _folder(folder, writable=folder == settings.DATA_FOLDER.path)


def _folder(folder: Path, *, writable: bool) -> Iterator[Finding]:
    place = f"DATA_DIR {folder}" if writable else f"{folder}"
    try:
        if writable:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(_PROBE)
                file.flush()
                os.fsync(file.fileno())
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield fail(f"{place} can't be used: {error.strerror}.", "Look at its owner and its disk.")
        return
    summary = f"{place} has {readable_size(free)} left"
    if free < _TOO_LITTLE:
        yield fail(f"{summary}.", "Make room: without it nothing can be written soon.")
    elif free < _LITTLE:
        yield warn(f"{summary}.", "Make room.")
    else:
        yield ok(summary)


@check("file storage", seconds=15)
def file_storage() -> Iterator[Finding]:
    """Whether a file can be written, read and removed where files are kept."""
    storage, key = storages["files"], f"doctor/{secrets.token_hex(8)}"
    kind = type(storage).__name__
    step = "written"
    try:
        key = storage.save(key, ContentFile(_PROBE))
        step = "read"
        with storage.open(key) as file:
            same = file.read() == _PROBE
        step = "removed"
        storage.delete(key)
    except Exception as error:  # storages have errors of their own
        reason = mask_text(str(getattr(error, "strerror", None) or error))
        yield fail(f"A file can't be {step} ({kind}): {reason}.", "Look at the settings FILE_….")
        return
    if not same:
        yield fail(f"What was read isn't what was written ({kind}).", "Look at the storage.")
        return
    yield ok(f"written, read, removed ({kind})")


@check("clock", needs=(DATABASE,), seconds=10)
def clock() -> Iterator[Finding]:
    """This machine's time against the database's and the public address's."""
    with connection.cursor() as cursor:
        before = datetime.now(UTC)
        cursor.execute("SELECT clock_timestamp()")
        theirs = cursor.fetchone()[0]
        after = datetime.now(UTC)
    middle = before + (after - before) / 2
    yield _difference("the database's", (theirs - middle).total_seconds(), 0)
    # The instance may have been started with a PORT or PUBLIC_URL that this command doesn't have.
    running = settings.DATA_FOLDER.running() or {}
    address = running.get("address") or settings.PUBLIC_URL
    try:
        with urlopen(Request(f"{address}/health", method="HEAD"), timeout=4) as answer:
            date = answer.headers.get("Date")
    except HTTPError as error:
        date = error.headers.get("Date")
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        yield warn(
            f"PUBLIC_URL {address} can't be reached from here: {reason}.",
            "Fine where this machine isn't let through; else look at the proxy and at DNS.",
        )
        return
    if date:
        served = parsedate_to_datetime(date)
        # The header has whole seconds.
        yield _difference("PUBLIC_URL's", (served - datetime.now(UTC)).total_seconds(), 1)


def _difference(whose: str, seconds: float, precision: float) -> Finding:
    apart = abs(seconds)
    if apart <= _CLOCK + precision:
        return ok(f"within {max(apart, precision, 0.1):.1f} s of {whose}")
    make = fail if apart > _CLOCK_WRONG else warn
    return make(
        f"The clock is {apart:.0f} s apart from {whose}.",
        "Synchronise the machines (NTP): sessions, links and one-time passwords depend on it.",
    )


@check("mail", seconds=8)
def mail() -> Iterator[Finding]:
    """Whether the mail server can be reached."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        yield ok(f"no mail server is used ({settings.EMAIL_BACKEND.split('.')[-2]})")
        return
    place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        socket.create_connection((settings.EMAIL_HOST, settings.EMAIL_PORT), 5).close()
    except OSError as error:
        reason = error.strerror or error
        yield fail(f"The mail server {place} can't be reached: {reason}.", "Look at EMAIL_URL.")
        return
    yield ok(f"{place} can be reached")

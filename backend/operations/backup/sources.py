"""The archive that an operator names: a file, one in ``BACKUP_TO``, or one in a bucket."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from backend.kernel.texts.sizes import readable_size
from backend.operations.backup import names
from backend.operations.backup.places.place import BUCKET, ENCRYPTED, Place, place_of
from backend.operations.backup.problems import BackupError, PlaceError
from backend.settings.areas.files import Backups
from backend.settings.conf import service_settings

_LATEST: Final = "latest"
_WORK: Final = "restore-work"


def place() -> Place:
    """Return the place of ``BACKUP_TO``. Raises ``PlaceError`` if it isn't set."""
    return place_of(_settings())


@contextmanager
def archive_file(text: str) -> Iterator[Path]:
    """Have the archive that ``text`` names as a file, complete and decrypted.

    ``text`` is a path, ``latest``, a name in ``BACKUP_TO`` as ``manage.py backup --list`` shows
    it, or ``s3://BUCKET/NAME``. What is in a place is copied to ``DATA_DIR`` and removed when the
    block ends. Raises ``BackupError``.
    """
    path = Path(text)
    if text != _LATEST and path.is_file() and path.suffix != ENCRYPTED:
        yield path
        return
    if text == _LATEST:
        source = place()
        name = names.latest(source)
    elif text.startswith(BUCKET) or path.is_file():
        folder, _, file = str(path.resolve() if path.is_file() else text).rpartition("/")
        source = _place_at(folder)
        name = file.removesuffix(ENCRYPTED)
    elif path.is_absolute() or not service_settings.BACKUP_TO:
        yield path  # opening it says what is wrong
        return
    else:
        source = place()
        name = names.FOLDER + text.removeprefix(names.FOLDER).removesuffix(ENCRYPTED)
    with _work_folder() as folder_of_copy:
        yield _copied(source, name, folder_of_copy)


@contextmanager
def _work_folder() -> Iterator[Path]:
    """Have an empty folder in ``DATA_DIR``, which is removed with what is in it: at the end, or by
    the next process if this one is killed. A process locks its folder, so no other removes it."""
    root = Path(settings.DATA_FOLDER.path)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A folder that was made and isn't locked yet would be removed by another process.
    with _descriptor(root) as of_root:
        fcntl.flock(of_root, fcntl.LOCK_EX)
        for former in root.glob(f"{_WORK}*"):
            _remove_unused(former)
        folder = Path(tempfile.mkdtemp(prefix=f"{_WORK}-", dir=root))
        number = os.open(folder, os.O_RDONLY)
        fcntl.flock(number, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(number)


def _remove_unused(folder: Path) -> None:
    # Another process may have removed it, or works in it.
    with suppress(FileNotFoundError, BlockingIOError), _descriptor(folder) as number:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _descriptor(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


def _place_at(folder: str) -> Place:
    if not service_settings.BACKUP_KEY:
        raise PlaceError(f"Backups in {folder} are encrypted: set BACKUP_KEY to their key.")
    return place_of(_settings() | {"BACKUP_TO": folder})


def _settings() -> dict[str, Any]:
    return {name: getattr(service_settings, name) for name in Backups.settings()}


def _copied(source: Place, name: str, folder: Path) -> Path:
    """Copy an archive from its place into the folder, if it has room for it."""
    size = next((entry.size for entry in source.entries(name) if entry.name == name), None)
    if size is None:
        raise PlaceError(
            f"{source.title} has no {name}. With BACKUP_KEY only files that end with {ENCRYPTED}"
            " are listed, without it only others; `script/manage backup --list` shows what it has."
        )
    free = shutil.disk_usage(folder).free
    if free < size:
        raise BackupError(
            f"{folder} has {readable_size(free)} left, and the archive has {readable_size(size)}."
        )
    path = folder / name.rpartition("/")[2]
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "wb") as file:
        source.read(name, file)
    return path

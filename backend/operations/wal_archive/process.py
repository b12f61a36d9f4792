"""The process that archives: three loops, so that a large copy or file doesn't delay WAL."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from backend.instance import wal_archive as state
from backend.instance.wal_archive import StateFile
from backend.kernel.connections.advisory_locks import WAL_ARCHIVE
from backend.kernel.process import liveness
from backend.logs.setup import get_logger
from backend.operations.backup import sources
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError
from backend.operations.keys.instance import live_keys
from backend.operations.wal_archive import catalog
from backend.operations.wal_archive.bases import BaseCopies
from backend.operations.wal_archive.log import Held, LogArchive
from backend.operations.wal_archive.server import Server, connect
from backend.operations.wal_archive.uploads import Uploads
from backend.settings.areas.files import Storage
from backend.settings.conf import service_settings

INTERVAL: Final = 20.0
"""Seconds between two passes: with the time that a pass takes, what is lost with the machine."""

_LONGEST_PAUSE: Final = 3600.0  # seconds between two attempts to copy the cluster
_HEARTBEAT: Final = 5.0  # seconds

log = get_logger("wal_archive")


def is_on() -> bool:
    """Return whether this instance archives its WAL: the embedded PostgreSQL, with backups."""
    return bool(
        settings.EMBEDDED_POSTGRES
        and service_settings.BACKUP_TO
        and service_settings.BACKUP_SCHEDULE
    )


def has_files() -> bool:
    """Return whether files are on this machine."""
    return Storage.FILE_STORAGE.read() == "folder"


def own_place() -> tuple[Place, str]:
    """Return the place of the settings, and a digest of where it is and of its key."""
    target = "\0".join((service_settings.BACKUP_TO, service_settings.BACKUP_KEY))
    return sources.place(), state.digest_of(target)


def run() -> None:
    """Archive until SIGTERM."""
    state_file = StateFile(settings.DATA_FOLDER)
    has_begun = threading.Event()
    for work in (_log, _bases, _files):
        threading.Thread(target=work, args=(state_file, has_begun), daemon=True).start()
    while True:
        liveness.leave()
        time.sleep(_HEARTBEAT)


def drop_slots() -> None:
    """Have the server keep no WAL for an archive that was switched off."""
    with connect(settings.DATA_FOLDER) as server:
        for slot in server.slots():
            server.drop_slot(slot.lineage)
            log.warning("WAL archiving is off", lineage=slot.lineage)
    if state.path_of(settings.DATA_FOLDER).exists():
        StateFile(settings.DATA_FOLDER).change(is_on=False, lineage="")


# -- loops ----------------------------------------------------------------------------------------


def _log(state_file: StateFile, has_begun: threading.Event) -> None:
    def connected(server: Server) -> Callable[[], object]:
        place, target = own_place()
        # An application that this one replaces may archive for a few seconds more.
        while not server.try_lock(WAL_ARCHIVE):
            time.sleep(1)
        if not has_begun.is_set():
            state_file.reload()
            state_file.change(is_on=True)
            if state_file.now.instance:
                place.remove_unfinished(f"{catalog.ROOT}{state_file.now.instance}/")
        archive = LogArchive(place, server, state_file, target).archive

        def work() -> None:
            archive()
            has_begun.set()

        return work

    _repeat(state_file, state.LOG, connected)


def _bases(state_file: StateFile, has_begun: threading.Event) -> None:
    has_begun.wait()

    def connected(server: Server) -> Callable[[], object]:
        place, _ = own_place()
        copies = BaseCopies(
            place,
            server,
            settings.DATA_FOLDER,
            state_file,
            keys=live_keys,
            absent=Uploads(place, state_file).absent if has_files() else list,
            # Each moment of the days that have an archive.
            days=dict(service_settings.BACKUP_KEEP).get("d", 1),
        )
        return copies.copy_if_due

    _repeat(state_file, state.BASES, connected, longest_pause=_LONGEST_PAUSE)


def _files(state_file: StateFile, has_begun: threading.Event) -> None:
    if not has_files():
        return
    has_begun.wait()
    uploads: Uploads | None = None

    def connected(server: Server) -> Callable[[], object]:
        # The same after a failure: another one would compare all files with the place again.
        nonlocal uploads
        if uploads is None:
            uploads = Uploads(own_place()[0], state_file)
        return uploads.store_new

    _repeat(state_file, state.FILES, connected)


def _repeat(
    state_file: StateFile,
    part: str,
    connected: Callable[[Server], Callable[[], object]],
    *,
    longest_pause: float = INTERVAL,
) -> None:
    """Call what ``connected`` returns for a connection every ``INTERVAL``, with a new connection
    after a failure. Failures of either are recorded, and the pause after each is twice as long, up
    to ``longest_pause``."""
    pause = INTERVAL
    while True:
        try:
            with connect(settings.DATA_FOLDER) as server, _django():
                work = connected(server)
                while True:
                    work()
                    pause = INTERVAL
                    time.sleep(INTERVAL)
        except Held:
            state_file.change(is_held=True)
        except (BackupError, psycopg.Error, DatabaseError, OSError) as error:
            text = str(error).strip().partition("\n")[0]
            if state_file.failed(part, text):
                log.error("archiving fails", part=part, reason=text)
        except BaseException:
            log.exception("archiving ended", part=part)
            os._exit(1)  # and is started again, with the process
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)


@contextmanager
def _django() -> Iterator[None]:
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()

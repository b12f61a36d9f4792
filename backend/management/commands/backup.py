"""``manage.py backup``: the whole instance as one file, while it works.

The file goes to a folder, or to the place of ``BACKUP_TO`` as the schedule does it.
"""

from __future__ import annotations

import shutil
import sys
from argparse import SUPPRESS
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from backend.backups import history
from backend.backups.models import BackupRun
from backend.kernel.texts.counted import counted
from backend.kernel.texts.sizes import readable_size
from backend.logs.setup import get_logger
from backend.operations.backup import archive, creation, names, runs, sources
from backend.operations.backup.archive import Manifest
from backend.operations.backup.problems import BackupError
from backend.settings.conf import service_settings

log = get_logger("backup")


class Command(BaseCommand):
    help = (
        "Back up the whole instance (database, files, keys) while it works. Given a folder, the "
        "archive is named by application and time. It holds secrets: only its owner may read it. "
        "With BACKUP_TO and BACKUP_SCHEDULE the service makes backups itself (docs/backups.md)."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument("target", nargs="?", metavar="FOLDER|FILE.tar", type=Path)
        action.add_argument(
            "--verify",
            metavar="FILE|NAME|latest",
            help="only check an archive, all of it: a file, or one in BACKUP_TO",
        )
        action.add_argument(
            "--now",
            action="store_true",
            help="do what the schedule does: make a backup in BACKUP_TO, read it back, restore it "
            "for a trial, and remove what BACKUP_KEEP doesn't keep",
        )
        action.add_argument(
            "--list", action="store_true", help="what BACKUP_TO has, and how its last runs ended"
        )
        action.add_argument(
            "--new-key",
            action="store_true",
            help="print a new key for BACKUP_KEY, and store nothing",
        )
        action.add_argument("--scheduled", type=float, metavar="TIME", help=SUPPRESS)
        action.add_argument(
            "--read",
            metavar="NAME|latest",
            help="write an archive of BACKUP_TO to standard output, decrypted",
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="leave the keys out of FILE.tar; second factors and wallets can't be read then "
            "without the SECRET_KEY, which has to be kept elsewhere",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["without_keys"] and options["target"] is None:
            raise CommandError("--without-keys is for a folder or a file: name one.")
        try:
            if options["target"] is not None:
                self._make(options)
            elif options["verify"] is not None:
                self._verify(options["verify"])
            elif options["read"] is not None:
                _read(options["read"])
            elif options["scheduled"] is not None:
                _run_scheduled(datetime.fromtimestamp(options["scheduled"], UTC))
            elif options["now"]:
                self._run()
            elif options["list"]:
                self._list()
            else:
                self._new_key()
        except BackupError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            place = error.filename or options["target"] or "the machine"
            raise CommandError(f"{place}: {error.strerror}") from error

    def _run(self) -> None:
        run = runs.back_up(sources.place)
        assert run is not None
        self.stdout.write(run.name.removeprefix(names.FOLDER))
        size = readable_size(run.size or 0)
        self.stderr.write(f"{counted(run.rows or 0, 'row')}, {size}: {_result(run)}")
        self._remind_of_signers()

    def _list(self) -> None:
        place = sources.place()
        by_name = {run.name: run for run in BackupRun.objects.exclude(name="").order_by("id")}
        entries = place.entries(names.FOLDER)
        for entry in entries:
            run = by_name.get(entry.name)
            result = "no record of its run" if run is None else _result(run)
            name = entry.name.removeprefix(names.FOLDER)
            self.stdout.write(f"{name}  {readable_size(entry.size)}  {result}")
        self.stderr.write(f"{counted(len(entries), 'backup')} in {place.title}.")
        last = BackupRun.objects.first()
        if last is not None and last.state != BackupRun.State.OK:
            self.stderr.write(
                f"The last run, {last.started_at:%Y-%m-%d %H:%M} UTC: {_result(last)}"
            )

    def _new_key(self) -> None:
        from pyrage import x25519

        self.stdout.write(str(x25519.Identity.generate()))
        self.stderr.write(
            "Set it as BACKUP_KEY, and keep a copy where this machine's loss doesn't reach it:"
            " without it no backup can be read."
        )

    def _verify(self, text: str) -> None:
        try:
            with sources.archive_file(text) as path:
                manifest = archive.check(path)
        except BackupError as error:
            _note_verification(text, str(error))
            raise
        _note_verification(text, "It is whole.")
        self.stdout.write(f"{text} is whole: {described(manifest)}")

    def _make(self, options: dict[str, Any]) -> None:
        made = creation.make(options["target"], with_keys=not options["without_keys"])
        self.stdout.write(str(made.path))
        self.stderr.write(described(made.manifest))
        if made.differences:
            self.stderr.write(f"{made.differences} The log names them.")
        if made.has_keys:
            self.stderr.write("The archive holds the keys of this instance: keep it secret.")
        self._remind_of_signers()

    def _remind_of_signers(self) -> None:
        if service_settings.SIGNER_PRIVATE_KEY or service_settings.SIGNER_KEYSTORE:
            self.stderr.write(
                "The keys of signers (SIGNER_PRIVATE_KEY, SIGNER_KEYSTORE) are not in it: keep a "
                "copy of them elsewhere."
            )


def _note_verification(text: str, result: str) -> None:
    """Note the result with the run of an archive in BACKUP_TO. Files have none, and are verified
    without a database."""
    if text.startswith(names.FOLDER):
        with suppress(DatabaseError):  # what was verified is printed in any case
            history.note_verification(text, result)


def _read(name: str) -> None:
    with sources.archive_file(name) as path, path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _run_scheduled(sent_at: datetime) -> None:
    """Make the backup of a message of the schedule. Errors are logged, since the output is that of
    the worker."""
    try:
        runs.back_up(sources.place, sent_at)
    except BackupError as error:
        log.error("a backup failed", reason=str(error))
        sys.exit(1)
    except Exception:
        log.exception("a backup failed")
        sys.exit(1)


def _result(run: BackupRun) -> str:
    if run.state == BackupRun.State.RUNNING:
        return "running"
    if run.state != BackupRun.State.OK:
        return f"failed: {run.note}"
    verified = BackupRun.Verification(run.verification).label
    return f"{verified}. {run.note}".strip() if run.note else verified


def described(manifest: Manifest) -> str:
    """What an archive has, in a line."""
    rows = sum(manifest.tables.values())
    files = counted(manifest.files, "file")
    size = readable_size(manifest.file_bytes)
    keys = "keys" if archive.KEYS in manifest.parts else "no keys"
    return (
        f"{rows:,} rows in {len(manifest.tables)} tables, {files} ({size}), {keys}; "
        f"of {manifest.created}, service {manifest.service}, PostgreSQL {manifest.postgres}."
    )

"""``manage.py restore FILE|NAME|latest``: make this instance what an archive says, all of it or
nothing."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.instance.errors import StartError
from backend.management.commands.backup import described
from backend.operations.backup import sources
from backend.operations.backup.problems import BackupError
from backend.operations.backup.restore import Restored, restore
from backend.operations.wal_archive import catalog, recovery

_HELD: Final = (
    "Schedules, webhooks, pushes, emails and transactions are held until you run script/manage"
    " resume."
)


class Command(BaseCommand):
    help = (
        "Restore an archive that backup has written into this instance, which has to be a fresh "
        "one. Everything is checked before anything is touched."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "archive",
            metavar="FILE|NAME|latest|wal",
            help="a file, a name in BACKUP_TO as backup --list shows it, the newest one there, or "
            "s3://BUCKET/NAME; wal for what is archived continuously, by script/server --restore",
        )
        parser.add_argument(
            "--overwrite", action="store_true", help="give up what the instance has"
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="keep this instance's own keys; stored secrets are brought under its SECRET_KEY",
        )

        parser.add_argument(
            "--until",
            metavar="TIME",
            help="for archived WAL (script/server --restore wal): the moment to restore, such as"
            " 2026-11-28T10:00:00Z; otherwise the end of the archive",
        )
        parser.add_argument("--before-start", action="store_true", help=SUPPRESS)
        parser.add_argument(
            "--live",
            action="store_true",
            help="run schedules and send webhooks, pushes, emails and transactions at once; "
            "otherwise they are held until script/manage resume",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        instance = recovery.instance_of(str(options["archive"]))
        if instance is not None:
            self._recover(instance, options)
            return
        if options["until"] is not None:
            raise CommandError("--until is for archived WAL: script/server --restore wal.")
        with _errors(options["archive"]), sources.archive_file(options["archive"]) as path:
            done = restore(
                path,
                overwrite=options["overwrite"],
                with_keys=not options["without_keys"],
                is_held=not options["live"],
            )
        self.stdout.write(f"Restored: {described(done.manifest)}")
        for line in _left_to_do(done):
            self.stdout.write(line)
        if not options["live"]:
            self.stdout.write(_HELD)
        if not options["before_start"]:
            self.stdout.write("Restart the service now, if it runs.")

    def _recover(self, instance: str, options: dict[str, Any]) -> None:
        if not options["before_start"]:
            raise CommandError(
                "Archived WAL is restored before the engines start: run script/server --restore"
                f" {options['archive']}."
            )
        with _errors(settings.DATA_DIR):
            until = None if options["until"] is None else catalog.moment(options["until"])
            done = recovery.restore(
                instance, until, is_held=not options["live"], report=self.stdout.write
            )
        end = done.end.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.stdout.write(f"Restored: everything until {end}, {done.files} files.")
        if done.environment_keys:
            self.stdout.write(_other_keys(done.environment_keys))
        if done.missing_files:
            self.stdout.write(f"{done.missing_files} files are missing or damaged in the archive.")
        if not options["live"]:
            self.stdout.write(_HELD)


@contextmanager
def _errors(source: object) -> Iterator[None]:
    """Raise ``CommandError`` for what a restore raises. ``source`` is for errors without a file."""
    try:
        yield
    except (BackupError, StartError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(
            f"{error.filename or source}: {error.strerror or error}. The instance is as before."
        ) from error


def _other_keys(names: Iterable[str]) -> str:
    return f"The environment has other keys, which win; change them there: {', '.join(names)}."


def _left_to_do(done: Restored) -> list[str]:
    lines = []
    if done.given_keys:
        lines.append(_other_keys(done.given_keys))
    elif done.keys:
        lines.append("The archive's keys are this instance's now.")
    if done.password_file:
        lines.append(
            f"The accounts of the admin are those of the archive, so {done.password_file} was"
            " removed. `script/manage changepassword NAME` sets a new password."
        )
    if done.unreadable:
        lines.append(
            f"{done.unreadable} stored secrets can't be read (second factors, keys of wallets): "
            "set SECRET_KEY_FALLBACKS to the SECRET_KEY that the archive was made with. Recovery "
            "codes work."
        )
    if done.manifest.missing_files:
        lines.append(f"{done.manifest.missing_files} files were missing in the archive already.")
    lines += [f"Indexes: {line}" for line in done.indexes]
    if done.index_problem:
        lines.append(
            f"{done.index_problem} What they are for is slow, or not unique. `script/manage"
            " build_indexes` tries again."
        )
    if done.files_left:
        lines.append(f"{done.files_left} files of before couldn't be removed; the log names them.")
    return lines

"""``manage.py import_parse SOURCE``: move the contents of a Parse Server into this instance."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.texts.shown import for_terminal
from backend.operations.parse_import import progress as progresses
from backend.operations.parse_import import verification
from backend.operations.parse_import.files import Address, Directory, FileSource
from backend.operations.parse_import.problems import ImportFailed, Report, problems_file
from backend.operations.parse_import.progress import Progress
from backend.operations.parse_import.sources.base import Source, SourceFailed
from backend.operations.parse_import.sources.database import Database
from backend.operations.parse_import.sources.folder import Folder
from backend.operations.parse_import.sources.rest_server import RestServer
from backend.operations.parse_import.transfer import JOB_SCHEDULES, Transfer
from backend.operations.parse_import.verification import Comparison

_REPORTED: Final = 100
_APP_ID, _MASTER_KEY = "PARSE_APP_ID", "PARSE_MASTER_KEY"


class Command(BaseCommand):
    help = (
        "Import an app from a Parse Server: classes with their permissions and indexes, objects, "
        "users with their passwords, sessions, roles, relations, files, config and webhooks. A "
        "stopped import continues when the command is repeated. At the end both sides are compared."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "source",
            metavar="SOURCE",
            help="postgres://… (the Parse Server's database), a folder of exported files, or the "
            f"API's URL, with the keys in {_APP_ID} and {_MASTER_KEY}",
        )
        parser.add_argument(
            "--files-url",
            metavar="URL",
            help="fetch files from URL/NAME: the API's /files/APP_ID, or the address of a bucket",
        )
        parser.add_argument(
            "--files-folder", metavar="FOLDER", type=Path, help="take files from a folder"
        )
        parser.add_argument(
            "--state",
            type=Path,
            metavar="FILE",
            default=Path("parse-import.json"),
            help="the file that holds the progress; parse-import.json by default",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="read everything again and store what has changed there since",
        )
        parser.add_argument(
            "--verify", action="store_true", help="only compare both sides, import nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with contextlib.closing(_source(options["source"])) as source:
                if not options["verify"]:
                    self._import(source, options)
                self._compare(source)
        except (ImportFailed, SourceFailed) as error:
            raise CommandError(for_terminal(str(error))) from error

    # -- Importing --------------------------------------------------------------------------------

    def _import(self, source: Source, options: dict[str, Any]) -> None:
        state: Path = options["state"]
        if not source.has_password_hashes:
            self.stderr.write(
                "The API shows no password hashes: users keep their sessions, and set a new "
                "password to log in again. The database or its export has them."
            )
        progress = progresses.load(state, source.name)
        problems = state.with_suffix(".problems.jsonl")
        with _problems(problems, self, empty=options["again"]) as report:
            transfer = Transfer(
                source,
                progress,
                state,
                report,
                self._advanced,
                _file_source(options),
            )
            if options["again"]:
                transfer.again()
            transfer.run()
        self._summarise(progress, has_files=transfer.file_source is not None)

    def _advanced(self, step: str, read: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{for_terminal(step)}: {read:,}", ending="")

    def _summarise(self, progress: Progress, *, has_files: bool) -> None:
        for name, step in progress.steps.items():
            if step.read:
                refused = f", {step.refused:,} not imported" if step.refused else ""
                self.stdout.write(for_terminal(f"{name}: {step.read:,}{refused}"))
        left = sum(step.files_left for step in progress.steps.values())
        if left and not has_files:
            self.stdout.write(
                f"files: {left:,} named by objects, none imported. Repeat the command with "
                "--files-url URL or --files-folder FOLDER to import them."
            )
        elif left:
            self.stdout.write(f"files: {left:,} not imported. Repeat the command to try again.")
        if progress.step(JOB_SCHEDULES).read:
            self.stdout.write(
                "Job schedules arrive disabled. Enable them in the admin when the Parse Server is "
                "stopped."
            )

    # -- Comparing --------------------------------------------------------------------------------

    def _compare(self, source: Source) -> None:
        self.stdout.write("")
        self.stdout.write(
            f"{'compared':32}{'there':>12}{'here':>12}  {'checksum there':16}{'checksum here':16}"
        )
        unequal = newer_here = 0
        for comparison in verification.compare(source):
            unequal += not comparison.has_everything
            newer_here += comparison.newer_here
            self.stdout.write(for_terminal(_line(comparison)))
            for example in comparison.examples:
                self.stdout.write(for_terminal(f"    {example}"))
        if unequal:
            raise CommandError(f"{unequal} of the classes and relations differ")
        self.stdout.write("Everything at the source is here.")
        if newer_here:
            self.stdout.write(f"Objects changed here after the import stay so: {newer_here:,}.")


def _line(comparison: Comparison) -> str:
    checksums = "".join(
        f"{f'{checksum:032x}'[:12] if checksum else '':16}"
        for checksum in (comparison.checksum_there, comparison.checksum_here)
    )
    newer = f"{comparison.newer_here:,} newer here"
    if not comparison.has_everything:
        outcome = f"{comparison.missing:,} missing, {comparison.different:,} different"
        outcome += f", {newer}" if comparison.newer_here else ""
    else:
        outcome = f"{newer}, the others equal" if comparison.newer_here else "equal"
    counts = f"{comparison.there:>12,}{comparison.here:>12,}"
    return f"{comparison.name:32}{counts}  {checksums}{outcome}"


def _source(text: str) -> Source:
    if text.startswith(("postgres://", "postgresql://")):
        return Database(text)
    if text.startswith(("http://", "https://")):
        app_id, master_key = os.environ.get(_APP_ID), os.environ.get(_MASTER_KEY)
        if not app_id or not master_key:
            raise CommandError(f"set {_APP_ID} and {_MASTER_KEY} to the Parse Server's keys")
        return RestServer(text, app_id, master_key)
    path = Path(text)
    if not path.is_dir():
        raise CommandError(f"{text}: no folder, and no postgres:// or https:// URL")
    return Folder(path)


def _file_source(options: dict[str, Any]) -> FileSource | None:
    if options["files_url"] and options["files_folder"]:
        raise CommandError("--files-url or --files-folder, not both")
    if options["files_url"]:
        return Address(options["files_url"])
    return Directory(options["files_folder"]) if options["files_folder"] else None


@contextlib.contextmanager
def _problems(path: Path, command: BaseCommand, *, empty: bool) -> Iterator[Report]:
    """Write what isn't imported to a file, and the first ones to the terminal."""
    reported = 0
    with problems_file(path, empty=empty) as write:

        def report(place: str, reason: str) -> None:
            nonlocal reported
            reported += 1
            write(place, reason)
            if reported <= _REPORTED:
                command.stderr.write(for_terminal(f"{place}: {reason}"))
            elif reported == _REPORTED + 1:
                command.stderr.write(f"… more are in {path}")

        yield report

"""``manage.py import_objects CLASS FILE``: the rows of a file become objects of a class."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import ServiceError, UnderMaintenance
from backend.settings.conf import service_settings
from objects.core.names import ClassName, check_class_name
from objects.definitions import registry
from objects.exchange import checkpoint as checkpoints
from objects.exchange import progress
from objects.exchange.checkpoint import Checkpoint
from objects.exchange.destinations import Database, Destination, Rest, Unreachable
from objects.exchange.imports import Import, Stopped
from objects.exchange.problems import BadRow, UnusableFile
from objects.exchange.row_files import FORMATS, format_of, read_rows
from objects.exchange.row_objects import KINDS, Column, RowMapping, infer_columns

_BULK_BATCH = 5000
_BATCH = 500
_REST_BATCH = 50
_SAMPLE = 1000
_REPORTED = 100


class Command(BaseCommand):
    help = (
        "Import the rows of a file (NDJSON, a JSON array, CSV) as objects of a class. The class is "
        "made if it isn't there. An interrupted import goes on with --resume, and no row is stored "
        "twice."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_name", metavar="CLASS")
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--format", choices=FORMATS, help="by default, by the file's name")
        parser.add_argument(
            "--types",
            action="append",
            default=[],
            metavar="FIELD=TYPE,…",
            help=f"types of fields: {', '.join(KINDS)}; a Pointer as owner=Pointer:User. The "
            "class's own types come first; what then is left in a CSV file is inferred",
        )
        parser.add_argument(
            "--date",
            action="append",
            default=[],
            metavar="FIELD[=FORMAT]",
            help="a Date: ISO 8601, or as strptime's format says; UTC where no zone is given",
        )
        parser.add_argument(
            "--geopoint",
            action="append",
            default=[],
            metavar="FIELD=LATITUDE,LONGITUDE",
            help="make a GeoPoint of two columns",
        )
        parser.add_argument(
            "--rename", action="append", default=[], metavar="COLUMN=FIELD", help="rename a column"
        )
        parser.add_argument(
            "--camel-case",
            action="store_true",
            help="name fields usGross for a column US Gross; other options take the new names",
        )
        parser.add_argument(
            "--ignore", action="append", default=[], metavar="COLUMN,…", help="leave columns out"
        )
        parser.add_argument(
            "--id", default="objectId", metavar="FIELD", help="holds object ids, else objectId"
        )
        parser.add_argument(
            "--on-error",
            choices=("stop", "skip"),
            default="stop",
            help="at a row that can't be stored: stop (the default), or report it and leave it out",
        )
        parser.add_argument(
            "--batch-size",
            type=int,
            metavar="ROWS",
            help=f"stored at once: {_BULK_BATCH}, for classes with rules or triggers {_BATCH}, over"
            f" REST {_REST_BATCH}",
        )
        parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
        parser.add_argument("--restart", action="store_true", help="begin anew instead")
        parser.add_argument(
            "--state", type=Path, metavar="FILE", help="the checkpoint, else FILE.import.json"
        )
        parser.add_argument(
            "--check", action="store_true", help="read and convert all of it, store nothing"
        )
        parser.add_argument(
            "--during-maintenance",
            action="store_true",
            help="store although maintenance mode is on",
        )
        parser.add_argument(
            "--rest",
            metavar="URL",
            help="store over REST at this address (with the mount path) instead of in this "
            "instance's database; the keys are APP_ID and MASTER_KEY, or else REST_API_KEY",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._import(options)
        except UnderMaintenance as error:
            raise CommandError(
                f"{error.message} --resume goes on when maintenance mode is off,"
                " --during-maintenance stores nevertheless"
            ) from None
        except (UnusableFile, Unreachable, ServiceError) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or options['file']}: {error.strerror}") from error

    def _import(self, options: dict[str, Any]) -> None:
        path: Path = options["file"]
        class_name = check_class_name(options["class_name"])
        file_format = options["format"] or format_of(path)
        if file_format is None:
            raise CommandError(f"{path}: --format says what it is, its name doesn't")
        if options["batch_size"] is not None and options["batch_size"] < 1:
            raise CommandError("--batch-size: at least 1")
        mapping = _mapping(options, _known_columns(class_name, options))
        checkpoint, state = _checkpoint(path, class_name, options)
        if checkpoint.is_finished:
            self.stdout.write(
                f"The import of {path} into {class_name} is finished: {_summary(checkpoint)}. "
                "--restart stores all of it again."
            )
            return
        destination = None if options["check"] else _destination(class_name, options)
        if file_format == "csv":
            mapping = _with_inferred(mapping, path, checkpoint)
        if state is not None:
            checkpoint.save(state)
        reported = 0

        def report(line: int, reason: str) -> None:
            nonlocal reported
            reported += 1
            if reported <= _REPORTED:
                self.stderr.write(f"{path}:{line}: {reason}")
            elif reported == _REPORTED + 1:
                self.stderr.write("… more rows are left out; only their number is told")

        job = Import(
            mapping,
            destination,
            checkpoint,
            state,
            options["batch_size"] or _batch_size(destination),
            options["on_error"] == "stop",
            report,
        )
        with (
            _opened(path) as file,
            _progress(path, class_name) as advanced,
            _without_garbage_collection(),
            contextlib.closing(destination) if destination else contextlib.nullcontext(),
        ):
            try:
                job.run(read_rows(file, file_format), file.buffer.tell, advanced)  # type: ignore[attr-defined]
            except Stopped:
                raise CommandError(
                    f"stopped; {_summary(checkpoint)}. "
                    "--on-error skip leaves such rows out, --resume goes on"
                ) from None
        if state is not None:
            checkpoint.is_finished = True
            checkpoint.save(state)
        if destination is not None and not options["rest"]:
            progress.remove(checkpoint)
            _analyze(class_name)
        done = "would be stored" if options["check"] else "stored"
        self.stdout.write(
            f"{class_name}: {checkpoint.stored:,} objects {done}, "
            f"{checkpoint.refused:,} rows left out"
        )


def _summary(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.stored:,} objects are stored, {checkpoint.refused:,} rows were left out"


def _checkpoint(
    path: Path, class_name: ClassName, options: Mapping[str, Any]
) -> tuple[Checkpoint, Path | None]:
    identity = checkpoints.identity(path)
    if options["check"]:
        return Checkpoint(class_name, identity), None
    state: Path = options["state"] or path.with_name(f"{path.name}.import.json")
    checkpoint = None if options["restart"] else checkpoints.load(state, class_name, identity)
    if checkpoint is not None and (options["resume"] or not checkpoint.is_finished):
        if not options["rest"]:
            progress.restore(checkpoint)
        if checkpoint.rows and not options["resume"]:
            raise CommandError(
                f"an import of this file ended early ({_summary(checkpoint)}): --resume goes on, "
                "--restart starts from the beginning and leaves what is stored"
            )
        return checkpoint, state
    return Checkpoint(class_name, identity), state


def _destination(class_name: ClassName, options: Mapping[str, Any]) -> Destination:
    if not options["rest"]:
        return Database(class_name, during_maintenance=options["during_maintenance"])
    if options["during_maintenance"]:
        raise CommandError("--during-maintenance: only for this instance's own database")
    headers = {"X-Parse-Application-Id": service_settings.APP_ID}
    if service_settings.MASTER_KEY:
        headers["X-Parse-Master-Key"] = service_settings.MASTER_KEY
    else:
        headers["X-Parse-REST-API-Key"] = service_settings.REST_API_KEY
    try:
        return Rest(class_name, options["rest"], headers)
    except ValueError as error:
        raise CommandError(f"--rest: {error}") from None


def _batch_size(destination: Destination | None) -> int:
    if isinstance(destination, Rest):
        return _REST_BATCH
    return _BULK_BATCH if isinstance(destination, Database) and destination.in_bulk else _BATCH


# -- options --------------------------------------------------------------------------------------


def _mapping(options: Mapping[str, Any], known_columns: Mapping[str, Column]) -> RowMapping:
    columns = dict(known_columns)
    for name, kind in _pairs(options["types"], "--types"):
        columns[name] = _column(kind)
    for text in options["date"]:
        name, _, date_format = text.partition("=")
        columns[name] = Column("Date", date_format or None)
    geopoints = {}
    for text in options["geopoint"]:
        name, latitude, longitude = _three(text)
        geopoints[name] = (latitude, longitude)
        for part in (latitude, longitude):
            columns.setdefault(part, Column("Number"))
    renamed = {}
    for text in options["rename"]:
        old, equals, new = text.partition("=")
        if not equals:
            raise CommandError(f"--rename: expected COLUMN=FIELD, got {text!r}")
        renamed[old] = new
    ignored = {name.strip() for text in options["ignore"] for name in text.split(",")}
    return RowMapping(
        columns, renamed, frozenset(ignored), geopoints, options["camel_case"], options["id"]
    )


def _pairs(texts: list[str], option: str) -> Iterator[tuple[str, str]]:
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise CommandError(f"{option}: expected FIELD=TYPE, got {part!r}")
        yield name.strip(), value.strip()


def _column(text: str) -> Column:
    kind, _, target = text.partition(":")
    if kind not in KINDS:
        raise CommandError(f"--types: {kind!r} is none of {', '.join(KINDS)}")
    if (kind == "Pointer") != bool(target):
        raise CommandError("--types: a Pointer names its class, as in owner=Pointer:Person")
    return Column(kind, target_class=target or None)


def _three(text: str) -> tuple[str, str, str]:
    name, _, columns = text.partition("=")
    latitude, _, longitude = columns.partition(",")
    if not (name and latitude and longitude):
        raise CommandError(f"--geopoint: expected FIELD=LATITUDE,LONGITUDE, got {text!r}")
    return name, latitude.strip(), longitude.strip()


def _known_columns(class_name: ClassName, options: Mapping[str, Any]) -> dict[str, Column]:
    """Return the columns that the class defines; empty for a class of another instance."""
    table = None if options["rest"] else registry.find(class_name)
    if table is None:
        return {}
    return {
        name: Column(field.kind, target_class=field.target_class)
        for name, field in table.schema.fields.items()
        if field.kind in KINDS and name != "objectId"
    }


def _with_inferred(mapping: RowMapping, path: Path, checkpoint: Checkpoint) -> RowMapping:
    """Infer the types of columns without a declared type from the first rows."""
    if not checkpoint.kinds:
        with _opened(path) as file:
            sample = [row.values for row in islice(read_rows(file, "csv"), _SAMPLE)]
        for column_name, column in infer_columns(sample).items():
            with contextlib.suppress(BadRow):  # reported with its line later
                checkpoint.kinds[mapping.name(column_name)] = column.kind
    inferred = {name: Column(kind) for name, kind in checkpoint.kinds.items()}
    inferred.pop(mapping.id_field, None)
    # An access list in a cell is JSON.
    inferred["ACL"] = Column("Object")
    return RowMapping(
        {**inferred, **mapping.columns},
        mapping.renamed,
        mapping.ignored,
        mapping.geopoints,
        mapping.camel_case,
        mapping.id_field,
    )


# -- file and terminal ----------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    # A byte order mark, as spreadsheets write it, is no part of the first name.
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield file


@contextlib.contextmanager
def _progress(path: Path, label: str) -> Iterator[Callable[[int], None]]:
    """A bar over the bytes of the file, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda position: None
        return
    size = path.stat().st_size
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield lambda position: bar.update(position - bar.pos)


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection while rows are read.

    Rows contain no reference cycles, and scanning tens of thousands of them repeatedly takes half
    of the time of reading them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _analyze(class_name: ClassName) -> None:
    """Run ANALYZE, so that PostgreSQL plans well for the many new rows."""
    from django.db import connection

    table = registry.find(class_name)
    if table is not None:
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {table.storage}")

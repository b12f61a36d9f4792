"""``manage.py export_objects CLASS FILE``: the objects of a class as a file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import click
import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from backend.kernel.limits.result_memory import largest_fitting
from backend.kernel.principal import MASTER
from objects import service
from objects.core.names import OBJECT_ID, ClassName, check_class_name
from objects.core.query.parser import parse_where
from objects.core.query.tree import Compare, FindOptions, OrderKey, Query, all_of
from objects.definitions import registry
from objects.exchange.exports import write_objects
from objects.exchange.row_files import FORMATS, format_of
from objects.sql.tables import ClassTable

_FIRST = ("objectId", "createdAt", "updatedAt", "ACL")


class Command(BaseCommand):
    help = (
        "Export the objects of a class to a file (NDJSON, a JSON array, CSV), sorted by their ids. "
        "import_objects reads it back. - writes NDJSON to the standard output."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_name", metavar="CLASS")
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--where", default="{}", metavar="JSON", help="only what satisfies it")
        parser.add_argument("--format", choices=FORMATS, help="by default, by the file's name")
        parser.add_argument(
            "--batch-size", type=int, default=1000, metavar="OBJECTS", help="read at once"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        to_stdout = str(path) == "-"
        file_format = options["format"] or ("ndjson" if to_stdout else format_of(path))
        if file_format is None:
            raise CommandError(f"{path}: --format says what it shall be, its name doesn't")
        try:
            class_name = check_class_name(options["class_name"])
            table = registry.find(class_name)
            if table is None:
                raise CommandError(f"there is no class {class_name}")
            where = parse_where(_json(options["where"]))
            with contextlib.ExitStack() as stack:
                file = sys.stdout if to_stdout else stack.enter_context(_replaced(path))
                pages = _pages(class_name, where, max(1, options["batch_size"]))
                total = service.count(MASTER, class_name, where)
                shown = stack.enter_context(_shown(pages, total, class_name))
                written = write_objects(file, file_format, shown, _names(table))
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            if to_stdout and isinstance(error, BrokenPipeError):
                raise  # manage.py ends the command
            raise CommandError(f"{path}: {error.strerror}") from error
        self.stderr.write(f"{class_name}: {written:,} objects written")


def _json(text: str) -> Json:
    try:
        decoded: Json = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise CommandError(f"--where: {error}") from None
    return decoded


def _names(table: ClassTable) -> list[str]:
    fields = sorted(
        name
        for name, field in table.schema.fields.items()
        if name not in _FIRST and field.kind != "Relation"
    )
    return [*_FIRST, *fields]


def _pages(class_name: ClassName, where: Query, size: int) -> Iterator[list[dict[str, Json]]]:
    """All objects by their ids, each page beginning after the last id of the one before."""
    remaining = where
    while True:
        options = FindOptions(where=remaining, limit=size, order=(OrderKey((OBJECT_ID,)),))
        page, _ = largest_fitting(partial(_page, class_name, options), size)
        if not page:
            return
        yield page
        remaining = all_of(where, Compare((OBJECT_ID,), "gt", str(page[-1]["objectId"])))


def _page(class_name: ClassName, options: FindOptions, limit: int) -> list[dict[str, Json]]:
    return service.find(MASTER, class_name, replace(options, limit=limit)).objects()


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[IO[str]]:
    """Open a file that replaces its target only when it is complete."""
    fresh = path.with_name(f"{path.name}.part")
    try:
        with fresh.open("w", encoding="utf-8", newline="") as file:
            yield file
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _shown(
    pages: Iterator[list[dict[str, Json]]], total: int, label: str
) -> Iterator[Iterator[list[dict[str, Json]]]]:
    """The same pages, with a bar on a terminal."""
    if not sys.stderr.isatty():
        yield pages
        return
    with click.progressbar(length=total, label=label, file=sys.stderr) as bar:

        def counted() -> Iterator[list[dict[str, Json]]]:
            for page in pages:
                bar.update(len(page))
                yield page

        yield counted()

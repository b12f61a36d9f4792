"""``manage.py indexes [CLASS]``: declared and learned indexes with their evidence."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from backend.settings.conf import service_settings
from objects.core.indexes.decisions import Cost
from objects.core.names import check_class_name
from objects.definitions import registry
from objects.learned import overview
from objects.learned.overview import LearnedView
from objects.sql.tables import ClassTable

_MEBIBYTE = 1024 * 1024


class Command(BaseCommand):
    help = (
        "List the declared and the learned indexes of a class, or of all classes, and the indexes "
        "that queries suggest, with the queries and their times. See docs/indexes.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("class_name", metavar="CLASS", nargs="?")
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--build", action="store_true", help="build what is suggested")
        action.add_argument("--drop", metavar="NAME", help="drop a learned index of CLASS")
        action.add_argument(
            "--forget",
            action="store_true",
            help="forget what queries cost, and which indexes weren't worth having",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            tables = [*_tables(options["class_name"])]
            if options["drop"]:
                if options["class_name"] is None:
                    raise CommandError("--drop: name the class as well")
                overview.drop(tables[0], options["drop"])
                self.stdout.write(f"dropped: {options['drop']}")
                return
            for table in tables:
                if options["build"]:
                    self._build(table)
                elif options["forget"]:
                    count = overview.forget(table)
                    self.stdout.write(f"{table.class_name}: {count} shapes of queries forgotten")
                else:
                    self._list(table, is_alone=options["class_name"] is not None)
        except ServiceError as error:
            raise CommandError(error.message) from error

    def _build(self, table: ClassTable) -> None:
        while overview.build(table):
            pass
        self._list(table, is_alone=True)

    def _list(self, table: ClassTable, *, is_alone: bool) -> None:
        listing = overview.overview(table)
        if not (is_alone or listing.declared or listing.learned or listing.suggestions):
            return
        size = listing.size
        self.stdout.write(f"{table.class_name}: about {size.rows:,.0f} objects, {_size(size.size)}")
        for index in listing.declared:
            kind = "unique" if index.unique else "declared"
            self.stdout.write(f"  {kind}: {index.name} ({index.fields}), {_size(index.size)}")
        for learned in listing.learned:
            self.stdout.write(f"  learned: {learned.name} ({learned.fields}), {_state(learned)}")
            self.stdout.write(f"    {learned.shape}: {_times(learned.before, learned.after)}")
        for suggestion in listing.suggestions:
            self.stdout.write(
                f"  suggested: {suggestion.fields}, about {_size(suggestion.size)}\n"
                f"    {suggestion.shape}: {_times(suggestion.cost, Cost())}"
            )
        if is_alone and not (listing.declared or listing.learned or listing.suggestions):
            self.stdout.write("  no index besides those that every class has")
        if is_alone and service_settings.AUTO_INDEX != "on":
            self.stdout.write(f"  AUTO_INDEX={service_settings.AUTO_INDEX}: none is built")


def _tables(class_name: str | None) -> Iterator[ClassTable]:
    if class_name is None:
        yield from registry.all_classes()
        return
    table = registry.current(check_class_name(class_name))
    if table is None:
        raise CommandError(f"Class {class_name} does not exist.")
    yield table


def _state(index: LearnedView) -> str:
    if index.state == "valid":
        return f"{_size(index.size)}, used {overview.age(index.used_at)}"
    return f"{index.state}: {index.reason}" if index.reason else index.state


def _times(before: Cost, after: Cost) -> str:
    text = f"{before.calls:,} queries took {before.mean * 1000:.1f} ms each"
    if after.calls:
        text += f"; {after.calls:,} since then {after.mean * 1000:.1f} ms"
    return text


def _size(size: int | None) -> str:
    return "not built" if size is None else f"{size / _MEBIBYTE:.1f} MiB"

"""``manage.py build_indexes``: build the declared indexes that the database hasn't.

A process that dies while it builds an index leaves it declared and not built. Classes stay
writable meanwhile. With ``--check`` it only says which ones are missing, and ends with status 1
if any is.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.errors import ServiceError
from objects import indexes, registry


class Command(BaseCommand):
    help = "Builds the declared indexes that the database hasn't."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only say which are missing")

    def handle(self, *args: Any, **options: Any) -> None:
        left = 0
        for table in [*registry.all_classes()]:
            for index in indexes.missing(table):
                name = f"{table.class_name}.{index.name}"
                if options["check"]:
                    self.stdout.write(f"missing: {name}")
                    left += 1
                    continue
                try:
                    indexes.build(table, index)
                except ServiceError as error:
                    self.stderr.write(f"{name}: {error.message}")
                    left += 1
                else:
                    self.stdout.write(f"built: {name}")
        if left:
            raise CommandError(
                f"{left} declared {'index is' if left == 1 else 'indexes are'} missing."
            )

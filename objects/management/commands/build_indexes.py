"""``manage.py build_indexes``: make the indexes in the database those that classes declare.

A process that dies while it builds an index leaves it declared and not built, one that dies before
it drops an index leaves that. Classes stay writable while indexes are built. With ``--check`` it
only lists both, and ends with status 1 if there are any. Without it, it also replaces the indexes
of all fields that an earlier version has made, which the service does in the background too.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from objects.definitions import indexes, registry
from objects.learned import replacements
from objects.service import classes


class Command(BaseCommand):
    help = "Build declared indexes that are missing, and drop those that no class declares."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only list them")

    def handle(self, *args: Any, **options: Any) -> None:
        left = undeclared = 0
        for table in [*registry.all_classes()]:
            if options["check"]:
                for index in indexes.missing(table):
                    self.stdout.write(f"missing: {table.class_name}.{index.name}")
                    left += 1
            else:
                for index, error in classes.repair_indexes(MASTER, table.class_name):
                    name = f"{table.class_name}.{index.name}"
                    if error is None:
                        self.stdout.write(f"built: {name}")
                    else:
                        self.stderr.write(f"{name}: {error.message}")
                        left += 1
            names, word = indexes.undeclared(table), "undeclared"
            if names and not options["check"]:
                try:
                    names = classes.drop_undeclared_indexes(MASTER, table.class_name)
                    word = "dropped"
                except ServiceError as error:
                    self.stderr.write(f"{table.class_name}: {error.message}")
            for name in names:
                undeclared += word == "undeclared"
                self.stdout.write(f"{word}: {name} of {table.class_name}")
        if options["check"]:
            former = len(replacements.outdated())
        else:
            former = replacements.run(seconds=float("inf"))
        problems = []
        if former:
            problems.append(
                f"{former} {'class has' if former == 1 else 'classes have'} an index of all fields"
                " that an earlier version made."
            )
        if left:
            problems.append(
                f"{left} declared {'index is' if left == 1 else 'indexes are'} missing."
            )
        if undeclared:
            count = f"{undeclared} {'index' if undeclared == 1 else 'indexes'}"
            problems.append(f"No class declares {count}.")
        if problems:
            raise CommandError(" ".join(problems))

"""``manage.py change_class NAME``: change, purge or remove a class that others are using.

Over REST and in the admin a change that old transactions are in the way of is refused after a
while, since a thread of the web server waits for it. This command waits as long as it takes.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from objects.core.names import check_class_name
from objects.service import classes


class Command(BaseCommand):
    help = (
        "Change a class, and wait for transactions that use it as long as it takes. Other requests "
        "to the class go on meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_name", metavar="NAME")
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument(
            "--schema",
            metavar="JSON",
            help='a change as PUT /schemas takes it: \'{"fields": {"old": {"__op": "Delete"}}}\'',
        )
        action.add_argument("--purge", action="store_true", help="remove all objects of the class")
        action.add_argument(
            "--remove", action="store_true", help="remove the class, if it is empty"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            name = check_class_name(options["class_name"])
            if options["purge"]:
                classes.purge(MASTER, name)
                self.stdout.write(f"purged: {name}")
            elif options["remove"]:
                classes.delete(MASTER, name)
                self.stdout.write(f"removed: {name}")
            else:
                classes.change(MASTER, name, msgspec.json.decode(options["schema"]))
                self.stdout.write(f"changed: {name}")
        except msgspec.DecodeError as error:
            raise CommandError(f"--schema: {error}") from error
        except ServiceError as error:
            raise CommandError(error.message) from error

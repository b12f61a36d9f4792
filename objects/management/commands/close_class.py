"""``manage.py close_class NAME...``: the public may no longer write objects of these classes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from objects.core.names import check_class_name
from objects.service import classes


class Command(BaseCommand):
    help = (
        "Take create, update, delete and addField of classes away from the public. Roles, users "
        "and pointer fields that the permissions name keep their rights; reading stays as it is. "
        "Without names, list the classes whose objects everybody may write."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_names", metavar="NAME", nargs="*")
        parser.add_argument(
            "--all", action="store_true", help="close every class that the list shows"
        )
        parser.add_argument(
            "--to",
            choices=("authenticated", "closed"),
            default="authenticated",
            help="who may write where everybody could: logged-in users (the default), or only the "
            "master key and those whom the permissions name",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        names: list[str] = options["class_names"]
        try:
            if not names:
                listed = classes.open_classes()
                if not options["all"]:
                    self._list(listed)
                    return
                names = [open_class.class_name for open_class in listed]
            elif options["all"]:
                raise CommandError("--all: expected no names besides it")
            class_names = [check_class_name(name) for name in names]
            for name in class_names:
                classes.schema(MASTER, name)  # before the first one is changed
            for name in class_names:
                actions = classes.close_to_public(
                    MASTER, name, to_users=options["to"] == "authenticated"
                )
                self.stdout.write(
                    f"closed: {name} ({', '.join(actions)})" if actions else f"not open: {name}"
                )
        except ServiceError as error:
            raise CommandError(error.message) from error

    def _list(self, listed: list[classes.OpenClass]) -> None:
        for open_class in listed:
            self.stdout.write(
                f"{open_class.class_name}: everybody may {', '.join(open_class.actions)}"
            )
        if not listed:
            self.stdout.write("no class is open: the public writes no objects")

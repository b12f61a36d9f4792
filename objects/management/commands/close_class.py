"""``manage.py close_class NAME...``: the public may no longer write, or read, these classes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from objects.core.access.class_permissions import Access
from objects.core.names import check_class_name
from objects.service import classes, public_access


class Command(BaseCommand):
    help = (
        "Take create, update, delete and addField of classes away from the public, or with "
        "--reading get, find and count. Roles, users and pointer fields that the permissions name "
        "keep their rights. Without names, list the classes whose objects everybody may write, and "
        "those whose fields look personal and that everybody may read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("class_names", metavar="NAME", nargs="*")
        parser.add_argument(
            "--all", action="store_true", help="close every class that the list shows"
        )
        parser.add_argument(
            "--reading", action="store_true", help="close reading; writing stays as it is"
        )
        parser.add_argument(
            "--to",
            choices=("authenticated", "closed"),
            default="authenticated",
            help="who may where everybody could: logged-in users (the default), or only the "
            "master key and those whom the permissions name",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        names: list[str] = options["class_names"]
        access: Access = "read" if options["reading"] else "write"
        try:
            if not names:
                if not options["all"]:
                    self._list()
                    return
                if access == "read":
                    raise CommandError("--reading: name the classes")
                names = [open_class.class_name for open_class in public_access.open_classes()]
            elif options["all"]:
                raise CommandError("--all: expected no names besides it")
            class_names = [check_class_name(name) for name in names]
            for name in class_names:
                classes.schema(MASTER, name)  # before the first one is changed
            for name in class_names:
                actions = public_access.close_to_public(
                    MASTER, name, access, to_users=options["to"] == "authenticated"
                )
                self.stdout.write(
                    f"closed: {name} ({', '.join(actions)})" if actions else f"not open: {name}"
                )
        except ServiceError as error:
            raise CommandError(error.message) from error

    def _list(self) -> None:
        listed = public_access.open_classes()
        for open_class in listed:
            self.stdout.write(
                f"{open_class.class_name}: everybody may {', '.join(open_class.actions)}"
            )
        if not listed:
            self.stdout.write("no class is open: the public writes no objects")
        for exposed in public_access.exposed_fields():
            self.stdout.write(f"{exposed.class_name}: everybody reads {', '.join(exposed.fields)}")

"""``manage.py upgrade_postgres``: bring the embedded database to this PostgreSQL's major."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from backend.instance.errors import StartError
from backend.operations.embedded import upgrade
from backend.operations.embedded.binaries import POSTGRES_MAJOR
from backend.settings.areas.processes import Servers


class Command(BaseCommand):
    help = (
        "Upgrade the embedded database of an older major version of PostgreSQL, by"
        " pg_upgrade, while script/server doesn't run. The old one is copied and kept."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--programs",
            type=Path,
            metavar="FOLDER",
            help="the folder of the old major's programs, if they aren't in the wheel",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED_POSTGRES:
            raise CommandError("DATABASE_URL names a server of yours: upgrade it by its own means.")
        folder = settings.DATA_FOLDER
        try:
            account = folder.prepare(Servers.ENGINE_USER.read())
            with folder.hold():
                backup = upgrade.upgrade(folder, account, options["programs"])
        except StartError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"The database is one of PostgreSQL {POSTGRES_MAJOR} now. Start script/server; when all"
            f" is well, remove the old one: {backup}"
        )

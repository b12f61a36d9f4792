"""``manage.py prepare``: bring the database up to date, make staff groups and a first staff user.

It may be run at every start and by several machines at once. With ``--json`` it says on standard
output how to log in to the admin, and whether the instance was restored and is held.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connection

from backend.kernel.connections.advisory_locks import PREPARATION, lock_session, unlock_session
from backend.kernel.connections.reachability import check_servers
from backend.operations.preparation import FILE, first_staff_user, migrate
from backend.operations.wal_archive import process as wal_archive
from backend.site.staff import make_groups
from objects.database import hold
from objects.definitions.registry import offered_models


class Command(BaseCommand):
    help = "Migrate, update the staff groups, and create the first staff user if there is none."
    requires_system_checks = ["settings"]  # those that say what a wrong setting would break later

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="say the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        check_servers(settings)
        lock_session(_run, PREPARATION)
        try:
            migrate(options["verbosity"])
            make_groups(offered_models())
            if settings.EMBEDDED_POSTGRES and not wal_archive.is_on():
                wal_archive.drop_slots()
            login = first_staff_user(settings.DATA_DIR) | {"is_held": hold.is_on()}
        finally:
            unlock_session(_run, PREPARATION)
        if options["json"]:
            self.stdout.write(json.dumps(login))
        elif login["is_new"]:
            # Not the password: what is printed here ends in logs.
            place = "ADMIN_PASSWORD" if login["password"] is None else settings.DATA_DIR / FILE
            self.stdout.write(
                f"The first staff user is {login['username']}: {place} has the password."
            )


def _run(sql: str, parameters: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()

"""``manage.py reload``: have ``script/server`` run the application as it is on the disk now."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from backend.operations.processes import reloads

_PAUSE = 0.1  # seconds


class Command(BaseCommand):
    help = (
        "Replace all processes of the running script/server by new ones, without a failed request:"
        " after an update of the code, of modules or of settings in .env. Migrates first. The old"
        " processes finish what they are doing. Other addresses (PORT, LISTEN_HOST, SITE_ADDRESS)"
        " need a restart."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--seconds", type=float, default=600, help="how long to wait (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data = settings.DATA_FOLDER
        record = data.running()
        if record is None:
            raise CommandError(
                f"script/server doesn't run with DATA_DIR={settings.DATA_DIR}: nothing to reload."
            )
        try:
            answer = reloads.request(data)
        except PermissionError:
            raise CommandError(
                f"script/server (process {record['pid']}) can't be reached: run this as its user."
            ) from None
        except OSError:
            raise CommandError("script/server is starting: try again in a moment.") from None
        end = time.monotonic() + options["seconds"]
        while (reason := reloads.read_answer(answer)) is None:
            if data.running() is None:
                raise CommandError("script/server has ended.")
            if time.monotonic() > end:
                raise CommandError(
                    f"The application wasn't replaced within {options['seconds']:.0f} seconds. "
                    "script/server goes on with it; its log tells how that ends."
                )
            time.sleep(_PAUSE)
        if reason:
            raise CommandError(f"The application wasn't replaced: {reason}")
        self.stdout.write("The application was replaced.")

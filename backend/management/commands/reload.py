"""``manage.py reload``: have ``script/server`` run the application as it is on the disk now."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from argparse import ArgumentParser
from typing import Any

import psutil
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

_PAUSE = 0.1  # seconds


class Command(BaseCommand):
    help = (
        "Replaces all processes of the running script/server by new ones, without a failed request:"
        " after an update of the code, of modules or of settings in .env. Migrates first. The old"
        " processes finish what they are doing."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--seconds", type=float, default=120, help="how long to wait (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        record = settings.DATA_FOLDER.running()
        if record is None:
            raise CommandError(
                f"script/server doesn't run with DATA_DIR={settings.DATA_DIR}: nothing to reload."
            )
        try:
            launcher = psutil.Process(record["pid"])
            before = _applications(launcher)
            # The record may be old, and the number another process's: to most, the signal is fatal.
            if not before:
                raise CommandError("script/server runs no application yet: try again in a moment.")
            os.kill(launcher.pid, signal.SIGUSR1)
        except (psutil.Error, OSError):
            raise CommandError(
                f"script/server ({record['pid']}) can't be reached: run this as its user."
            ) from None
        end = time.monotonic() + options["seconds"]
        while True:
            try:
                now = _applications(launcher)
            except psutil.NoSuchProcess:
                raise CommandError("script/server has ended.") from None
            if now and not now & before:
                break
            if time.monotonic() > end:
                raise CommandError(
                    "The application wasn't replaced; the log of script/server has the reason."
                )
            time.sleep(_PAUSE)
        self.stdout.write("The application was replaced.")


def _applications(launcher: psutil.Process) -> set[psutil.Process]:
    found = set()
    for child in launcher.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() == "svc-application":
                found.add(child)
    return found

"""``manage.py resume``: let a restored instance run its schedules and send what it holds."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from objects.database import hold


class Command(BaseCommand):
    help = (
        "Let a restored instance run its schedules again and send webhooks, pushes, emails and "
        "transactions. Resume it when the instance that was backed up doesn't run any more."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if hold.release():
            self.stdout.write("Resumed: schedules run, and what was held goes out.")
        else:
            self.stdout.write("Nothing was held.")

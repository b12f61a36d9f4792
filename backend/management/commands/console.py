"""``manage.py console``: Django's shell with the names that work on objects already imported."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import shell
from django.db import connection

_NAMES = (
    "objects.service",
    "objects.service.classes",
    "objects.definitions.registry",
    "objects.storage.records.wire_object",
    "functions.runtime.queries.Query",
    "backend.kernel.principal.MASTER",
    "backend.kernel.principal.CLIENT",
    "backend.kernel.principal.Principal",
    "backend.settings.conf.service_settings",
)


class Command(shell.Command):
    help = (
        "Django's shell with the names of the object service: service, classes, registry, Query,"
        " MASTER, CLIENT, Principal, wire_object, service_settings, and all models. Nothing asks"
        " before it writes: MASTER may change everything."
    )

    def get_auto_imports(self) -> list[str]:
        """Return the import paths of all models, then those of the object service."""
        return [*(super().get_auto_imports() or ()), *_NAMES]

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the shell. Raises ``OperationalError`` if PostgreSQL can't be reached."""
        connection.ensure_connection()
        if options["command"] and options["verbosity"] == 1:
            # Django's line about its imports would mix with the output of the code.
            options["verbosity"] = 0
        super().handle(*args, **options)

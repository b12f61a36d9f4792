"""The test run's instance as a restore leaves it: nothing goes out."""

from __future__ import annotations

from django.db import connection

from objects.database import hold


def begin_hold() -> None:
    with connection.cursor() as cursor:
        for statement in hold.restoring("public", is_on=True):
            cursor.execute(statement)

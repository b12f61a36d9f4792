"""Stored times that are moved back, as if so much time had passed."""

from __future__ import annotations

from django.db import connection


def move_back(seconds: float, *columns: tuple[str, str]) -> None:
    """Move the times in columns back in all rows. A column is a table's name and its own."""
    with connection.cursor() as cursor:
        for table, column in columns:
            cursor.execute(
                f"UPDATE {table} SET {column} = {column} - make_interval(secs => %s)", [seconds]
            )

"""The hold of a restored instance: nothing goes out until an operator resumes it.

A restored instance has the schedules, webhooks, pushes and unmined transactions of the one that it
is a copy of, which may still run. While the hold is on, jobs aren't started by schedules, and no
webhook, push, email or transaction is sent. Pushes and deliveries of webhooks wait; webhooks that
an operation needs and transactions are refused (``Held``); emails are retried for about three
hours. Each sender reads the hold in the database right before it sends, so it takes effect in all
processes at once.

A restore sets the hold in its own transaction (``restoring``).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from django.db import transaction
from django_celery_beat.models import PeriodicTasks

from backend.kernel.errors import Held
from backend.logs.setup import get_logger
from objects.database.statements import fetch, fetch_values

IS_ON: Final = "EXISTS (SELECT FROM objects_hold)"
"""The condition for statements that send something themselves."""

_SINCE: Final = "SELECT extract(epoch FROM since) FROM objects_hold"

log = get_logger("hold")


def since() -> datetime | None:
    """Return when the instance was restored that is held, or None while the hold is off."""
    rows = fetch_values(float, _SINCE, {}, prepare=True)
    return datetime.fromtimestamp(rows[0], UTC) if rows else None


def is_on() -> bool:
    """Return whether nothing may go out."""
    return since() is not None


def check(what: str) -> None:
    """Raise ``Held`` if nothing may go out. ``what`` names it in the plural."""
    if is_on():
        raise Held(what)


def release() -> bool:
    """Let everything go out from now on; return whether the hold was on."""
    with transaction.atomic():
        was_on = bool(fetch("DELETE FROM objects_hold RETURNING id", {}, prepare=False))
        # Beat reads its schedule again.
        PeriodicTasks.update_changed()
    if was_on:
        log.warning(
            "instance resumed: schedules, webhooks, pushes, emails and transactions are sent"
        )
    return was_on


def restoring(schema: str, *, is_on: bool) -> list[str]:
    """Return the statements by which a restore sets the hold, or ends one that the archive had.

    ``schema`` is the quoted name. The table is made as migration 0020 makes it: an archive of an
    earlier release doesn't have it.
    """
    table = f"{schema}.objects_hold"
    return [
        f"CREATE TABLE IF NOT EXISTS {table}"
        " (id smallint NOT NULL PRIMARY KEY, since timestamp with time zone NOT NULL)",
        f"DELETE FROM {table}",
        *([f"INSERT INTO {table} VALUES (1, now())"] if is_on else []),
    ]

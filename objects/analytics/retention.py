"""Events that are kept no longer."""

from __future__ import annotations

from backend.settings.conf import service_settings
from objects.database.statements import fetch

# One statement removes no more, so that nobody waits long for the locks of its rows.
_AT_ONCE = 5000

_OLD = "SELECT id FROM objects_event WHERE received_at < now() - make_interval(days => %s)"
# Ids are drawn one after the other; those that were drawn and not used make it fewer, never more.
_TOO_MANY = "SELECT id FROM objects_event WHERE id <= (SELECT max(id) FROM objects_event) - %s"


def remove_old_events() -> int:
    """Remove the events beyond ``EVENT_RETENTION`` and ``EVENT_LIMIT``; how many that were.

    It may run twice at once.
    """
    return _remove(_OLD, service_settings.EVENT_RETENTION) + _remove(
        _TOO_MANY, service_settings.EVENT_LIMIT
    )


def _remove(which: str, bound: int) -> int:
    removed = 0
    while True:
        rows = fetch(
            f"DELETE FROM objects_event WHERE id = ANY (ARRAY({which} ORDER BY id"
            f" LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED)) RETURNING 1",
            (bound,),
            prepare=False,
        )
        removed += len(rows)
        if len(rows) < _AT_ONCE:
            return removed

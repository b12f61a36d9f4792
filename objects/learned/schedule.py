"""What the schedule does for indexes: replace, drop, try, build (docs/indexes.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.core.indexes.decisions import MIN_CALLS, MIN_SECONDS, verdict
from objects.database import catalog, maintenance
from objects.definitions import class_locks, leftovers, registry
from objects.definitions.leftovers import table_of
from objects.learned import builds, drops, evidence, locks, replacements
from objects.learned.evidence import Learned
from objects.sql.tables import ClassTable

UNUSED_DAYS: Final = 14
_NOT_WORTH_DAYS: Final = 7
_TRIAL: Final = 86_400  # seconds

log = get_logger("learned_indexes")


def run() -> bool:
    """Bring the indexes up to date, and build at most one learned; return whether one was built.

    Does nothing in maintenance mode, and while another process does it. It may end at any moment:
    what it leaves, the next run puts in order.
    """
    with locks.only_run() as is_ours:
        if not is_ours or maintenance.state() is not None:
            return False
        replacements.run()
        tidy()
        drop_useless()
        return service_settings.AUTO_INDEX == "on" and build_next()


def tidy() -> None:
    """Clean up after processes that were killed.

    They leave rows without an index, indexes without a row, abandoned builds, declared indexes
    that nobody declares, and tables of removed classes.
    """
    evidence.trim()
    registry.forget_outdated()
    leftovers.drop_tables()
    leftovers.drop_indexes()
    present = drops.in_database()
    states = catalog.index_states([index.name for index in present])
    valid = {name for name, state in states.items() if state.is_valid}
    for index in evidence.learned():
        table = table_of(index.class_id)
        if table is None:
            continue
        if index.state == "building":
            _finish(table, index, is_valid=index.name in valid)
        elif index.state == "valid" and index.name not in valid:
            drops.drop(table.class_name, index, "the database doesn't have it")
    names = {index.name for index in evidence.learned() if index.state != "failed"}
    for class_id, name in present:
        table = table_of(class_id) if name not in names else None
        if table is not None:
            drops.drop_from_database(table, name)


def _finish(table: ClassTable, index: Learned, *, is_valid: bool) -> None:
    with class_locks.building_if_free(table.class_id) as is_held:
        if not is_held:
            return  # the database is still building it, although its client has ended
        if is_valid and builds.put_to_use(table.class_name, index.id):
            return
        if drops.drop_from_database(table, index.name):
            builds.fail(index, "the process that built it has ended")


def drop_useless() -> None:
    """Drop indexes that are unused, and those that make queries slower."""
    evidence.note_use()
    for index in evidence.learned():
        table = table_of(index.class_id) if index.state == "valid" else None
        if table is None:
            continue
        if is_unused(index):
            drops.drop(table.class_name, index, f"unused for {UNUSED_DAYS} days")
        elif index.trial_age < _TRIAL:
            reason = verdict(*evidence.trials(index, evidence.shapes(index.class_id)))
            if reason is not None:
                drops.drop(table.class_name, index, reason, _NOT_WORTH_DAYS)


def is_unused(index: Learned, now: datetime | None = None) -> bool:
    """Return whether PostgreSQL hasn't used an index for ``UNUSED_DAYS``."""
    last = index.used_at or index.built_at
    return last is not None and last < (now or datetime.now(UTC)) - timedelta(days=UNUSED_DAYS)


def build_next() -> bool:
    """Build the index that saves most time, of all classes; return whether one was built."""
    best = None
    for class_id in evidence.classes_to_serve(MIN_CALLS, MIN_SECONDS):
        table = table_of(class_id)
        if table is None:
            continue
        indexes = evidence.learned(table.class_id)
        if not evidence.may_build(indexes):
            continue
        costs = evidence.shapes(table.class_id)
        for suggestion in evidence.suggestions_for(table, costs, indexes)[:1]:
            if best is None or suggestion.cost.seconds > best[1].cost.seconds:
                best = (table, suggestion)
    return best is not None and builds.build(*best)

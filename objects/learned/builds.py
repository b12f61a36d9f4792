"""Building learned indexes while requests are served.

An index is built CONCURRENTLY, under limits of time, so that no write waits for it. Queries use it
from the transaction on that marks it as valid, which gives the class a new version. A process that
is killed leaves an index that ``schedule.tidy`` drops or puts to use.
"""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from hashlib import blake2s
from typing import Final

import msgspec
import psycopg
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from psycopg import errors as pg

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from objects.core.indexes.decisions import MAX_LEARNED, MAX_SHARE, Suggestion, fits
from objects.core.indexes.shapes import IndexFields
from objects.core.names import ClassName
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.database.statements import fetch
from objects.database.time_limits import time_limits
from objects.definitions import registry
from objects.definitions.class_locks import building_if_free
from objects.definitions.indexes import quoted
from objects.learned import drops, evidence
from objects.learned.evidence import Learned
from objects.learned.models import LearnedIndex
from objects.sql.fields import column_expression, learned_column
from objects.sql.tables import ClassTable

BUILD_LIMIT: Final = 900_000
"""Milliseconds for building an index."""
_LOCK_LIMIT: Final = 10_000
"""Milliseconds for waiting for transactions that are older."""
_MIN_FREE: Final = 1024**3
_DAY: Final = 86_400
_FIRST_PAUSE: Final = 300
"""Seconds until a build that had to wait too long is tried again; twice as long each time."""

log = get_logger("learned_indexes")


def index_name(class_id: int, fields: IndexFields) -> str:
    """Return the name of a learned index in the database."""
    digest = blake2s(msgspec.json.encode(fields), digest_size=8).hexdigest()
    return f"objects_auto_{class_id}_{digest}"


def build(table: ClassTable, suggestion: Suggestion) -> bool:
    """Build an index of a class and put it to use; return whether it is in use now.

    Never inside a transaction. Why it couldn't be built is stored in its row; it isn't tried again
    before ``retry_at``. Raises ``UnderMaintenance`` before anything is built.
    """
    name = index_name(table.class_id, suggestion.fields)
    with building_if_free(table.class_id) as is_held:
        if not is_held:
            return False
        other_indexes = [
            index for index in evidence.learned(table.class_id) if index.state != "failed"
        ]
        size = evidence.size_of(table)
        estimated = evidence.estimated_size(table, suggestion.fields, size.rows)
        row_id = _begin(table, name, suggestion)
        if row_id is None:
            return False
        if not fits(estimated, [index.size or 0 for index in other_indexes], size.size):
            if len(other_indexes) >= MAX_LEARNED:
                reason = f"the class has {MAX_LEARNED} learned indexes"
            else:
                reason = f"learned indexes have at most {MAX_SHARE:.0%} of the size of the objects"
            _fail(row_id, reason, _DAY)
            return False
        if not _has_room(estimated):
            _fail(row_id, "the disk has too little room", _DAY)
            return False
        started = time.monotonic()
        try:
            _create(table, name, suggestion.fields)
        except (ServiceError, psycopg.Error) as error:
            drops.drop_from_database(table, name)
            _fail(row_id, *_reason(error))
            return False
        seconds = time.monotonic() - started
        built = next(
            (index for index in evidence.learned(table.class_id) if index.id == row_id), None
        )
        sizes = [(built.size or 0) if built else 0, *(index.size or 0 for index in other_indexes)]
        if sum(sizes) > MAX_SHARE * size.size:
            drops.drop_from_database(table, name)
            reason = f"learned indexes have at most {MAX_SHARE:.0%} of the size of the objects"
            _fail(row_id, reason, _DAY)
            return False
        is_used = put_to_use(table.class_name, row_id, seconds)
        log.info(
            "an index is built",
            class_name=table.class_name,
            index=name,
            fields=dict(suggestion.fields),
            seconds=round(seconds, 3),
            size=sizes[0],
        )
        return is_used


def _begin(table: ClassTable, name: str, suggestion: Suggestion) -> int | None:
    """Store that the index is being built; None if the class isn't what it was."""
    with maintenance.writing():
        current = registry.lock(table.class_name)
        if current is None or not _is_same(table, current, suggestion.fields):
            return None
        build = {
            "state": LearnedIndex.BUILDING,
            "shape": suggestion.shape.encode(),
            "started_at": Now(),
            "before_calls": suggestion.cost.calls,
            "before_seconds": suggestion.cost.seconds,
        }
        # No other transaction inserts the row: its name has the id of the class, which is locked.
        with orm_queries():
            index = LearnedIndex.objects.select_for_update().filter(name=name).first()
            if index is None:
                fields = list(suggestion.fields)
                return LearnedIndex.objects.create(
                    class_id=table.class_id, name=name, fields=fields, attempts=1, **build
                ).pk
            if index.state != LearnedIndex.FAILED:
                return None
            attempts = index.attempts + 1
            LearnedIndex.objects.filter(pk=index.pk).update(reason="", attempts=attempts, **build)
            return index.pk


def _is_same(table: ClassTable, current: ClassTable, fields: IndexFields) -> bool:
    return current.class_id == table.class_id and all(
        current.schema.field_type(name) == table.schema.field_type(name) is not None
        for name, _ in fields
    )


def definition(table: ClassTable, fields: IndexFields) -> str:
    """Return the part of ``CREATE INDEX`` after the table's name."""
    if fields[0][1] == "2dsphere":
        points = ", ".join(f"({column_expression(table, name)})" for name, _ in fields)
        return f"USING gist ({points})"
    columns = ", ".join(
        learned_column(table, name, descending=direction == -1) for name, direction in fields
    )
    # The order of ties, so that a field with few values can be paged through as well.
    return f"({columns}, object_id {'DESC' if fields[-1][1] == -1 else 'ASC'})"


def _create(table: ClassTable, name: str, fields: IndexFields) -> None:
    with time_limits(statement=BUILD_LIMIT, lock=_LOCK_LIMIT):
        fetch(f"DROP INDEX CONCURRENTLY IF EXISTS {quoted(name)}", (), prepare=False)
        fetch(
            f"CREATE INDEX CONCURRENTLY {quoted(name)} ON {table.storage}"
            f" {definition(table, fields)}",
            (),
            prepare=False,
        )
        try:
            # Without statistics of the new expressions PostgreSQL guesses what a condition leaves.
            fetch(f"ANALYZE {table.storage}", (), prepare=False)
        except (ServiceError, psycopg.Error) as error:
            log.warning("statistics of an index have to wait", index=name, reason=str(error))


def put_to_use(class_name: ClassName, row_id: int, seconds: float | None = None) -> bool:
    """Let every process use a built index; return whether it is in use.

    False in maintenance mode, and where the index isn't wanted any more: it is put to use or
    dropped later.
    """
    try:
        with maintenance.writing():
            table = registry.lock(class_name)
            if table is None:
                return False
            version = registry.renew_locked(table)
            fields = _set_valid(row_id, table.class_id, version, seconds)
            if fields is None:
                transaction.set_rollback(True)
                return False
            evidence.restart(table.class_id, [name for name, _ in fields], version)
    except ServiceError as error:
        log.info("an index that is built has to wait", reason=error.message)
        return False
    registry.forget(class_name)
    return True


@orm_queries()
def _set_valid(
    row_id: int, class_id: int, version: int, seconds: float | None
) -> IndexFields | None:
    """Mark an index as valid, and return its fields; None if it is no longer being built."""
    now = Now()
    row = LearnedIndex.objects.filter(pk=row_id, state=LearnedIndex.BUILDING, class_id=class_id)
    is_set = row.update(
        state=LearnedIndex.VALID,
        reason="",
        attempts=0,
        retry_at=None,
        build_seconds=seconds,
        version=version,
        scans=0,
        built_at=now,
        used_at=now,
        checked_at=now,
    )
    if not is_set:
        return None
    return evidence.index_fields(LearnedIndex.objects.get(pk=row_id).fields)


def _has_room(estimated: float) -> bool:
    if not settings.EMBEDDED_POSTGRES:
        return True  # the disk of another server isn't seen from here
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError:
        return True
    return free >= 3 * estimated + _MIN_FREE


def _reason(error: ServiceError | psycopg.Error) -> tuple[str, int | None]:
    """Return why an index couldn't be built, and the seconds until the next attempt.

    None instead of seconds: the delay grows with each attempt.
    """
    cause = error.__cause__ if isinstance(error, ServiceError) else error
    if isinstance(cause, pg.LockNotAvailable):
        return "transactions that began before took too long", None
    if isinstance(cause, pg.QueryCanceled):
        return "it was interrupted, or took too long", None
    if isinstance(cause, pg.ProgramLimitExceeded):
        return "there are values too long for an index", _DAY
    if isinstance(cause, pg.DiskFull):
        return "the disk is full", _DAY
    if isinstance(cause, pg.DataError):
        return "there are values of another type", _DAY
    return f"PostgreSQL refused it ({type(cause or error).__name__})", _DAY


def _fail(row_id: int, reason: str, seconds: int | None) -> None:
    """Store why there is no index. In maintenance mode nothing is stored; ``tidy`` does it then."""
    log.warning("an index isn't built", index_id=row_id, reason=reason)
    try:
        with maintenance.writing(), orm_queries():
            index = LearnedIndex.objects.select_for_update().filter(pk=row_id).first()
            if index is None:
                return
            pause = min(_DAY, _FIRST_PAUSE * 2 ** (min(index.attempts, 16) - 1))
            retry_at = Now() + timedelta(seconds=pause if seconds is None else seconds)
            LearnedIndex.objects.filter(pk=row_id).update(
                state=LearnedIndex.FAILED, reason=reason, retry_at=retry_at
            )
    except ServiceError as error:
        log.warning("that is stored by the next run", index_id=row_id, error=error.message)


def fail(index: Learned, reason: str) -> None:
    """Store that building an index has ended without index."""
    _fail(index.id, reason, None)

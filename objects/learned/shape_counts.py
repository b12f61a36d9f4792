"""What queries cost, by shape: counted in the process, added to the database every few seconds.

``note`` takes microseconds and does no I/O. A thread adds the counts of the process to the rows of
``QueryShape``; what a process has counted since then is lost when it is killed. Values of queries
are never stored.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2s
from time import sleep
from typing import Final

import psycopg
from django.conf import settings
from django.db import connection
from django.db.utils import Error as DjangoDatabaseError

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.core.indexes.shapes import Shape, ShapeKey, key_of
from objects.core.query.tree import OrderKey, Query
from objects.database import maintenance
from objects.database.statements import fetch
from objects.sql.tables import ClassTable

MAX_IN_PROCESS: Final = 500
"""Shapes that a process counts between two flushes; the cheapest make room."""
MAX_OF_CLASS: Final = 200
"""Rows of a class; the upkeep removes the cheapest of them long before."""
FLUSH_EVERY: Final = 5.0
"""Seconds."""
_IDLE_FLUSHES: Final = 12
# Commands are over soon, and tests flush themselves.
_WITHOUT_THREAD: Final = frozenset({"manage", "test"})

log = get_logger("slow_queries")


@dataclass(slots=True)
class _Count:
    version: int
    calls: int = 0
    seconds: float = 0.0
    results: int = 0
    slow_calls: int = 0
    slow_seconds: float = 0.0

    def add(self, other: _Count) -> None:
        """Add counts of the same shape.

        Counts of an older version of the class count only as slow queries: that version had other
        indexes.
        """
        if other.version > self.version:
            self.version = other.version
            self.calls, self.seconds, self.results = 0, 0.0, 0
        if other.version == self.version:
            self.calls += other.calls
            self.seconds += other.seconds
            self.results += other.results
        self.slow_calls += other.slow_calls
        self.slow_seconds += other.slow_seconds


_Key = tuple[int, ShapeKey]

_lock = threading.Lock()
_counts: dict[_Key, _Count] = {}
_has_thread = False


def note(
    table: ClassTable, where: Query, order: Sequence[OrderKey], seconds: float, results: int = 0
) -> None:
    """Count a query of the class. Never raises: no request depends on it."""
    shape = key_of(where, order, table.schema)
    is_slow = 0 < service_settings.SLOW_QUERY <= seconds * 1000
    if is_slow:
        _log_slow(table, shape, seconds)
    if shape is None:
        return
    key = (table.class_id, shape)
    with _lock:
        count = _counts.get(key)
        if count is None:
            count = _Count(table.version)
            if len(_counts) >= MAX_IN_PROCESS and not _make_room(seconds):
                return
            _counts[key] = count
        if count.version != table.version:
            if count.version > table.version:
                return
            count.add(_Count(table.version))
        count.calls += 1
        count.seconds += seconds
        count.results += results
        if is_slow:
            count.slow_calls += 1
            count.slow_seconds += seconds
    if not _has_thread:
        _start_thread()


def _log_slow(table: ClassTable, shape: ShapeKey | None, seconds: float) -> None:
    log.warning(
        "a slow query",
        class_name=table.class_name,
        duration_ms=round(seconds * 1000),
        shape="of too many fields to be counted" if shape is None else str(Shape(*shape)),
    )


def _make_room(seconds: float) -> bool:
    """Forget the cheapest shape, if it has cost less than this. The caller holds the lock."""
    cheapest = min(_counts, key=lambda key: _counts[key].seconds)
    if _counts[cheapest].seconds >= seconds:
        return False
    del _counts[cheapest]
    return True


# -- Flushing -------------------------------------------------------------------------------------

_ADD: Final = """
INSERT INTO objects_query_shape AS s (
    class_id, digest, shape, version, calls, seconds, results, before_calls, before_seconds,
    window_start, window_calls, window_seconds, window_results, slow_calls, slow_seconds, slow_at,
    last_at)
SELECT e.class_id, e.digest, e.shape, e.version, e.calls, e.seconds, e.results, 0, 0,
       statement_timestamp(), e.calls, e.seconds, e.results, e.slow_calls, e.slow_seconds,
       CASE WHEN e.slow_calls > 0 THEN statement_timestamp() END, statement_timestamp()
FROM unnest(%(class_ids)s::bigint[], %(digests)s::text[], %(shapes)s::text[],
            %(versions)s::bigint[], %(calls)s::bigint[], %(seconds)s::float8[],
            %(results)s::bigint[], %(slow_calls)s::bigint[], %(slow_seconds)s::float8[])
     AS e (class_id, digest, shape, version, calls, seconds, results, slow_calls, slow_seconds)
JOIN objects_class c ON c.id = e.class_id
WHERE {guard} AND (
    EXISTS (SELECT FROM objects_query_shape o
            WHERE o.class_id = e.class_id AND o.digest = e.digest)
    OR (SELECT count(*) FROM objects_query_shape o WHERE o.class_id = e.class_id) < %(most)s)
ORDER BY e.class_id, e.digest
ON CONFLICT (class_id, digest) DO UPDATE SET
    calls = s.calls + CASE WHEN EXCLUDED.version >= s.version THEN EXCLUDED.calls ELSE 0 END,
    seconds = s.seconds
        + CASE WHEN EXCLUDED.version >= s.version THEN EXCLUDED.seconds ELSE 0 END,
    results = s.results
        + CASE WHEN EXCLUDED.version >= s.version THEN EXCLUDED.results ELSE 0 END,
    (window_start, window_calls, window_seconds, window_results) = (
        SELECT CASE WHEN is_over THEN EXCLUDED.window_start ELSE s.window_start END,
               CASE WHEN is_over THEN 0 ELSE s.window_calls END
                   + CASE WHEN counts THEN EXCLUDED.calls ELSE 0 END,
               CASE WHEN is_over THEN 0 ELSE s.window_seconds END
                   + CASE WHEN counts THEN EXCLUDED.seconds ELSE 0 END,
               CASE WHEN is_over THEN 0 ELSE s.window_results END
                   + CASE WHEN counts THEN EXCLUDED.results ELSE 0 END
        FROM (SELECT s.window_start < statement_timestamp() - interval '1 day' AS is_over,
                     EXCLUDED.version >= s.version AS counts) w),
    slow_calls = s.slow_calls + EXCLUDED.slow_calls,
    slow_seconds = s.slow_seconds + EXCLUDED.slow_seconds,
    slow_at = COALESCE(EXCLUDED.slow_at, s.slow_at),
    last_at = EXCLUDED.last_at
"""


def flush() -> bool:
    """Add the counts of this process to the database; return whether that succeeded.

    They stay in the process during maintenance mode, and while the database can't be reached. Never
    raises outside of a transaction.
    """
    try:
        if maintenance.state() is not None:
            return False
        with _lock:
            taken = dict(_counts)
            _counts.clear()
        if not taken:
            return True
        try:
            _add_to_database(taken)
        except BaseException:
            _put_back(taken)
            raise
    except (ServiceError, psycopg.Error, DjangoDatabaseError):
        if connection.in_atomic_block:
            raise
        return False
    return True


def _add_to_database(counts: dict[_Key, _Count]) -> None:
    shapes = [Shape(*shape).encode() for _, shape in counts]
    params = {
        "class_ids": [class_id for class_id, _ in counts],
        "digests": [blake2s(shape.encode(), digest_size=16).hexdigest() for shape in shapes],
        "shapes": shapes,
        "versions": [count.version for count in counts.values()],
        "calls": [count.calls for count in counts.values()],
        "seconds": [count.seconds for count in counts.values()],
        "results": [count.results for count in counts.values()],
        "slow_calls": [count.slow_calls for count in counts.values()],
        "slow_seconds": [count.slow_seconds for count in counts.values()],
        "most": MAX_OF_CLASS,
    }
    fetch(_ADD.format(guard=maintenance.guard()), params, prepare=False)


def _put_back(counts: dict[_Key, _Count]) -> None:
    with _lock:
        for key, count in counts.items():
            newer = _counts.get(key)
            if newer is not None:
                count.add(newer)
            if newer is not None or len(_counts) < MAX_IN_PROCESS:
                _counts[key] = count


def forget() -> None:
    """Forget what this process has counted since the last flush."""
    with _lock:
        _counts.clear()


def _start_thread() -> None:
    global _has_thread
    if settings.PROCESS in _WITHOUT_THREAD:
        return
    with _lock:
        if _has_thread:
            return
        try:
            threading.Thread(target=_run, name="query shapes", daemon=True).start()
        except RuntimeError as error:  # the next query tries again
            log.warning("the costs of queries aren't stored", reason=str(error))
        else:
            _has_thread = True


def _run() -> None:
    global _has_thread
    idle = 0
    while True:
        sleep(FLUSH_EVERY)
        with _lock:
            idle = 0 if _counts else idle + 1
            if idle >= _IDLE_FLUSHES:
                _has_thread = False
                return
        if idle:
            continue
        try:
            flush()
        except Exception:  # the thread must survive any error
            log.exception("the costs of queries can't be stored")
        finally:
            # The thread has its own connection, which would be idle for most of the time.
            with suppress(Exception):
                connection.close()


def _reset_in_child() -> None:
    """A forked process has no thread, and the parent stores what the parent has counted."""
    global _lock, _has_thread
    _lock = threading.Lock()
    _has_thread = False
    _counts.clear()


os.register_at_fork(after_in_child=_reset_in_child)

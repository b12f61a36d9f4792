"""The embedded PostgreSQL as the source of WAL: its slot, its positions, the bytes of its segments.

A replication slot makes the server keep what isn't archived yet, up to ``max_slot_wal_keep_size``
(``backend.operations.embedded.postgres``); then the server gives the slot up. Nothing waits for the
slot, so a place that is slow or away delays no client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from backend.instance.folder import DataFolder
from backend.instance.wal_archive import SLOT_PREFIX
from backend.kernel.connections import advisory_locks
from backend.kernel.connections.advisory_locks import AdvisoryLock
from backend.operations.wal_archive.catalog import SEGMENT
from objects.database import hold

_OPTIONS: Final = "-c statement_timeout=120000 -c lock_timeout=60000 -c synchronous_commit=on"
_PATIENCE: Final = 10  # seconds for a connection
_TIMELINE: Final = 8  # digits of a segment's name


class Slot(NamedTuple):
    """The slot of a lineage. ``start`` is the position of the oldest WAL that it keeps, None if the
    server has given it up; ``waiting`` how many bytes it keeps."""

    lineage: str
    start: int | None
    waiting: int


class Capture(NamedTuple):
    """Everything that had been committed at ``time`` is before ``end``. While ``snapshot`` stays
    the same, nothing else was committed; it is empty if transactions were under way."""

    time: datetime
    end: int
    snapshot: str


class Server:
    """A connection to the server of a data folder. Raises ``psycopg.Error``."""

    def __init__(self, own: psycopg.Connection, wal: Path) -> None:
        self._own = own
        self._wal = wal

    def slots(self) -> list[Slot]:
        """Return the slots of archives; there is more than one only after a crash."""
        rows = self._rows(
            "SELECT slot_name, restart_lsn - '0/0', wal_status = 'lost',"
            " coalesce(pg_current_wal_insert_lsn() - restart_lsn, 0)"
            " FROM pg_replication_slots WHERE starts_with(slot_name, %s) ORDER BY slot_name",
            SLOT_PREFIX,
        )
        return [
            Slot(
                str(name).removeprefix(SLOT_PREFIX),
                None if start is None or is_lost else int(start),
                int(waiting),
            )
            for name, start, is_lost, waiting in rows
        ]

    def make_slot(self, lineage: str) -> None:
        """Have the server keep the WAL from now on."""
        self._rows("SELECT pg_create_physical_replication_slot(%s, true)", SLOT_PREFIX + lineage)

    def advance(self, lineage: str, position: int) -> None:
        """Let go the WAL before a position."""
        self._rows(
            "SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s)",
            SLOT_PREFIX + lineage,
            position,
        )

    def drop_slot(self, lineage: str) -> None:
        self._rows("SELECT pg_drop_replication_slot(%s)", SLOT_PREFIX + lineage)

    def position(self) -> int:
        """Return where the next WAL will be written."""
        return int(self._rows("SELECT pg_current_wal_insert_lsn() - '0/0'")[0][0])

    def size(self) -> int:
        """Return the bytes of the database."""
        return int(self._rows("SELECT pg_database_size(current_database())")[0][0])

    def time(self) -> datetime:
        moment: datetime = self._rows("SELECT clock_timestamp()")[0][0]
        return moment

    def snapshot(self) -> str:
        """Return the snapshot if no transaction that writes is under way; empty otherwise."""
        snapshot = str(self._rows("SELECT pg_current_snapshot()")[0][0])
        oldest, newest, running = snapshot.split(":")
        return snapshot if oldest == newest and not running else ""

    def capture(self) -> Capture:
        """Commit a transaction that changes nothing, and return what is on the disk with it.

        A recovery stops at the first commit after its target, so it needs one after any time that
        can be chosen. The snapshot is taken before the position, so it has nothing that is after
        that. It counts only if all WAL before that was on the disk, since a transaction may have
        been committed without waiting for that.
        """
        time: datetime = self._rows(
            "SELECT clock_timestamp() FROM pg_logical_emit_message(true, 'wal_archive', '')"
        )[0][0]
        snapshot = self.snapshot()
        (row,) = self._rows(
            "SELECT pg_current_wal_flush_lsn() - '0/0', pg_current_wal_insert_lsn() - '0/0'"
        )
        end, inserted = map(int, row)
        return Capture(time, end, snapshot if end >= inserted else "")

    def read(self, start: int, end: int) -> bytes | None:
        """Return WAL of one segment that is on the disk; None if the segment isn't there any more.

        WAL that was flushed never changes: a record that a crash has cut off is left as it is, and
        the server continues behind it.
        """
        name = self._rows("SELECT pg_walfile_name('0/0'::pg_lsn + %s)", start + 1)[0][0]
        try:
            with (self._wal / str(name)).open("rb") as segment:
                segment.seek(start % SEGMENT)
                content = segment.read(end - start)
        except FileNotFoundError:
            return None
        return content if len(content) == end - start else None

    def is_held(self) -> bool:
        """Whether the instance was restored and not resumed yet."""
        if self._rows("SELECT to_regclass('objects_hold')")[0][0] is None:
            return False
        return bool(self._rows(f"SELECT {hold.IS_ON}")[0][0])

    def timeline(self) -> int:
        """Return the timeline that is written."""
        name = str(self._rows("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")[0][0])
        return int(name[:_TIMELINE], 16)

    def try_lock(self, lock: AdvisoryLock) -> bool:
        """Take a lock of this connection; return whether it was free."""
        return advisory_locks.try_lock_session(
            lambda statement, parameters: self._rows(statement, *parameters), lock
        )

    def _rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._own.execute(statement, parameters).fetchall()


def segment_name(timeline: int, number: int) -> str:
    """Return the name of a segment's file."""
    segments_of_a_name = 2**32 // SEGMENT
    high, low = divmod(number, segments_of_a_name)
    return f"{timeline:08X}{high:08X}{low:08X}"


@contextmanager
def connect(folder: DataFolder) -> Iterator[Server]:
    """Connect to the server of a data folder. Raises ``psycopg.Error``."""
    with psycopg.connect(
        folder.database_url,
        autocommit=True,
        connect_timeout=_PATIENCE,
        application_name="backend archive",
        options=_OPTIONS,
    ) as own:
        yield Server(own, folder.postgres / "pg_wal")

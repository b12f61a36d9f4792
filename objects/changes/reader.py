"""A reader of committed changes that returns each exactly once, concurrently with writers.

Changes become visible when their transaction commits, in any order of their numbers. Therefore a
reader stores a snapshot instead of a number: the unread changes are those of transactions that
were running in that snapshot and have ended since. Long transactions delay no other changes, and
are read when they commit. Changes of one object come in the order of their numbers, because a
writer of an object waits until the previous writer has committed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db import connection

from objects.changes import interest, retention
from objects.changes.images import Change, Place, changes_at
from objects.changes.queue import PlaceQueue
from objects.core.names import ClassName, Subject
from objects.database.statements import fetch, fetch_rows

# Changes that a reader queues; beyond that, subscribers reload faster than they catch up.
_MOST_PLACES: Final = 200_000
# While more wait, they are read before new ones are looked for.
_FEW_PLACES: Final = 2_000
# Seconds. Until no change has come for this long, polling is cheaper than notifications.
_QUIET: Final = 0.1
_SHORT: Final = 0.005
_LONG: Final = 0.5
_LEFT_OUT: Final = interest.WANTED_FOR / 6

_LOOK = """
SELECT pg_current_snapshot()::text,
    COALESCE((SELECT version FROM objects_role_version WHERE id = 1), 0),
    COALESCE((SELECT generation FROM objects_change_trim WHERE id = 1), 0),
    w.in_force, w.asleep, n.txid, n.seq, n.name, n.object_id, n.is_generic, n.size
FROM (
    SELECT string_agg(i.class_name, ',') AS in_force,
        string_agg(i.class_name, ',') FILTER (WHERE i.asleep) AS asleep
    FROM unnest(%s::text[], %s::timestamptz[]) AS w(name, since)
    JOIN objects_interest i ON i.class_name = w.name AND i.since = w.since
    WHERE i.until > clock_timestamp()
) AS w LEFT JOIN (
    SELECT h.txid, h.seq, COALESCE(h.class_name, c.name) AS name, h.object_id,
        h.class_id IS NOT NULL AS is_generic, h.size
    FROM (SELECT * FROM objects_change WHERE txid >= %s::xid8
          UNION ALL
          SELECT * FROM objects_change WHERE txid = ANY(%s::xid8[])) h
    LEFT JOIN objects_class c ON c.id = h.class_id
    WHERE COALESCE(h.class_name, c.name) = ANY(%s)
) n ON true ORDER BY n.seq
LIMIT %s
"""


class _LookRow(NamedTuple):
    """What ``_LOOK`` returns: the state of capturing, and in each row a place, None without any."""

    snapshot: str
    role_version: str
    generation: int
    in_force: str | None
    asleep: str | None
    txid: str | None
    seq: int | None
    class_name: str | None
    object_id: str | None
    is_generic: bool | None
    size: int | None

    def place(self) -> Place | None:
        """Return the place of the row's change."""
        if self.txid is None or self.seq is None or self.class_name is None:
            return None
        return Place(
            self.txid,
            self.seq,
            ClassName(Subject(self.class_name)),
            self.object_id or "",
            bool(self.is_generic),
            self.size or 0,
        )


class _Start(NamedTuple):
    snapshot: str
    generation: int


_START: Final = """
SELECT pg_current_snapshot()::text,
    COALESCE((SELECT generation FROM objects_change_trim WHERE id = 1), 0)
"""

# Statements are planned once, perhaps while the tables are empty, and the plan has to be right when
# they aren't: along the indexes. Planning each time costs ten times what reading does, and
# processes that help with what might be much, but is little, cost a hundred times as much.
_ALONG_INDEXES: Final = """
SELECT set_config(name, 'off', false)
FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin,jit}'::text[]) AS name
UNION ALL SELECT set_config('max_parallel_workers_per_gather', '0', false)
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that were committed since the last reading.

    Changes of one object are in the order of their commits, each beginning with what the one
    before ended with, unless there was a gap. Those of others may come in another order
    (``queue``).
    ``role_version`` is the version of the roles that ``users.roles.held_by`` takes. ``gap`` are the
    classes of which changes before these ones may be missing.
    """

    changes: list[Change]
    role_version: str
    gap: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The content of a ``pg_snapshot``.

    Transactions from ``end`` on and those in ``running`` are in progress, all others have ended.
    """

    begin: int
    end: int
    running: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Snapshot:
        begin, end, running = text.split(":")
        return cls(int(begin), int(end), tuple(running.split(",")) if running else ())


class Reader:
    """Reads what has been committed since it read last, beginning when it is first used.

    Belongs to one thread, and uses its connection. While PostgreSQL can't be reached,
    ``ServiceUnavailable`` is raised; call again later, and it goes on from where it was.
    The usual loop::

        batch = reader.read()
        if not batch.changes:
            wait(reader.sleep())    # seconds, or less if CHANNEL notifies
    """

    CHANNEL: Final = "objects_change"

    def __init__(self) -> None:
        self._raw: Any = None
        self._seen: _Snapshot | None = None
        self._generation = 0
        self._role_version = "0"
        self._gap: set[str] = set()
        self._waiting = PlaceQueue()
        self._taken: list[Place] = []  # of the next batch, until it is read
        # Of each class: since when it has been captured, when it was named last, and when it was
        # left out first after that.
        self._since: dict[str, str] = {}
        self._named: dict[str, float] = {}
        self._unnamed: dict[str, float] = {}
        self._writers: set[interest.Writer] = set()
        self._changed_at = time.monotonic()
        self._requested_at: float | None = None
        self._first_notifying = 0  # the first transaction that started after the request
        self._notifying: set[str] = set()  # classes whose writers notify

    def want(self, class_names: Collection[str]) -> None:
        """Capture the changes of these classes, which need not exist yet.

        When it returns, all changes that are committed later will be read. It may wait a second for
        transactions that began to write before; if one of them takes longer, its end is reported
        as a gap. Name all classes that are still needed every ``WANTED_FOR`` / 3 seconds; the
        others are released.
        """
        self._begin()
        self._release(class_names)
        interested = interest.prolong(class_names)
        now = time.monotonic()
        new = {}
        for name, since in interested.items():
            if self._since.get(name) != since:
                if name in self._since:
                    self._gap.add(name)
                new[name] = since
            self._named[name] = now
            self._unnamed.pop(name, None)
        self._since |= interested
        if new:
            self._requested_at = None
            self._writers |= interest.writers_left(new)

    def read(self) -> Batch:
        """Return the changes committed since the last read, in batches of limited size.

        Call it again until a batch is empty.
        """
        snapshot = self._begin()
        if len(self._waiting) < _FEW_PLACES:
            self._poll(snapshot)
        changes = self._next_changes()
        if changes:
            self._changed_at = time.monotonic()
            self._stop_notifications(changes)
        gap, self._gap = self._gap, set()
        return Batch(changes, self._role_version, frozenset(gap))

    def sleep(self) -> float:
        """Return the seconds to wait after a read without changes.

        A notification on ``CHANNEL`` ends the wait early.

        Zero means at once. Writers have to notify only when it has been quiet for a moment,
        and no longer than until they do, since notifications make them commit one after another.
        """
        now = time.monotonic()
        if now - self._changed_at < _QUIET:
            return _SHORT
        # Again, for another reader may have woken up.
        interest.request_notifications(self._since)
        if self._requested_at is None:
            (start,) = fetch_rows(_Start, _START, {}, prepare=True)
            self._first_notifying = _Snapshot.of(start.snapshot).end
            self._requested_at = now
            return 0
        if self._begin().begin >= self._first_notifying:
            return _LONG
        # A transaction that wrote before notifications were requested is still running.
        return min(max(_SHORT, (now - self._requested_at) / 2), _LONG)

    def trim(self) -> None:
        """Remove what has been kept for ``KEPT`` seconds. Any process may, at any time."""
        retention.trim()

    def close(self) -> None:
        """Give up the thread's connection."""
        connection.close()

    def _begin(self) -> _Snapshot:
        """Return the snapshot of the last reading; at first, of now."""
        if self._raw is None or connection.connection is not self._raw:
            fetch(_ALONG_INDEXES, (), prepare=False)
            self._raw = connection.connection
        if self._seen is None:
            (start,) = fetch_rows(_Start, _START, {}, prepare=True)
            self._seen, self._generation = _Snapshot.of(start.snapshot), start.generation
        return self._seen

    def _poll(self, now: _Snapshot) -> None:
        """Find the places of what is new, and whether something may be missing."""
        names, since = [*self._since], [*self._since.values()]
        params = (names, since, now.end, [*now.running], names, _MOST_PLACES + 1)
        rows = fetch_rows(_LookRow, _LOOK, params, prepare=True)
        state = rows[0]
        self._role_version = state.role_version
        self._notifying = _names(state.asleep)
        ran_out = self._since.keys() - _names(state.in_force)
        if ran_out:
            # Or the server has crashed. Prolonging recreates the lost rows.
            self._gap |= ran_out
            self._since = interest.prolong(names)
            self._writers |= interest.writers_left(self._since)
        if state.generation >= self._generation + 2:
            self._gap.update(names)
        self._generation = state.generation
        self._note_ended_writers()
        if len(rows) > _MOST_PLACES:
            self._gap.update(names)
        else:
            for place in (row.place() for row in rows):
                if place is not None:
                    self._waiting.put(place)
        self._seen = _Snapshot.of(state.snapshot)

    def _note_ended_writers(self) -> None:
        if self._writers:
            ended = interest.ended(self._writers)
            self._writers -= ended
            self._gap.update(name for name, _ in ended)

    def _next_changes(self) -> list[Change]:
        changes: list[Change] = []
        # Changes that no subscriber can see don't mean that the queue is empty.
        while not changes and (self._taken or len(self._waiting)):
            self._taken = self._taken or self._waiting.take()
            changes_by_place = changes_at(self._taken)
            if changes_by_place is None:
                # Trimmed meanwhile.
                self._gap.update(place.class_name for place in self._taken)
                self._gap |= self._waiting.clear()
                self._taken = []
                break
            changes = [
                change for _, change in sorted(changes_by_place.items()) if change is not None
            ]
            self._taken = []
        return changes

    def _release(self, class_names: Collection[str]) -> None:
        """Forget classes that haven't been named for a while, while they are still in force."""
        now = time.monotonic()
        for name in self._since.keys() - set(class_names):
            first = self._unnamed.setdefault(name, now)
            # Once alone would be too early: it may be a call for new ones.
            if now - first > _LEFT_OUT:
                if now - self._named[name] >= interest.WANTED_FOR:
                    self._gap.add(name)
                del self._since[name], self._named[name], self._unnamed[name]

    def _stop_notifications(self, changes: Collection[Change]) -> None:
        """Stop notifications from writers of these classes, including those of other readers.

        Otherwise writers would notify a reader that ended while it waited, as long as the class is
        captured.
        """
        self._requested_at = None
        if self._notifying:
            named = self._notifying.intersection(change.table.class_name for change in changes)
            if named:
                interest.stop_notifications(named)
                self._notifying -= named


def _names(text: str | None) -> set[str]:
    """Names of classes, which have no comma."""
    return set(text.split(",")) if text else set()

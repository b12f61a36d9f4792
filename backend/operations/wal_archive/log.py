"""Storing WAL: everything that was committed is in the place a pass later.

Each pass stores what was written since the one before, in pieces of at most a segment. A piece is
written once, under a name that no other has; the server lets its WAL go only then.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from time import time
from typing import Final

from backend.instance.wal_archive import LOG, StateFile
from backend.logs.setup import get_logger
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError, UnreadableObject
from backend.operations.wal_archive import catalog
from backend.operations.wal_archive.catalog import SEGMENT, Lineage, Span
from backend.operations.wal_archive.server import Server, Slot

_LEVEL: Final = 1  # of zlib
_NEVER: Final = datetime.fromtimestamp(0, UTC)
_GIVEN_UP: Final = "the server gave up WAL that waited for the place"

log = get_logger("wal_archive")


class Held(BackupError):
    """Nothing is archived, since the instance was restored and isn't resumed."""


class LogArchive:
    """The WAL of one server in a place. Made for one connection; a new one continues where the
    place ends. ``target`` is a digest of the place and its key."""

    def __init__(self, place: Place, server: Server, state_file: StateFile, target: str) -> None:
        self._place = place
        self._server = server
        self._state_file = state_file
        self._target = target
        self._position: int | None = None  # up to which the place has everything
        self._moment = _NEVER  # everything that was committed until then is stored
        self._snapshot = ""

    def archive(self) -> None:
        """Store what was committed until now. Raises ``PlaceError`` and ``psycopg.Error``: the next
        pass tries again. Raises ``Held``."""
        lineage, position = self._continued()
        moment = self._server.time()
        snapshot = self._server.snapshot()
        if snapshot and snapshot == self._snapshot:
            self._state_file.succeeded(LOG, moment.timestamp())
            return
        capture = self._server.capture()
        prefix = catalog.lineage_prefix(self._state_file.now.instance, lineage)
        while position < capture.end:
            end = min(capture.end, (position // SEGMENT + 1) * SEGMENT)
            content = self._server.read(position, end)
            if content is None:
                self._give_up(lineage, "WAL that wasn't archived is missing on the disk")
                self.archive()
                return
            # A pass that is killed in between has not stored what its time would promise.
            moment = capture.time if end == capture.end else self._moment
            piece = Span(position, end, moment)
            self._place.write(f"{prefix}log/{piece}", [zlib.compress(content, _LEVEL)])
            self._position, self._moment = end, moment
            position = end
        self._state_file.change(position=position)
        self._server.advance(lineage, position)
        self._snapshot = capture.snapshot
        self._state_file.succeeded(LOG, capture.time.timestamp())

    # -- lineages -----------------------------------------------------------------------------

    def _continued(self) -> tuple[str, int]:
        """Return the lineage and the position at which it continues; a new one if it can't."""
        state = self._state_file.now
        slot = self._slot()
        if slot is None:
            return self._begin()
        if slot.start is None:
            return self._give_up(slot.lineage, _GIVEN_UP)
        if state.target != self._target:
            return self._give_up(slot.lineage, "BACKUP_TO or BACKUP_KEY was changed")
        if self._position is None:
            reason = self._resume(slot, slot.start)
            if reason:
                return self._give_up(slot.lineage, reason)
        assert self._position is not None
        return slot.lineage, self._position

    def _slot(self) -> Slot | None:
        """Return the slot of the state's lineage, and drop others."""
        own = None
        for slot in self._server.slots():
            if slot.lineage == self._state_file.now.lineage:
                own = slot
            else:
                self._server.drop_slot(slot.lineage)
        return own

    def _resume(self, slot: Slot, start: int) -> str:
        """Find the position in the place. Return why the lineage can't be continued; empty if it
        can."""
        prefix = catalog.lineage_prefix(self._state_file.now.instance, slot.lineage)
        names = [entry.name for entry in self._place.entries(prefix)]
        stored = next(iter(catalog.read(names).values()), [Lineage(prefix)])[0]
        if not stored.is_begun:
            return "the place has lost its beginning"
        position = stored.end or start
        if position < start or stored.end < self._state_file.now.position:
            return "the place has lost its end"
        if position > self._server.position() or not self._is_same(stored):
            return (
                "the last WAL in the place is damaged, or of another instance that is a copy of"
                " this one"
            )
        self._position = position
        self._moment = stored.pieces[-1].time if stored.pieces else _NEVER
        return ""

    def _is_same(self, stored: Lineage) -> bool:
        """Whether the last piece is what this server has written."""
        if not stored.pieces:
            return True
        last = stored.pieces[-1]
        content = self._server.read(last.start, last.end)
        if content is None:
            return True
        try:
            return content == _stored(self._place, stored.piece_name(last))
        except UnreadableObject:
            return False

    def _give_up(self, lineage: str, reason: str) -> tuple[str, int]:
        """End a lineage that can't be continued, and begin another one."""
        log.error("WAL archiving begins again with a copy of the database", reason=reason)
        trouble = self._state_file.now.log.trouble
        self._state_file.change(
            gap=time(), gap_reason=f"{reason} ({trouble})" if trouble else reason, lineage=""
        )
        self._server.drop_slot(lineage)
        return self._begin()

    def _begin(self) -> tuple[str, int]:
        """Begin a lineage. Until the place takes its first object, the server keeps no WAL."""
        if self._server.is_held():
            raise Held("the instance was restored and isn't resumed (script/manage resume)")
        instance = self._state_file.now.instance or catalog.new_instance()
        lineage = catalog.new_lineage()
        self._place.write(f"{catalog.lineage_prefix(instance, lineage)}begun", [b""])
        # First: a slot that the state doesn't name is dropped.
        self._state_file.change(
            instance=instance,
            lineage=lineage,
            target=self._target,
            position=0,
            is_held=False,
        )
        self._server.make_slot(lineage)
        slot = self._slot()
        assert slot is not None
        assert slot.start is not None
        self._position, self._moment, self._snapshot = slot.start, _NEVER, ""
        log.info("WAL archiving begins", instance=instance, lineage=lineage)
        return lineage, slot.start


def read_piece(place: Place, name: str, span: Span) -> bytes:
    """Return the WAL of a stored piece. Raises ``BackupError`` if it is damaged."""
    content = _stored(place, name)
    if content is None or len(content) != span.end - span.start:
        raise BackupError(f"{name} in {place.title} is damaged.")
    return content


def _stored(place: Place, name: str) -> bytes | None:
    """Return the WAL of a stored piece, at most a segment; None if what was compressed is damaged.
    Raises ``PlaceError``."""
    content = place.read_bytes(name, 2 * SEGMENT)
    engine = zlib.decompressobj()
    try:
        result = engine.decompress(content, SEGMENT + 1)
    except zlib.error:
        return None
    return result if engine.eof and len(result) <= SEGMENT else None

"""WAL is stored without gaps when its place or its process fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from backend.instance import wal_archive as state
from backend.instance.folder import DataFolder, temporary_folder
from backend.instance.wal_archive import StateFile
from backend.operations.backup.places.folder import Folder
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError, PlaceError
from backend.operations.doctor import wal_archive as doctor
from backend.operations.embedded.engines import Engines
from backend.operations.embedded.postgres import UNSAFE_BUT_FAST
from backend.operations.wal_archive import catalog, process
from backend.operations.wal_archive.catalog import SEGMENT, Lineage
from backend.operations.wal_archive.log import Held, LogArchive, read_piece
from backend.operations.wal_archive.server import connect

KEY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
SETTINGS = UNSAFE_BUT_FAST | {"max_wal_size": "64MB", "max_slot_wal_keep_size": "64MB"}
SMALL = 20  # segments


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the process's own runs after it."""


class Dying:
    """A storage in whose process the n-th step is the last: killed before or after it."""

    def __init__(self, storage: Folder, steps: int, *, after: bool) -> None:
        self._storage = storage
        self._left = steps
        self._after = after
        self.title = storage.title

    def _step(self, *, is_done: bool) -> None:
        if is_done == self._after:
            self._left -= 1
            if self._left < 0:
                raise Killed

    def entries(self, prefix: str) -> Any:
        return self._storage.entries(prefix)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        self._step(is_done=False)
        with self._storage.writing(name) as sink:
            yield sink
        self._step(is_done=True)

    def pieces(self, name: str) -> Any:
        return self._storage.pieces(name)

    def remove(self, name: str) -> None:
        self._storage.remove(name)

    def remove_unfinished(self, prefix: str, is_own: Callable[[str], bool]) -> int:
        return self._storage.remove_unfinished(prefix, is_own)


@pytest.fixture(scope="module")
def server() -> Iterator[DataFolder]:
    with temporary_folder() as folder:
        account = folder.prepare()
        with Engines(folder, account, redis=False, settings=SETTINGS):
            with psycopg.connect(folder.database_url, autocommit=True) as own:
                own.execute("CREATE TABLE note (text text)")
            yield folder


class Instance:
    """The server with an archive in an empty place."""

    def __init__(self, folder: DataFolder, path: Path) -> None:
        self.folder = folder
        self.path = path
        self.path.mkdir()
        self.state_file = StateFile(folder)
        self.written = 0
        self.writes: list[tuple[datetime, int]] = []  # when each was committed, and its end

    def archive(self, storage: Any = None, key: str = "", target: str = "here", passes: int = 1):
        """Some passes of a process that starts, of a storage or the folder."""
        self.state_file = StateFile(self.folder)
        self.written = self.last_write()
        with connect(self.folder) as server:
            archive = LogArchive(
                Place(storage or Folder(self.path), key), server, self.state_file, target
            )
            for _ in range(passes):
                archive.archive()

    def run(self, statement: str) -> Any:
        with psycopg.connect(self.folder.database_url, autocommit=True) as own:
            cursor = own.execute(statement)
            return cursor.fetchone() if cursor.description else None

    def write(self, text: str = "x" * 1000, rows: int = 100) -> None:
        self.run(f"INSERT INTO note SELECT '{text}' FROM generate_series(1, {rows})")
        self.writes.append(
            self.run("SELECT clock_timestamp(), pg_current_wal_insert_lsn() - '0/0'")
        )

    def lineages(self, key: str = "") -> list[Lineage]:
        names = [entry.name for entry in Place(Folder(self.path), key).entries()]
        return catalog.read(names).get(self.state_file.now.instance, [])

    def is_complete(self) -> bool:
        """Whether the newest lineage has what had been written before the last pass, without a
        gap, and each piece what had been committed at its time."""
        lineage = self.lineages()[-1]
        for piece in lineage.pieces:
            assert all(piece.end >= end for time, end in self.writes if time <= piece.time)
        place = Place(Folder(self.path))
        position = lineage.pieces[0].start
        with connect(self.folder) as server:
            for piece in lineage.pieces:
                assert piece.start == position
                content = server.read(piece.start, piece.end)
                stored = read_piece(place, lineage.piece_name(piece), piece)
                assert content is None or content == stored
                position = piece.end
            return position >= self.written

    def last_write(self) -> int:
        return int(self.run("SELECT pg_current_wal_insert_lsn() - '0/0'")[0])

    def segments(self) -> int:
        return len([*(self.folder.postgres / "pg_wal").glob("0*")])


@pytest.fixture
def instance(server: DataFolder, tmp_path: Path) -> Iterator[Instance]:
    made = Instance(server, tmp_path / "place")
    yield made
    with connect(server) as connection:
        for slot in connection.slots():
            connection.drop_slot(slot.lineage)
    state.path_of(server).unlink(missing_ok=True)


def test_what_is_committed_is_stored_a_pass_later(instance):
    instance.archive()
    for rows in (1, 100, 40_000):  # the last of several segments
        instance.write(rows=rows)
        before = instance.last_write()
        instance.archive()
        assert instance.lineages()[0].end >= before
        assert instance.is_complete()
    assert len(instance.lineages()) == 1
    assert instance.lineages()[0].end > 2 * SEGMENT


def test_nothing_is_stored_while_nothing_is_committed(instance):
    instance.write()
    instance.archive(passes=1)
    names = len(instance.lineages()[0].pieces)
    instance.archive(passes=5)
    # The first pass of a process stores what itself commits.
    assert len(instance.lineages()[0].pieces) <= names + 1
    assert instance.state_file.now.log.done is not None


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("steps", range(5))
def test_a_process_that_is_killed_leaves_no_gap(instance, steps, after):
    """At its first object, between two pieces of a pass, and before the server knows of one."""
    storage = Dying(Folder(instance.path), steps, after=after)

    def run() -> None:
        for _ in range(5):
            instance.write(rows=20_000)
            instance.archive(storage)

    with pytest.raises(Killed):
        run()
    instance.write("last")
    instance.archive()
    assert instance.is_complete()
    assert all(lineage.is_begun for lineage in instance.lineages())
    # Only one whose beginning the state doesn't know of yet is left behind.
    assert len([each for each in instance.lineages() if each.pieces]) == 1


def test_a_place_that_is_away_loses_nothing(instance):
    instance.archive()
    away = instance.path.with_name("away")
    instance.path.rename(away)
    for _ in range(3):
        instance.write()
        with pytest.raises(PlaceError):
            instance.archive()
    away.rename(instance.path)
    instance.archive()
    assert instance.is_complete()
    assert len(instance.lineages()) == 1


class Unreachable(Folder):
    """A place that lists its objects, and doesn't return them in time."""

    def pieces(self, name: str) -> Iterator[bytes]:
        raise PlaceError("The place doesn't respond.")
        yield b""


def test_an_end_that_cannot_be_read_at_the_moment_is_no_damage(instance):
    instance.archive()
    instance.write()
    instance.archive()
    instance.write()
    with pytest.raises(PlaceError, match="doesn't respond"):
        instance.archive(Unreachable(instance.path))
    instance.archive()
    assert len(instance.lineages()) == 1
    assert instance.state_file.now.gap is None
    assert instance.is_complete()


@pytest.mark.slow
def test_wal_that_waits_too_long_is_given_up_and_archiving_begins_again(instance):
    instance.archive()
    away = instance.path.with_name("away")
    instance.path.rename(away)
    with pytest.raises(PlaceError):
        instance.archive()
    instance.state_file.failed(state.LOG, "the place is away")
    for _ in range(8):
        instance.run("SELECT pg_logical_emit_message(false, '', repeat('x', 16 * 1024 * 1024))")
        instance.run("CHECKPOINT")
    with connect(instance.folder) as connection:
        assert [slot.start for slot in connection.slots()] == [None]
    with pytest.raises(PlaceError):
        instance.archive()
    # Until the place is back, nothing is kept for it.
    with connect(instance.folder) as connection:
        assert connection.slots() == []
    assert "gave up WAL" in instance.state_file.now.gap_reason
    assert "the place is away" in instance.state_file.now.gap_reason
    instance.run("CHECKPOINT")
    assert instance.segments() < SMALL
    away.rename(instance.path)
    instance.write()
    instance.archive()
    assert len(instance.lineages()) == 2
    assert instance.is_complete()


def lose_end(instance: Instance) -> None:
    for path in instance.path.glob("wal/*/*/log/*"):
        path.unlink()


def lose_beginning(instance: Instance) -> None:
    for path in instance.path.glob("wal/*/*/begun"):
        path.unlink()


def write_as_copy(instance: Instance) -> None:
    """What a second instance stores that continues a copy of this one's data folder."""
    lineage = instance.lineages()[0]
    last = lineage.pieces[-1]
    place = Place(Folder(instance.path))
    beyond = last.__class__(last.end, last.end + SEGMENT // 2, last.time)
    place.write(lineage.piece_name(beyond), [b"theirs"])


def change_last(instance: Instance) -> None:
    lineage = instance.lineages()[0]
    import zlib

    piece = lineage.pieces[-1]
    other = zlib.compress(b"\1" * (piece.end - piece.start))
    Place(Folder(instance.path)).write(lineage.piece_name(piece), [other])


def damage_last(instance: Instance) -> None:
    lineage = instance.lineages()[0]
    place = Place(Folder(instance.path))
    place.write(lineage.piece_name(lineage.pieces[-1]), [b"damaged"])


@pytest.mark.parametrize(
    "event", [lose_end, lose_beginning, write_as_copy, change_last, damage_last]
)
def test_a_lineage_that_is_not_the_server_s_is_never_written_to(
    instance: Instance, event: Callable[[Instance], None]
):
    instance.archive()
    instance.write(rows=5)
    instance.archive()
    event(instance)
    names = {path: path.read_bytes() for path in instance.path.rglob("*") if path.is_file()}
    instance.write(rows=5)
    instance.archive()
    assert {path: path.read_bytes() for path in names} == names
    assert len(set(slots(instance))) == 1
    begun = [lineage for lineage in instance.lineages() if lineage.is_begun]
    assert begun[-1].pieces
    assert instance.state_file.now.gap is not None
    assert instance.is_complete()


def slots(instance: Instance) -> list[str]:
    with connect(instance.folder) as connection:
        return [slot.lineage for slot in connection.slots()]


def test_another_place_or_key_gets_a_lineage_of_its_own(instance):
    instance.archive()
    instance.archive(key=KEY, target="with a key")
    assert len(instance.lineages(KEY)) == 1
    assert len(instance.lineages()) == 1
    assert instance.lineages(KEY)[0].prefix != instance.lineages()[0].prefix


def test_a_cluster_without_its_slot_begins_again(instance):
    """As after an upgrade of PostgreSQL, which takes no slots along."""
    instance.archive()
    with connect(instance.folder) as connection:
        connection.drop_slot(instance.state_file.now.lineage)
    instance.archive()
    assert len(instance.lineages()) == 2


def test_an_archive_that_is_switched_off_retains_no_wal(instance, settings):
    instance.archive()
    instance.state_file.change(is_on=True)
    settings.DATA_FOLDER = instance.folder
    process.drop_slots()
    assert slots(instance) == []
    assert not state.read(instance.folder).is_on
    instance.archive()
    assert len(instance.lineages()) == 2


class Recorded(BaseException):
    """The failure was recorded; what calls the loop ends it."""


class Recording(StateFile):
    def failed(self, part: str, trouble: str) -> bool:
        super().failed(part, trouble)
        raise Recorded


@pytest.mark.django_db  # a loop closes connections of the tests before
@pytest.mark.parametrize(
    ("loop", "part"), [(process._log, "log"), (process._bases, "bases"), (process._files, "files")]
)
def test_a_place_that_cannot_be_made_is_recorded(instance, settings, loop, part):
    settings.DATA_FOLDER = instance.folder
    place = {"BACKUP_TO": "s3://bucket", "BACKUP_S3_ENDPOINT": "no address"}
    settings.SERVICE = {**settings.SERVICE, **place}
    state_file = Recording(instance.folder)
    has_begun = threading.Event()
    has_begun.set()
    with pytest.raises(Recorded):
        loop(state_file, has_begun)
    assert "s3://bucket can't be reached" in getattr(state_file.now, part).trouble


def test_doctor_says_how_much_waits(instance, settings):
    instance.archive()
    settings.DATA_FOLDER = instance.folder
    assert doctor._waiting() == "0 MB wait"


def test_slots_of_other_lineages_are_dropped(instance):
    instance.archive()
    with connect(instance.folder) as connection:
        connection.make_slot("20260101t000000_abcdef")
    instance.archive()
    assert slots(instance) == [instance.state_file.now.lineage]


def test_a_held_instance_begins_no_lineage(instance):
    instance.run("CREATE TABLE objects_hold AS SELECT 1 AS id, now() AS since")
    try:
        with pytest.raises(Held):
            instance.archive()
        assert [*instance.path.iterdir()] == []
        assert slots(instance) == []
    finally:
        instance.run("DROP TABLE objects_hold")
    instance.archive()
    assert len(instance.lineages()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"no zlib", b"x\x9c\x03\x00\x00\x00\x00\x01"], ids=["none", "noise", "short"]
)
def test_a_damaged_piece_is_named(instance, content):
    instance.archive()
    lineage = instance.lineages()[0]
    place, piece = Place(Folder(instance.path)), lineage.pieces[0]
    place.write(lineage.piece_name(piece), [content])
    with pytest.raises(BackupError, match=r"log/.* is damaged"):
        read_piece(place, lineage.piece_name(piece), piece)


def test_a_lineage_of_which_nothing_was_stored_yet_is_continued(instance):
    instance.archive()
    storage = Dying(Folder(instance.path), 1, after=False)
    with pytest.raises(Killed):
        instance.archive(storage, target="another place")
    instance.archive(target="another place")
    assert len(instance.lineages()) == 2
    assert instance.is_complete()

"""Copies of the cluster in the archive, and what is removed with them."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from pyrage import x25519

from backend.instance import wal_archive as state
from backend.instance.folder import DataFolder, temporary_folder
from backend.instance.wal_archive import StateFile
from backend.operations.backup.places.folder import Folder
from backend.operations.backup.places.place import Place
from backend.operations.backup.problems import BackupError, PlaceError, UnreadableObject
from backend.operations.embedded.engines import Engines
from backend.operations.embedded.postgres import UNSAFE_BUT_FAST
from backend.operations.wal_archive import catalog, recovery
from backend.operations.wal_archive.bases import BaseCopies, read_about
from backend.operations.wal_archive.catalog import Lineage
from backend.operations.wal_archive.log import LogArchive
from backend.operations.wal_archive.server import connect
from backend.operations.wal_archive.uploads import file_name

KEY, OTHER_KEY = str(x25519.Identity.generate()), str(x25519.Identity.generate())
_BOUND = "max_slot_wal_keep_size"


@pytest.fixture(scope="module")
def server() -> Iterator[DataFolder]:
    with temporary_folder() as folder:
        account = folder.prepare()
        with Engines(folder, account, redis=False, settings=UNSAFE_BUT_FAST):
            yield folder


class Archive:
    """An archive of the server in a place, for a number of days. ``absent`` are digests of files
    that the instance doesn't have."""

    def __init__(self, folder: DataFolder, path: Path) -> None:
        self.folder = folder
        self.place = Place(Folder(path))
        self.state_file = StateFile(folder)
        self.absent: list[str] = []

    def log(self, target: str = "here") -> None:
        with connect(self.folder) as server:
            LogArchive(self.place, server, self.state_file, target).archive()

    def copy(self, days: int = 7) -> bool:
        with connect(self.folder) as server:
            return BaseCopies(
                self.place,
                server,
                self.folder,
                self.state_file,
                keys=lambda: {"APP_ID": "app"},
                absent=lambda: self.absent,
                days=days,
            ).copy_if_due()

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self.place.entries()]

    @property
    def lineages(self) -> list[Lineage]:
        return catalog.read(self.names)[self.state_file.now.instance]

    def new_lineage(self) -> None:
        """As after another BACKUP_KEY."""
        self.log(target=f"{self.state_file.now.target}+")


@pytest.fixture
def archive(server: DataFolder, tmp_path: Path) -> Iterator[Archive]:
    yield Archive(server, tmp_path)
    with connect(server) as connection:
        for slot in connection.slots():
            connection.drop_slot(slot.lineage)
    state.path_of(server).unlink(missing_ok=True)


def test_a_server_bounds_the_wal_that_waits(server):
    with psycopg.connect(server.database_url) as own:
        row = own.execute("SELECT setting::int FROM pg_settings WHERE name = %s", (_BOUND,))
        assert 64 <= row.fetchone()[0] <= 4096


def test_each_lineage_gets_a_copy(archive):
    assert not archive.copy()  # no WAL would follow it
    archive.log()
    assert archive.copy()
    assert not archive.copy()
    archive.log()
    (lineage,) = archive.lineages
    assert lineage.is_usable(lineage.bases[0])
    about = read_about(archive.place, lineage.base_name(lineage.bases[0]))
    assert about.keys == {"APP_ID": "app"}
    assert archive.state_file.now.bases.done is not None
    archive.new_lineage()
    assert archive.copy()


def test_a_copy_is_a_whole_cluster_without_wal(archive):
    archive.log()
    archive.copy()
    content = BytesIO()
    (lineage,) = archive.lineages
    archive.place.read(lineage.copy_name(lineage.copies[0]), content)
    content.seek(0)
    with tarfile.open(fileobj=content) as tar:
        names = {name.removeprefix("./") for name in tar.getnames()}
    assert {"PG_VERSION", "backup_label", "global/pg_control"} <= names
    assert not [name for name in names if name.startswith("pg_wal/0")]


def test_a_copy_that_fails_is_not_there(archive, tmp_path):
    archive.log()
    (
        tmp_path / "wal" / archive.state_file.now.instance / archive.state_file.now.lineage / "base"
    ).touch()
    with pytest.raises(PlaceError):
        archive.copy()
    assert archive.lineages[0].copies == []


def test_what_no_moment_needs_is_removed(archive):
    archive.log()
    archive.place.write(f"wal/{archive.state_file.now.instance}/files/gone", [b"x"])
    archive.place.write(f"wal/{archive.state_file.now.instance}/files/back", [b"x"])
    archive.place.write("wal/other/lineage/begun", [b""])
    archive.copy()
    archive.log()
    former = archive.lineages[0].prefix
    archive.new_lineage()
    archive.absent = ["back", "gone"]
    archive.copy(days=0)
    archive.log("here+")
    # The lineage before is needed until the new one's copy can be used.
    assert any(name.startswith(former) for name in archive.names)
    archive.new_lineage()
    archive.absent = ["gone"]
    archive.copy(days=0)
    assert not any(name.startswith(former) for name in archive.names)
    assert f"wal/{archive.state_file.now.instance}/files/gone" not in archive.names
    assert f"wal/{archive.state_file.now.instance}/files/back" in archive.names
    assert "wal/other/lineage/begun" in archive.names


class Refusing(Folder):
    """A place that removes nothing at first."""

    is_refusing = True

    def remove(self, name: str) -> None:
        if self.is_refusing:
            raise PlaceError("The place removes nothing.")
        super().remove(name)


def test_a_removal_that_failed_is_tried_again(archive, tmp_path):
    archive.log()
    archive.copy()
    archive.new_lineage()
    archive.copy()
    archive.log("here+")
    former = archive.lineages[0].prefix
    archive.new_lineage()
    refusing = Refusing(tmp_path)
    archive.place = Place(refusing)
    with pytest.raises(PlaceError, match="removes nothing"):
        archive.copy(days=0)
    assert any(name.startswith(former) for name in archive.names)
    refusing.is_refusing = False
    assert not archive.copy(days=0)
    assert not any(name.startswith(former) for name in archive.names)


def test_a_failure_ends_with_the_next_attempt_that_succeeds(archive):
    """As of a connection that was lost, also if no copy is due."""
    archive.log()
    archive.copy()
    done = archive.state_file.now.bases.done
    archive.state_file.failed(state.BASES, "the connection was lost")
    assert not archive.copy()
    assert archive.state_file.now.bases == state.Part(done)


def test_files_that_the_archive_lacks_are_counted_and_a_failing_place_is_an_error(tmp_path):
    place = Place(Folder(tmp_path), KEY)
    files = [(name, "text/plain", "") for name in ("missing", "damaged")]
    place.write(file_name("one", "damaged"), [b"content"])
    path = tmp_path / f"{file_name('one', 'damaged')}.age"
    path.write_bytes(path.read_bytes()[:-1])
    assert recovery._restore_files(place, "one", files) == 2
    path.unlink()
    path.mkdir()
    with pytest.raises(PlaceError, match="can't be read: Is a directory") as error:
        recovery._restore_file(place, file_name("one", "damaged"), *files[1])
    assert not isinstance(error.value, UnreadableObject)


def cut(archive: Archive, pattern: str) -> None:
    """Cut off the end of the newest object of a kind."""
    place = Path(archive.place.title)
    path = sorted(place.glob(f"wal/*/*/{pattern}"))[-1]
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("event", "changes", "reason"),
    [
        (None, {"BACKUP_KEY": OTHER_KEY}, "another key than that of BACKUP_KEY"),
        (None, {"BACKUP_KEY": ""}, "no WAL that this key can read"),
        (None, {"BACKUP_TO": ""}, "set BACKUP_TO"),
        ("log/*", {}, r"log/.* damaged"),
        ("base/*.tar.gz*", {}, r"tar\.gz in .* damaged"),
        ("base/*Z*", {}, r"base/.* damaged"),
    ],
    ids=("other key", "no key", "no place", "log", "copy", "description of the copy"),
)
def test_what_cannot_be_restored_leaves_the_instance_as_it_was(
    archive, settings, folder, tmp_path, event, changes, reason
):
    archive.place = Place(Folder(tmp_path), KEY)
    archive.log()
    archive.copy()
    archive.log()
    if event is not None:
        cut(archive, event)
    folder.prepare()
    settings.EMBEDDED_POSTGRES = True
    settings.DATA_FOLDER = folder
    place = {"BACKUP_TO": str(tmp_path), "BACKUP_KEY": KEY}
    settings.SERVICE = {**settings.SERVICE, **place, **changes}
    before = sorted(folder.path.rglob("*"))
    with pytest.raises(BackupError, match=reason):
        recovery.restore("", None)
    assert sorted(folder.path.rglob("*")) == before


def test_an_instance_with_a_database_is_not_restored_into(server, settings):
    settings.EMBEDDED_POSTGRES = True
    settings.DATA_FOLDER = server
    with pytest.raises(BackupError, match="The instance isn't empty"):
        recovery.restore("", None)
    settings.EMBEDDED_POSTGRES = False
    with pytest.raises(BackupError, match="leave out DATABASE_URL"):
        recovery.restore("", None)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["wal"], "run script/server --restore wal."),
        (["wal/one"], "run script/server --restore wal/one."),
        (["app.tar", "--until", "2026-11-28T10:00:00Z"], "--until is for archived WAL"),
        (["wal", "--before-start", "--until", "10:00"], "is no time"),
    ],
)
def test_the_command_says_how_archived_wal_is_restored(arguments, reason):
    with pytest.raises(CommandError, match=reason):
        call_command("restore", *arguments)


def changed(content: bytes, percent: int) -> bytes:
    """Change a part of it. One bit may mean the same as before: within zeros, a distance does."""
    place = min(len(content) * percent // 100, len(content) - 64)
    part = bytes(byte ^ 0xFF for byte in content[place : place + 64])
    return content[:place] + part + content[place + 64 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "replaced": lambda content: b"no tar file",
    # Names and sizes in the tar file, among others.
    **{f"changed at {part}": partial(changed, percent=part) for part in (1, 20, 50, 99)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_named(archive, tmp_path, damage):
    archive.log()
    archive.copy()
    (lineage,) = archive.lineages
    path = tmp_path / lineage.copy_name(lineage.copies[0])
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    (tmp_path / "into").mkdir()
    with pytest.raises(BackupError, match=r"tar\.gz in .* is damaged"):
        recovery._extract(archive.place, lineage.copy_name(lineage.copies[0]), tmp_path / "into")

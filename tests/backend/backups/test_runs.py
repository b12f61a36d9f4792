"""Runs of backups in one process: what they store, verify, refuse and leave alone."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management.base import CommandError
from django.db import connection
from pyrage import x25519

from backend.backups.models import BackupRun
from backend.kernel.connections import advisory_locks
from backend.kernel.principal import MASTER
from backend.operations.backup import creation, names, postgres, runs, sources, trial
from backend.operations.backup.archive import MANIFEST, check
from backend.operations.backup.places.folder import Folder
from backend.operations.backup.places.place import Place, place_of
from backend.operations.backup.places.storage import Entry
from backend.operations.backup.problems import BackupError, PlaceError
from objects import service
from tests.backend.commands.conftest import run
from tests.held_instance import begin_hold

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.process,
    pytest.mark.xdist_group("backup"),
]

KEY = str(x25519.Identity.generate())


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Path:
    """The folder of the place, in an instance that has data."""
    place = tmp_path / "place"
    place.mkdir()
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_FOLDER = type(django_settings.DATA_FOLDER)(tmp_path / "data")
    settings.SERVICE = {**settings.SERVICE, "BACKUP_TO": str(place), "BACKUP_KEY": KEY}
    service.create(MASTER, "Note", {"text": "hello"})
    return place


def place() -> Place:
    return place_of(django_settings.SERVICE)


def archives(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "archives").glob("*"))


def put(folder: Path, *names: str) -> None:
    (folder / "archives").mkdir(exist_ok=True)
    for name in names:
        (folder / "archives" / name).write_bytes(b"x")


def databases() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT datname FROM pg_database WHERE datname ~ %s", [f"^{trial.DATABASE_PREFIX}"]
        )
        return [name for (name,) in cursor.fetchall()]


def leftovers() -> list[Path]:
    return [*Path(django_settings.DATA_DIR).glob("*")]


def test_a_backup_is_stored_encrypted_verified_and_recorded(folder: Path) -> None:
    made = runs.back_up(place)
    assert made is not None
    assert (made.state, made.verification, made.note) == ("ok", "restored", "")
    [name] = archives(folder)
    assert made.name == f"archives/{name.removesuffix('.age')}"
    assert name.startswith("test-app-")
    assert (folder / "archives" / name).read_bytes().startswith(b"age-encryption.org/v1\n")
    path = str(folder / "archives" / name)
    for text in ("latest", name, name.removesuffix(".age"), made.name, path):
        with sources.archive_file(text) as file:
            manifest = check(file)
    assert sum(manifest.tables.values()) == made.rows
    assert databases() == []
    assert leftovers() == []


@pytest.mark.parametrize("name", ["x.tar", "../x.tar", "archives/../../x.tar"])
def test_a_name_that_the_place_does_not_have_is_refused(folder: Path, name: str) -> None:
    (folder.parent / "x.tar.age").write_bytes(b"x")
    with pytest.raises(BackupError, match=r"has no archives/.*; `script/manage backup --list`"):
        sources.archive_file(name).__enter__()


def test_the_latest_of_several_applications_has_to_be_named(folder: Path) -> None:
    put(folder, "one-20260101T030000Z.tar.age", "two-20260102T030000Z.tar.age")
    with pytest.raises(BackupError, match="backups of several applications: name one of them"):
        sources.archive_file("latest").__enter__()
    put(folder, "test-app-20250101T030000Z.tar.age")
    assert names.latest(place()) == "archives/test-app-20250101T030000Z.tar"


@pytest.mark.parametrize("app_id", ["my app", "a/../b", "-x", "日本", "a" * 300])
def test_any_application_id_makes_a_name_that_is_its_own(settings: Any, app_id: str) -> None:
    settings.SERVICE = {**settings.SERVICE, "APP_ID": app_id}
    at = datetime(2026, 1, 31, 3, tzinfo=UTC)
    name = names.name_of(at)
    assert names.own_time(name) == at
    assert names.is_own(name)
    assert place_of({"BACKUP_TO": "/"})._stored(name) == name
    settings.SERVICE = {**settings.SERVICE, "APP_ID": "another"}
    assert names.own_time(name) is None


def test_no_two_applications_have_the_same_names(settings: Any) -> None:
    """Ids that differ only in what names can't have, or behind their longest part."""
    ids = ["my app", "my-app", "my.app", "my/app", "-my-app", "日本", "本日", "app", "", "-"]
    ids += ["a" * length for length in (99, 100, 101, 300)]
    written = set()
    for app_id in ids:
        settings.SERVICE = {**settings.SERVICE, "APP_ID": app_id}
        written.add(names.name_of(datetime(2026, 1, 31, 3, tzinfo=UTC)))
    assert len(written) == len(ids)


@pytest.mark.parametrize("app", ["test-app-two", "test-app-2025", "test-app-20"])
def test_an_upload_of_another_application_is_left_alone(folder: Path, app: str) -> None:
    (folder / "archives").mkdir()
    other = folder / "archives" / f".{app}-20260101T030000Z.tar.age.0123.part"
    own = folder / "archives" / ".test-app-20260101T030000Z.tar.age.0123.part"
    other.write_bytes(b"x")
    own.write_bytes(b"x")
    assert runs.back_up(place) is not None
    assert (other.exists(), own.exists()) == (True, False)


def test_archives_are_read_at_the_same_time(folder: Path) -> None:
    """Each process has its copy, and removes those of processes that were killed."""
    place().write(names.name_of(datetime.now(UTC)), [b"bytes"])
    killed = Path(django_settings.DATA_DIR) / "restore-work-killed"
    killed.mkdir(parents=True)
    (killed / "archive.tar").write_bytes(b"x")
    with sources.archive_file("latest") as first:
        assert not killed.exists()
        with sources.archive_file("latest") as second:
            assert first != second
            assert second.read_bytes() == b"bytes"
        assert first.read_bytes() == b"bytes"
    assert leftovers() == []


def store_file(size: int) -> None:
    """Store the row of a file that storage doesn't have."""
    from objects.files.models import StoredFile

    StoredFile.objects.create(
        name="lost.txt",
        size=size,
        sha256="0" * 64,
        content_type="text/plain",
        created_at=datetime.now(UTC),
    )


def test_files_that_storage_has_lost_are_a_note(folder: Path) -> None:
    store_file(size=4)
    made = runs.back_up(place)
    assert made is not None
    assert (made.state, made.note) == ("ok", "Missing in storage: 1 file.")


def test_a_place_without_backups_has_no_latest(folder: Path) -> None:
    with pytest.raises(BackupError, match=r"has no backups\. With BACKUP_KEY only"):
        sources.archive_file("latest").__enter__()


def test_a_new_key_is_one_that_backups_take() -> None:
    key = run("backup", "--new-key").out.strip()
    assert str(x25519.Identity.from_str(key)) == key


def test_the_list_has_what_the_place_has_and_how_runs_ended(folder: Path) -> None:
    name = run("backup", "--now").out.strip()
    put(folder, "test-app-20250101T030000Z.tar.age")
    BackupRun.objects.create(started_at=datetime.now(UTC), state="failed", note="it is full.")
    # An earlier run of the same second, which its archive's name is of.
    again = BackupRun.objects.get(state="ok")
    again.pk, again.state = again.pk - 1, BackupRun.State.FAILED
    again.save(force_insert=True)
    shown = run("backup", "--list")
    first, second = shown.out.splitlines()
    assert first.split("  ")[::2] == ["test-app-20250101T030000Z.tar", "no record of its run"]
    assert second.split("  ")[::2] == [name, "restored, rows counted"]
    assert "failed: it is full." in shown.err


def test_old_backups_go_and_what_is_not_the_instance_s_stays(folder: Path, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "BACKUP_KEEP": (("d", 2),)}
    own = [f"test-app-202601{day:02}T030000Z.tar.age" for day in (1, 2, 3)]
    foreign = [
        "other-app-20260101T030000Z.tar.age",
        "test-app-20260101T030000Z.tar",
        "test-app-2026.tar.age",
        "holiday.jpg.age",
    ]
    put(folder, *own, *foreign)
    (folder / "keep.age").write_bytes(b"x")
    made = runs.back_up(place)
    assert made is not None
    new = f"{made.name.removeprefix('archives/')}.age"
    # The old ones may be those of a lost instance, so the new one doesn't count among them.
    assert archives(folder) == sorted([*foreign, *own[1:], new])
    assert (folder / "keep.age").exists()


class Lying(Folder):
    """A folder that returns other bytes than it has stored."""

    def __init__(self, path: Path, lie: Callable[[bytes], bytes]) -> None:
        super().__init__(path)
        self._lie = lie

    def pieces(self, name: str) -> Iterator[bytes]:
        yield self._lie(b"".join(super().pieces(name)))


@pytest.mark.parametrize("key", [KEY, ""], ids=["encrypted", "plain"])
@pytest.mark.parametrize(
    "lie",
    [lambda content: content[:-600], lambda content: content[:9000] + b"!?" + content[9002:]],
    ids=["cut off", "changed"],
)
def test_a_place_that_returns_other_bytes_makes_the_run_fail(
    folder: Path, settings: Any, key: str, lie: Callable[[bytes], bytes]
) -> None:
    """And nothing is removed then."""
    settings.SERVICE = {**settings.SERVICE, "BACKUP_KEEP": (("d", 1),)}
    suffix = ".age" if key else ""
    old = [f"test-app-202601{day:02}T030000Z.tar{suffix}" for day in (1, 2)]
    put(folder, *old)
    with pytest.raises(BackupError, match=r"it is damaged|returned other bytes"):
        runs.back_up(lambda: Place(Lying(folder, lie), key))
    made = BackupRun.objects.get()
    assert (made.state, bool(made.note)) == ("failed", True)
    assert archives(folder)[:2] == old
    # The next one that is good lets it go.
    good = runs.back_up(lambda: Place(Folder(folder), key))
    assert good is not None
    assert archives(folder) == [old[1], f"{good.name.removeprefix('archives/')}{suffix}"]


def test_a_schedule_does_not_begin_again_in_a_place_that_was_emptied(folder: Path) -> None:
    """Such as a folder whose file system isn't mounted."""
    sent_at = datetime.now(UTC)
    assert runs.back_up(place, sent_at) is not None
    for archive in (folder / "archives").iterdir():
        archive.unlink()
    with pytest.raises(BackupError, match="may not be mounted"):
        runs.back_up(place, sent_at + timedelta(minutes=2))
    assert runs.back_up(place) is not None


class Stubborn(Folder):
    """A folder that lets the archives of one year stay."""

    def remove(self, name: str) -> None:
        if "-2025" in name:
            raise PlaceError(f"{name} can't be removed.")
        super().remove(name)


def test_an_archive_that_cannot_be_removed_keeps_no_other_and_is_a_note(
    folder: Path, settings: Any
) -> None:
    settings.SERVICE = {**settings.SERVICE, "BACKUP_KEEP": (("d", 1),)}
    old = [f"test-app-{year}0101T030000Z.tar.age" for year in (2024, 2025, 2026)]
    put(folder, *old)
    made = runs.back_up(lambda: Place(Stubborn(folder), KEY))
    assert made is not None
    assert made.state == "ok"
    assert "test-app-20250101T030000Z.tar.age can't be removed" in made.note
    assert archives(folder)[:2] == [old[1], old[2]]


def test_a_place_that_is_away_makes_the_run_fail_with_the_reason(folder: Path) -> None:
    """Before an archive is made."""
    folder.rmdir()
    with pytest.raises(BackupError, match="there is no such folder"):
        runs.back_up(place)
    failed = BackupRun.objects.get()
    assert "there is no such folder" in failed.note
    assert failed.name == ""
    assert leftovers() == []


def test_a_place_that_cannot_be_opened_makes_the_run_fail_with_the_reason(
    folder: Path, settings: Any
) -> None:
    settings.SERVICE = {
        **settings.SERVICE,
        "BACKUP_TO": "s3://bucket/app",
        "BACKUP_S3_ENDPOINT": "http://[bad",
    }
    with pytest.raises(CommandError) as refused:
        run("backup", "--now")
    failed = BackupRun.objects.get()
    assert failed.state == "failed"
    assert failed.note == str(refused.value)


def test_a_run_of_the_schedule_logs_why_it_fails(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder.rmdir()
    with pytest.raises(SystemExit):
        run("backup", "--scheduled", str(datetime.now(UTC).timestamp()))
    [line] = [line for line in capfd.readouterr().err.splitlines() if "a backup failed" in line]
    assert "there is no such folder" in line


class Disconnecting(Folder):
    """A folder at one of whose steps Django's connection is dropped, as an idle one may be."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self._step = step

    def _reach(self, step: str) -> None:
        if step == self._step:
            self._step = ""
            with postgres.connect() as own:
                own.execute(
                    "SELECT pg_terminate_backend(%s, 5000)",
                    [connection.connection.info.backend_pid],
                )

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        self._reach("listed")
        return super().entries(prefix)

    def pieces(self, name: str) -> Iterator[bytes]:
        self._reach("read")
        return super().pieces(name)


@pytest.mark.parametrize("step", ["listed", "read"])
def test_a_backup_survives_that_an_idle_connection_is_dropped(folder: Path, step: str) -> None:
    made = runs.back_up(lambda: Place(Disconnecting(folder, step), KEY))
    assert made is not None
    made.refresh_from_db()
    assert (made.state, made.verification) == ("ok", "restored")


@pytest.mark.parametrize("verify", ["restore", "checksums"])
def test_the_database_of_a_killed_trial_is_dropped_by_the_next_run(
    folder: Path, settings: Any, verify: str
) -> None:
    settings.SERVICE = {**settings.SERVICE, "BACKUP_VERIFY": verify}
    with postgres.connect() as own:
        name, _ = trial._name_and_size(own)
        own.execute(f'CREATE DATABASE "{name}"')
    made = runs.back_up(place)
    assert made is not None
    assert made.note == ""
    assert databases() == []


def test_a_disk_without_room_makes_the_run_fail_with_what_is_needed(folder: Path) -> None:
    store_file(size=10**15)
    with pytest.raises(BackupError, match=r"may need 909\.5 TB, and 512\.0 MB have to stay free"):
        runs.back_up(place)


def test_a_held_instance_makes_no_backups(folder: Path) -> None:
    begin_hold()
    with pytest.raises(BackupError, match="was restored and is held"):
        runs.back_up(place)
    assert runs.back_up(place, datetime.now(UTC)) is None
    assert not BackupRun.objects.exists()
    assert archives(folder) == []


def test_one_process_at_a_time_makes_a_backup(folder: Path) -> None:
    with postgres.connect() as other:
        advisory_locks.lock_session(
            lambda sql, parameters: other.execute(sql, parameters).fetchall(),
            advisory_locks.BACKUPS,
        )
        with pytest.raises(BackupError, match="Another process makes a backup"):
            runs.back_up(place)
        assert runs.back_up(place, datetime.now(UTC)) is None
    assert not BackupRun.objects.exists()


def test_a_message_that_is_delivered_again_makes_no_second_backup(folder: Path) -> None:
    sent_at = datetime.now(UTC)
    assert runs.back_up(place, sent_at) is not None
    assert runs.back_up(place, sent_at) is None
    assert runs.back_up(place, sent_at + timedelta(seconds=30)) is None
    assert len(archives(folder)) == 1


def test_a_server_that_gives_no_other_database_is_a_note(folder: Path) -> None:
    """The archive is compared all the same."""
    with psycopg.connect(**postgres._parameters(), autocommit=True) as server:
        # A template can't be dropped, so the name is taken.
        name, _ = trial._name_and_size(server)
        server.execute(f'CREATE DATABASE "{name}" IS_TEMPLATE true')
        try:
            made = runs.back_up(place)
        finally:
            server.execute(f'ALTER DATABASE "{name}" IS_TEMPLATE false')
            server.execute(f'DROP DATABASE "{name}"')
    assert made is not None
    assert (made.state, made.verification) == ("ok", "checksums")
    assert made.note.startswith("It wasn't restored for a trial: no other database can be made")


def test_a_trial_notices_rows_that_are_missing(folder: Path, tmp_path: Path) -> None:
    made = creation.make(tmp_path / "whole.tar")
    less = tmp_path / "less.tar"
    with tarfile.open(made.path, "r:") as source, tarfile.open(less, "w:") as target:
        for item in source:
            file = source.extractfile(item)
            assert file
            content = file.read()
            if item.name == MANIFEST:
                manifest = json.loads(content)
                manifest["tables"]["objects_class"] += 1
                content = json.dumps(manifest).encode()
                item.size = len(content)
            target.addfile(item, io.BytesIO(content))
    with postgres.connect() as own:
        trial.restore_into_trial_database(own, made.path)
        with pytest.raises(BackupError, match=r'"objects_class" has \d+ rows instead of'):
            trial.restore_into_trial_database(own, less)
    assert databases() == []


def test_without_a_trial_backups_are_compared_only(folder: Path, settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "BACKUP_VERIFY": "checksums"}
    made = runs.back_up(place)
    assert made is not None
    assert (made.verification, made.note) == ("checksums", "")

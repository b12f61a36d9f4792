"""``manage.py backup`` and ``restore``: an instance becomes a file, and the file an instance."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import psycopg
import pytest
from django.core.management.base import CommandError
from moto.server import ThreadedMotoServer

from objects.files.names import storage_key
from tests.backend.commands.conftest import run
from tests.backend.commands.instances import FIRST_KEYS, OTHER_KEYS, Instance, new_database
from tests.backend.operations.service import PATIENCE, ROOT, Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("backup")]

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 5000
NOTE = b"a text file \\ with a backslash"
MFA_SECRET = base64.b32encode(b"twenty bytes for MFA").decode()


@dataclass
class Known:
    """What the first instance has been given, and its archives."""

    instance: Instance
    archive: Path
    bare: Path
    token: str
    ann: str
    note: str
    files: dict[str, bytes]


def one_time_password(offset: int = 0) -> str:
    from objects.users.accounts.second_factor import STEP, one_time_password

    step = int(time.time()) // STEP + offset
    return one_time_password(base64.b32decode(MFA_SECRET), step)


@pytest.fixture(scope="module")
def first(tmp_path_factory: Any, prepared: str) -> Iterator[Known]:
    """An instance with something of everything, backed up with its keys and without."""
    folder = tmp_path_factory.mktemp("first")
    with new_database("first", prepared) as url:
        instance = Instance(folder / "data", url)
        instance.has_keys(FIRST_KEYS)
        instance.run("from objects.changes import Reader\nReader().want(['Note', '_User'])")
        with instance.web():
            ids = fill(instance)
        instance.run(
            "from django.contrib.auth.models import User\n"
            "from django_celery_beat.models import IntervalSchedule, PeriodicTask\n"
            "User.objects.create_user('staff', password='staff password', is_staff=True)\n"
            "every = IntervalSchedule.objects.create(every=7, period='days')\n"
            "PeriodicTask.objects.create(name='weekly', task='any.task', interval=every)\n"
        )
        instance.run(
            "from objects.definitions import registry\n"
            "from objects.core.indexes.decisions import Cost, Suggestion\n"
            "from objects.core.indexes.shapes import Shape\n"
            "from objects.learned import builds\n"
            "table, fields = registry.find('Note'), (('author', 1), ('createdAt', 1))\n"
            "name = builds.index_name(table.class_id, fields)\n"
            "row = builds._begin(table, name, Suggestion(fields, Shape(()), Cost()))\n"
            "builds._create(table, name, fields)\n"
            "assert builds.put_to_use('Note', row)\n"
        )
        ids.archive = Path(instance.do("backup", folder / "out").strip())
        ids.bare = Path(instance.do("backup", folder / "bare.tar", "--without-keys").strip())
        yield ids


def fill(instance: Instance) -> Known:
    ask = instance.ask
    ask("POST", "/schemas/Author", {"className": "Author", "fields": {"name": {"type": "String"}}})
    fields = {
        "text": {"type": "String"},
        "stars": {"type": "Number"},
        "author": {"type": "Pointer", "targetClass": "Author"},
        "tags": {"type": "Relation", "targetClass": "Author"},
        "file": {"type": "File"},
    }
    indexes = {"by_stars": {"stars": 1}, "one_text": {"fields": {"text": 1}, "unique": True}}
    ask("POST", "/schemas/Note", {"className": "Note", "fields": fields, "indexes": indexes})
    signed_up = ask("POST", "/users", {"username": "ann", "password": "correct horse"}, key="rest")
    bob = ask("POST", "/users", {"username": "bob", "password": "correct horse"}, key="rest")
    session = {"key": "rest", "X_Svc_Session_Token": bob["sessionToken"]}
    for _ in range(2):  # the step may end between the two
        mfa = {"secret": MFA_SECRET, "token": one_time_password(-1)}
        place = f"/users/{bob['objectId']}"
        enrolled = instance.call("PUT", place, {"authData": {"mfa": mfa}}, **session)
        if enrolled.status < 300:
            break
    assert enrolled.status < 300, enrolled.body
    member = {"__type": "Pointer", "className": "_User", "objectId": signed_up["objectId"]}
    ask(
        "POST",
        "/roles",
        {
            "name": "writers",
            "ACL": {"*": {"read": True}},
            "users": {"__op": "AddRelation", "objects": [member]},
        },
    )
    files = {
        ask("POST", "/files/picture.png", PICTURE)["name"]: PICTURE,
        ask("POST", "/files/note.txt", NOTE, X_Svc_File_Directory="texts/old")["name"]: NOTE,
    }
    author = ask("POST", "/classes/Author", {"name": "Ann"})["objectId"]
    pointer = {"__type": "Pointer", "className": "Author", "objectId": author}
    note = ask(
        "POST",
        "/classes/Note",
        {
            "text": 'hällo \\ "world"',
            "stars": 5,
            "author": pointer,
            "tags": {"__op": "AddRelation", "objects": [pointer]},
            "file": {"__type": "File", "name": next(iter(files))},
            "ACL": {"role:writers": {"read": True}},
        },
    )["objectId"]
    token = signed_up["sessionToken"]
    return Known(instance, Path(), Path(), token, signed_up["objectId"], note, files)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Instance]:
    """An instance with an empty database and keys of its own."""
    with new_database("empty") as url:
        instance = Instance(tmp_path / "data", url)
        instance.has_keys(OTHER_KEYS)
        yield instance


@pytest.fixture
def fresh(tmp_path: Path, prepared: str) -> Iterator[Instance]:
    """An instance as script/server leaves it at its first start, with keys of its own."""
    with new_database("fresh", prepared) as url:
        instance = Instance(tmp_path / "fresh", url)
        instance.has_keys(OTHER_KEYS)
        yield instance


def verify(archive: Path) -> str:
    """What ``manage.py backup --verify`` says of an archive, which needs no instance."""
    try:
        return run("backup", "--verify", str(archive)).out
    except CommandError as error:
        return str(error)


def check_all(first: Known, restored: Instance) -> None:
    """Everything that the first instance had works in the other one, for the same people."""
    ask = restored.ask
    with restored.web():
        note = ask("GET", f"/classes/Note/{first.note}?include=author")
        assert (note["text"], note["author"]["name"]) == ('hällo \\ "world"', "Ann")
        results = ask("GET", "/classes/Author?where=" + related(first.note))["results"]
        assert [each["name"] for each in results] == ["Ann"]
        assert set(ask("GET", "/schemas/Note")["indexes"]) >= {"by_stars", "one_text"}
        twice = restored.call("POST", "/classes/Note", {"text": note["text"]})
        assert twice.json["code"] == 137
        # The session of before, and through it the role; and the password.
        session = {"key": "rest", "X_Svc_Session_Token": first.token}
        assert ask("GET", "/users/me", **session)["objectId"] == first.ann
        assert ask("GET", f"/classes/Note/{first.note}", **session)["stars"] == 5
        assert restored.call("GET", f"/classes/Note/{first.note}", key="rest").status == 404
        login = {"username": "ann", "password": "correct horse"}
        assert ask("POST", "/login", login, key="rest")["objectId"] == first.ann
        for name, content in first.files.items():
            got = restored.call("GET", f"/files/{restored.keys['APP_ID']}/{name}")
            assert (got.status, got.body) == (200, content)
        # Classes go on growing.
        made = ask("POST", "/schemas/Later", {"className": "Later"})
        assert made["className"] == "Later"
        assert log_in_with_second_factor(restored) == 200


def check_commands(restored: Instance) -> None:
    """Indexes, staff and periodic tasks are those of the first instance."""
    assert restored.do("build_indexes", "--check") == ""
    restored.run("from objects.learned import schedule as upkeep\nupkeep.run()")
    listed = restored.do("indexes", "Note")
    assert "(author,createdAt), 0.0 MiB, used " in listed
    assert (
        restored.run(
            "from django.contrib.auth import authenticate\n"
            "from django_celery_beat.models import PeriodicTask\n"
            "print(authenticate(username='staff', password='staff password').is_staff,"
            " PeriodicTask.objects.get(name='weekly').interval.every)"
        )
        == "True 7"
    )


def related(note: str) -> str:
    owner = {"__type": "Pointer", "className": "Note", "objectId": note}
    return quote(json.dumps({"$relatedTo": {"object": owner, "key": "tags"}}))


def log_in_with_second_factor(instance: Instance) -> int:
    login = {"username": "bob", "password": "correct horse"}
    assert instance.call("POST", "/login", login, key="rest").status == 400
    token = {"authData": {"mfa": {"token": one_time_password()}}}
    return instance.call("POST", "/login", login | token, key="rest").status


def epoch(instance: Instance) -> str:
    with psycopg.connect(instance.database) as rows:
        [(value,)] = rows.execute("SELECT value FROM chain_outbox_epoch").fetchall()
    return str(value)


@pytest.mark.slow
def test_an_empty_instance_becomes_the_one_that_was_backed_up(first, empty):
    empty.do("restore", first.archive)
    assert empty.keys == FIRST_KEYS
    assert stat.S_IMODE((empty.data / "keys.env").stat().st_mode) == 0o600
    check_commands(empty)
    # Numbers of events of the one instance must not be resumed at the other.
    assert epoch(first.instance) != epoch(empty)
    check_all(first, empty)


@pytest.mark.slow
def test_changes_are_captured_in_a_restored_instance_and_none_of_before_are_there(first, empty):
    with psycopg.connect(first.instance.database) as rows:
        assert rows.execute("SELECT count(*) > 0 FROM objects_change").fetchone() == (True,)
    empty.do("restore", first.archive)
    with psycopg.connect(empty.database) as rows:
        assert rows.execute("SELECT FROM objects_interest, objects_change").fetchone() is None
    output = empty.run(
        "from backend.kernel.principal import MASTER\n"
        "from objects import service\n"
        "from objects.changes import Reader\n"
        "reader = Reader()\n"
        "reader.want(['Note', 'New', 'ContractEvent'])\n"
        "for name in ('Note', 'New'):\n"
        "    service.create(MASTER, name, {'text': f'of {name}'})\n"
        "print([(c.table.class_name, c.after.object()['text']) for c in reader.read().changes])"
    )
    assert output == "[('Note', 'of Note'), ('New', 'of New')]"


@pytest.mark.slow
def test_an_instance_may_keep_its_own_keys(first, fresh):
    output = fresh.do("restore", first.archive, "--without-keys")
    assert "stored secrets can't be read" not in output
    assert fresh.keys == OTHER_KEYS
    check_all(first, fresh)


@pytest.mark.slow
def test_a_password_file_stays_only_while_its_password_is_valid(first, fresh):
    file = fresh.data / "admin.json"
    login = {"username": "admin", "password": "of-the-new-instance"}
    file.write_text(json.dumps(login))
    output = fresh.do("restore", first.archive)
    assert f"so {file} was removed" in output
    assert "`script/manage changepassword NAME` sets a new password." in output
    assert not file.exists()

    valid = {"username": "staff", "password": "staff password"}
    file.write_text(json.dumps(valid))
    assert str(file) not in fresh.do("restore", first.archive, "--overwrite")
    assert json.loads(file.read_text()) == valid


@pytest.mark.slow
def test_without_the_old_secret_key_second_factors_can_t_be_read_until_it_is_a_fallback(
    first, empty
):
    output = empty.do("restore", first.bare)
    assert "1 stored secrets can't be read" in output
    assert empty.keys == OTHER_KEYS
    empty.has_keys(OTHER_KEYS | {"SECRET_KEY_FALLBACKS": FIRST_KEYS["SECRET_KEY"]})
    check_all(first, empty)


@pytest.mark.slow
def test_a_data_folder_that_can_t_keep_keys_is_found_before_anything_is_touched(first, empty):
    (empty.data / "keys.env").unlink()
    empty.data.rmdir()
    empty.data.write_text("a file, not a folder")
    message = empty.refused("restore", first.archive, **OTHER_KEYS)
    assert "The instance is as before" in message
    empty.data.unlink()
    empty.do("restore", first.archive, **OTHER_KEYS)
    assert stat.S_IMODE(empty.data.stat().st_mode) == 0o700


@pytest.mark.slow
def test_keys_that_the_environment_has_stay_and_are_named(first, empty):
    output = empty.do("restore", first.archive, MASTER_KEY="of-the-environment", APP_ID="first-app")
    assert "change them there: MASTER_KEY." in output
    assert empty.keys == FIRST_KEYS | {
        "MASTER_KEY": OTHER_KEYS["MASTER_KEY"],
        "APP_ID": OTHER_KEYS["APP_ID"],
    }


@pytest.mark.slow
def test_an_instance_with_contents_is_only_given_up_when_told_to(first, fresh, tmp_path):
    with fresh.web():
        fresh.ask("POST", "/classes/Mine", {"a": 1})
        own = fresh.ask("POST", "/files/own.txt", b"own")["name"]
        version = fresh.run(
            "from objects.definitions import registry; print(registry.find('Mine').version)"
        )
    message = fresh.refused("restore", first.archive)
    assert "isn't empty" in message
    assert "objects_file (1)" in message
    with fresh.web():
        assert len(fresh.ask("GET", "/classes/Mine")["results"]) == 1
    fresh.do("restore", first.archive, "--overwrite")
    check_all(first, fresh)
    stored = {path.name for path in (fresh.data / "files").rglob("*") if path.is_file()}
    assert stored == {name.rpartition("/")[2] for name in first.files}
    assert own not in stored
    newer = fresh.run(
        "from objects.definitions import registry; print(registry.find('Note').version)"
    )
    assert int(newer) > int(version)


@pytest.mark.slow
def test_a_process_that_runs_meanwhile_sees_the_restored_classes(first, fresh):
    fresh.has_keys(FIRST_KEYS)
    with fresh.web():
        fresh.ask("POST", "/classes/Note", {"other": 1})
        assert fresh.call("GET", "/classes/Note?where={%22stars%22:5}").json["results"] == []
        fresh.do("restore", first.archive, "--overwrite")
        results = fresh.ask("GET", "/classes/Note?where={%22stars%22:{%22$gt%22:4}}")["results"]
        assert [note["objectId"] for note in results] == [first.note]


@pytest.mark.slow
def test_what_fails_in_the_middle_leaves_the_instance_as_it_was(first, fresh, tmp_path):
    from backend.operations.backup.archive import Archive

    with fresh.web():
        fresh.ask("POST", "/classes/Mine", {"a": 1})
    # One row more than the archive's database really has: found when all of it is in.
    wrong = tmp_path / "wrong.tar"
    with Archive(first.archive) as archive:
        tables = archive.manifest.tables
    rewrite(first.archive, wrong, tables={**tables, "objects_user": tables["objects_user"] + 1})
    message = fresh.refused("restore", wrong, "--overwrite")
    assert "it is as before" in message
    assert 'objects_user" has 2 rows instead of 3' in message
    with fresh.web():
        assert len(fresh.ask("GET", "/classes/Mine")["results"]) == 1
    assert not [path for path in (fresh.data / "files").rglob("*") if path.is_file()]
    assert fresh.keys == OTHER_KEYS


def rewrite(archive: Path, to: Path, **changes: Any) -> None:
    """The same archive with another manifest."""
    import msgspec

    from backend.operations.backup.archive import MANIFEST, Writer

    with tarfile.open(archive) as old, to.open("w+b") as file:
        writer = Writer(file)
        for item in old:
            content = old.extractfile(item).read()
            if item.name == MANIFEST:
                content = msgspec.json.encode(msgspec.json.decode(content) | changes)
            writer.add(item.name, [content])
        file.write(bytes(1024))


@pytest.mark.slow
def test_archives_of_a_newer_format_or_release_are_refused(first, empty, tmp_path):
    newer = tmp_path / "newer.tar"
    rewrite(first.archive, newer, format=2)
    assert "has format 2, this release reads 1" in empty.refused("restore", newer)
    rewrite(first.archive, newer, migrations=["objects.0001_initial", "objects.9999_later"])
    assert "objects.9999_later. Update first." in empty.refused("restore", newer)
    rewrite(first.archive, newer, extensions=["nonsense"])
    assert "CREATE EXTENSION for nonsense first" in empty.refused("restore", newer)


@pytest.mark.slow
def test_an_archive_of_an_older_release_is_brought_up_to_this_one(first, empty, tmp_path):
    with new_database("older") as url:
        older = Instance(tmp_path / "older", url)
        older.has_keys(FIRST_KEYS)
        older.do("migrate", "objects", "0003")
        older.do("migrate", "auth")
        archive = older.do("backup", tmp_path / "older.tar").strip()
    empty.do("restore", archive)
    assert "[ ]" not in empty.do("showmigrations")
    # Also of this one, which didn't know that.
    assert is_held(empty)


def is_held(instance: Instance) -> bool:
    return instance.run("from objects.database import hold; print(hold.is_on())") == "True"


@pytest.mark.slow
def test_a_restored_instance_is_held_until_it_is_resumed(first, fresh, tmp_path):
    assert "held until you run script/manage resume" in fresh.do("restore", first.archive)
    assert is_held(fresh)
    assert "WARN  restored instance" in fresh.manage("doctor").stdout
    # An archive of it, restored again, is held for its own sake.
    again = fresh.do("backup", tmp_path / "held.tar").strip()
    assert fresh.do("resume") == "Resumed: schedules run, and what was held goes out.\n"
    assert not is_held(fresh)
    assert fresh.do("resume") == "Nothing was held.\n"
    assert "held until" not in fresh.do("restore", again, "--overwrite", "--live")
    assert not is_held(fresh)


@pytest.mark.slow
def test_the_service_s_own_records_are_no_data(first, fresh):
    """An instance that has run for a while may still be restored into."""
    fresh.run(
        "from django_celery_beat.models import IntervalSchedule, PeriodicTask\n"
        "from functions.jobs import records\n"
        "from objects.database import maintenance\n"
        "records.add_failed('tick', {}, source='schedule', error='')\n"
        "maintenance.on()\n"
        "every = IntervalSchedule.objects.create(every=7, period='days')\n"
        "PeriodicTask.objects.create(name='job tick', task='any.task', interval=every)\n"
    )
    fresh.do("restore", first.archive)


@pytest.mark.slow
def test_an_archive_is_restored_before_the_first_start(first, tmp_path):
    service = Service(
        tmp_path / "data", arguments=("--restore", str(first.archive)), PROFILE="small"
    )
    try:
        assert "Held       This instance was restored" in service.output
        assert FIRST_KEYS["MASTER_KEY"] not in service.output
        restored = Instance(service.data, "", port=service.port)
        assert restored.ask("GET", f"/classes/Note/{first.note}")["stars"] == 5
        names = {**restored.keys}
        assert FIRST_KEYS.items() <= names.items()
    finally:
        service.stop()
    again = subprocess.run(
        [sys.executable, "-m", "backend.embedded", "--restore", str(first.archive)],
        cwd=ROOT,
        env=service.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert again.returncode == 1
    assert "CommandError: The instance isn't empty" in again.stderr
    assert "so the service wasn't started" in again.stderr


@pytest.mark.slow
def test_declared_indexes_that_an_archive_lacks_are_built(fresh, tmp_path):
    """A dump doesn't have those that were being built."""
    fresh.run(
        "from backend.kernel.principal import MASTER\n"
        "from objects import service\n"
        "from objects.definitions import indexes, registry\n"
        "from objects.database.statements import fetch\n"
        "from objects.service import classes\n"
        "fields = {'a': {'type': 'Number'}, 'b': {'type': 'Number'}}\n"
        "declared = {'by_a': {'a': 1}, 'one_b': {'fields': {'b': 1}, 'unique': True}}\n"
        "classes.create(MASTER, 'Note', {'fields': fields, 'indexes': declared})\n"
        "table = registry.find('Note')\n"
        "for index in table.schema.index_declarations.values():\n"
        "    fetch(f'DROP INDEX {indexes.index_name(table, index)}', (), prepare=False)\n"
        "for _ in range(2):\n"
        "    service.create(MASTER, 'Note', {'b': 1})\n"
    )
    archive = fresh.do("backup", tmp_path / "building.tar").strip()
    output = fresh.do("restore", archive, "--overwrite")
    assert "Indexes: built: Note.by_a" in output
    assert "Indexes: Note.one_b: The index one_b can't be unique" in output
    assert "1 declared index is missing. What they are for is slow, or not unique." in output
    assert fresh.manage("build_indexes", "--check").stdout == "missing: Note.one_b\n"


@pytest.mark.slow
def test_tables_of_another_user_are_never_removed(first, empty):
    empty.run("from django.db import connection as c; c.cursor().execute('CREATE TABLE theirs ()')")
    for options in ([], ["--overwrite"]):
        assert "tables that aren't this service's: theirs" in empty.refused(
            "restore", first.archive, *options
        )


@pytest.mark.parametrize("where", ["database.dump", "files/", "files.ndjson", "keys.json"])
@pytest.mark.slow
def test_damage_is_found_before_anything_is_touched(first, empty, tmp_path, where):
    broken = tmp_path / "broken.tar"
    content = bytearray(first.archive.read_bytes())
    with tarfile.open(first.archive) as archive:
        item = next(item for item in archive if item.name.startswith(where))
    content[item.offset_data + item.size // 2] ^= 1
    broken.write_bytes(content)
    assert "is damaged" in verify(broken)
    assert "is damaged" in empty.refused("restore", broken)
    assert tables_of(empty) == []


def tables_of(instance: Instance) -> list[str]:
    with psycopg.connect(instance.database) as rows:
        results = rows.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return [name for (name,) in results]


@pytest.mark.slow
def test_an_archive_that_was_cut_off_is_incomplete(first, tmp_path):
    broken = tmp_path / "broken.tar"
    content = first.archive.read_bytes()
    for length in (0, 100, len(content) // 2, len(content) - 20_000):
        broken.write_bytes(content[:length])
        report = verify(broken)
        assert "no archive" in report or "damaged" in report


@pytest.mark.slow
def test_an_archive_is_for_its_owner_and_never_replaced(first, tmp_path):
    assert stat.S_IMODE(first.archive.stat().st_mode) == 0o600
    assert first.archive.name.startswith("first-app-")
    assert "is whole: " in verify(first.archive)
    assert "is there already" in first.instance.refused("backup", first.archive)
    with tarfile.open(first.bare) as archive:
        assert "keys.json" not in archive.getnames()
    for key in FIRST_KEYS.values():
        assert key.encode() not in first.bare.read_bytes().replace(b"first-app", b"")


@pytest.mark.slow
def test_a_file_that_is_gone_from_storage_is_reported_and_doesn_t_stop_the_backup(first, tmp_path):
    name = next(iter(first.files))
    path = first.instance.data / "files" / name[:2] / name
    content = path.read_bytes()
    path.unlink()
    try:
        done = first.instance.manage("backup", tmp_path / "less.tar")
        assert done.returncode == 0
        assert "Missing in storage: 1 file. The log names them." in done.stderr
        assert "is whole" in verify(tmp_path / "less.tar")
        path.write_bytes(b"something else")
        done = first.instance.manage("backup", tmp_path / "other.tar")
        assert "Changed in storage: 1 file. The log names them." in done.stderr
    finally:
        path.write_bytes(content)


@pytest.mark.slow
def test_an_empty_database_is_nothing_to_back_up(empty, tmp_path):
    assert "the database is empty" in empty.refused("backup", tmp_path / "a.tar")
    assert not [*tmp_path.glob("*.tar*")]


@pytest.mark.slow
def test_a_restore_that_is_killed_leaves_the_instance_as_it_was(first, fresh):
    with fresh.web():
        fresh.ask("POST", "/classes/Mine", {"a": 1})
    with psycopg.connect(fresh.database) as reader:
        # Holds up the restore in the middle of its transaction.
        reader.execute("LOCK TABLE objects_class IN ACCESS SHARE MODE")
        process = fresh.start("restore", first.archive, "--overwrite")
        wait_for(
            reader,
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE d.datname = current_database() AND NOT l.granted",
        )
        process.kill()
        process.wait(PATIENCE)
    with fresh.web():
        assert len(fresh.ask("GET", "/classes/Mine")["results"]) == 1
        assert fresh.call("GET", f"/classes/Note/{first.note}").status == 404
    fresh.do("restore", first.archive, "--overwrite")
    check_all(first, fresh)


def wait_for(connection: psycopg.Connection, question: str) -> None:
    end = time.monotonic() + PATIENCE
    while not connection.execute(question).fetchone()[0]:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_what_is_written_meanwhile_is_there_with_its_files_or_not_at_all(fresh, tmp_path):
    """Objects are saved after their files, so no object in an archive lacks its file."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set() and number < 150:
            number += 1
            name = fresh.ask("POST", "/files/a.txt", f"content {number}".encode())["name"]
            file = {"__type": "File", "name": name}
            fresh.ask("POST", "/classes/Paper", {"number": number, "file": file})
            if number % 5 == 0:  # uploaded, and removed again
                gone = fresh.ask("POST", "/files/b.txt", b"gone")["name"]
                fresh.ask("DELETE", f"/files/{gone}")

    with fresh.web(), ThreadPoolExecutor(2) as pool:
        fresh.ask("POST", "/schemas/Paper", {"className": "Paper"})
        writers = [pool.submit(write) for _ in range(2)]
        try:
            archives = [fresh.do("backup", tmp_path / f"{n}.tar").strip() for n in range(2)]
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    for archive in archives:
        fresh.do("restore", archive, "--overwrite")
        with fresh.web():
            papers = fresh.ask("GET", "/classes/Paper?limit=10000")["results"]
            assert papers
            for paper in papers:
                got = fresh.call("GET", f"/files/{fresh.keys['APP_ID']}/{paper['file']['name']}")
                assert (got.status, got.body) == (200, f"content {paper['number']}".encode())


@pytest.mark.slow
def test_files_may_move_between_a_folder_and_a_bucket(first, empty, tmp_path):
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        access = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        s3 = boto3.resource("s3", endpoint_url=endpoint, region_name="eu-west-1", **access)
        bucket = s3.create_bucket(
            Bucket="kept", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        empty.settings = {
            "FILE_STORAGE": "s3",
            "FILE_S3_BUCKET": "kept",
            "FILE_S3_ENDPOINT": endpoint,
            "FILE_S3_REGION": "eu-west-1",
            "FILE_S3_ACCESS_KEY": "key",
            "FILE_S3_SECRET_KEY": "secret",
        }
        empty.do("restore", first.archive)
        stored = {item.key: item.get() for item in bucket.objects.all()}
        expected = {storage_key(name): content for name, content in first.files.items()}
        assert {key: item["Body"].read() for key, item in stored.items()} == expected
        assert {item["ContentType"] for item in stored.values()} == {
            "image/png",
            "text/plain; charset=utf-8",
        }
        again = empty.do("backup", tmp_path / "again.tar").strip()
        bucket.objects.all().delete()
        done = empty.manage("backup", tmp_path / "less.tar")
        assert "Missing in storage: 2 files." in done.stderr
    finally:
        server.stop()
    with new_database("third") as url:
        third = Instance(tmp_path / "third", url)
        third.has_keys(OTHER_KEYS)
        third.do("restore", again)
        check_all(first, third)

"""Backups in ``BACKUP_TO``, from the command line to a restored instance."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import psutil
import psycopg
import pytest
from moto.server import ThreadedMotoServer
from pyrage import x25519

from tests.backend.commands.instances import FIRST_KEYS, OTHER_KEYS, Instance, new_database
from tests.backend.operations.service import PATIENCE, Service, run_manage

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.xdist_group("backup")]

KEY = str(x25519.Identity.generate())
OTHER_KEY = str(x25519.Identity.generate())
FILL = (
    "from backend.kernel.principal import MASTER\n"
    "from objects import service\n"
    "service.create(MASTER, 'Note', {'text': 'hello'})\n"
)
READ = (
    "from objects.database.statements import fetch\n"
    "print(fetch(\"SELECT data->>'text' FROM objects_object\", (), prepare=False))\n"
)
RUNS = (
    "from backend.backups.models import BackupRun\n"
    "print([(r.state, r.verification, r.note) for r in BackupRun.objects.order_by('id')])\n"
)
TASK = "from backend.celery import back_up; back_up()"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, prepared: str) -> Iterator[str]:
    """The address of a database with an object."""
    with new_database("filled", prepared) as url:
        instance = Instance(tmp_path_factory.mktemp("filled"), url)
        instance.has_keys(FIRST_KEYS)
        instance.run(FILL)
        yield url


@pytest.fixture
def first(tmp_path: Path, filled: str, place: Path) -> Iterator[Instance]:
    """An instance with an object that backs itself up to a folder, encrypted."""
    with new_database("scheduled", filled) as url:
        settings = {"BACKUP_TO": str(place), "BACKUP_KEY": KEY}
        instance = Instance(tmp_path / "first", url, settings)
        instance.has_keys(FIRST_KEYS)
        yield instance


@pytest.fixture
def fresh(tmp_path: Path, prepared: str, first: Instance) -> Iterator[Instance]:
    """A fresh instance with the same settings of backups."""
    with new_database("scheduled_fresh", prepared) as url:
        instance = replace(first, data=tmp_path / "fresh", database=url)
        instance.has_keys(OTHER_KEYS)
        yield instance


def names(place: Path) -> list[str]:
    return sorted(file.name for file in place.rglob("*") if file.is_file())


def test_a_fresh_instance_becomes_the_latest_backup_of_a_folder(
    first: Instance, place: Path, tmp_path: Path
) -> None:
    """By ``script/server``; it makes no backups then until it is resumed."""
    name = first.do("backup", "--now").strip()
    assert names(place) == [f"{name}.age"]
    settings = {"BACKUP_TO": place, "BACKUP_KEY": KEY}
    service = Service(
        tmp_path / "data", arguments=("--restore", "latest"), PROFILE="small", **settings
    )
    try:
        assert "Held       This instance was restored" in service.output
        restored = Instance(service.data, "", port=service.port)
        assert restored.ask("GET", "/classes/Note")["results"][0]["text"] == "hello"
        assert not [*service.data.glob("restore-work*")]
        refused = run_manage("backup", "--now", DATA_DIR=service.data, **settings)
        assert "was restored and is held" in refused.stderr
        assert names(place) == [f"{name}.age"]
    finally:
        service.stop()


def test_a_fresh_instance_becomes_a_backup_of_an_encrypted_bucket(
    first: Instance, fresh: Instance, place: Path
) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        access = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        bucket = boto3.resource(
            "s3", endpoint_url=endpoint, region_name="eu-west-1", **access
        ).create_bucket(
            Bucket="safe", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )
        settings = {
            "BACKUP_TO": "s3://safe/of/app",
            "BACKUP_KEY": KEY,
            "BACKUP_S3_ENDPOINT": endpoint,
            "BACKUP_S3_REGION": "eu-west-1",
            "BACKUP_S3_ACCESS_KEY": "key",
            "BACKUP_S3_SECRET_KEY": "secret",
        }
        first.settings = fresh.settings = settings
        name = first.do("backup", "--now").strip()
        [item] = bucket.objects.all()
        assert item.key == f"of/app/archives/{name}.age"
        assert item.get()["Body"].read().startswith(b"age-encryption.org/v1\n")
        # An instance without data would remove them, and its own would be the latest.
        assert "has no data, and s3://safe/of/app has backups" in fresh.refused("backup", "--now")

        fresh.settings = settings | {"BACKUP_KEY": OTHER_KEY}
        assert "another key than that of BACKUP_KEY" in fresh.refused("restore", "latest")
        fresh.settings = settings
        fresh.settings = settings | {"BACKUP_TO": ""}
        assert "Restored:" in fresh.do("restore", f"s3://safe/{item.key}")
        assert fresh.run(READ) == "[('hello',)]"
        assert not [*fresh.data.glob("restore-work*")]
    finally:
        server.stop()


def test_two_workers_that_get_the_task_make_one_backup(first: Instance, place: Path) -> None:
    first.settings = {**first.settings, "BACKUP_SCHEDULE": "0 3 * * *"}
    workers = [first.start("shell", "-c", TASK) for _ in range(2)]
    assert [worker.wait(PATIENCE) for worker in workers] == [0, 0]
    assert len(names(place)) == 1
    assert first.run(RUNS) == "[('ok', 'restored', '')]"


def test_a_backup_that_is_killed_leaves_nothing_that_counts(first: Instance, place: Path) -> None:
    """The worker records how it ended, and the next one removes what it has left."""
    first.settings = {**first.settings, "BACKUP_SCHEDULE": "0 3 * * *"}
    archives = place / "archives"
    with psycopg.connect(first.database, autocommit=True) as blocker:
        blocker.execute("BEGIN")
        # The dump waits for it.
        blocker.execute("LOCK TABLE django_session IN ACCESS EXCLUSIVE MODE")
        worker = first.start("shell", "-c", TASK)
        work = first.data / "backup-work"
        end = time.monotonic() + PATIENCE
        while not list(work.glob("*")):
            assert time.monotonic() < end
            time.sleep(0.02)
        [process] = psutil.Process(worker.pid).children()
        process.kill()
        assert worker.wait(PATIENCE) == 0
        blocker.execute("ROLLBACK")
    killed = "('killed', '', 'The process was killed or lost its database.')"
    assert first.run(RUNS) == f"[{killed}]"
    archives.mkdir(exist_ok=True)
    (archives / ".first-app-20260101T000000Z.tar.age.0123.part").write_bytes(b"x")
    name = first.do("backup", "--now").strip()
    assert names(place) == [f"{name}.age"]
    assert not work.exists()
    assert first.run(RUNS) == f"[{killed}, ('ok', 'restored', '')]"

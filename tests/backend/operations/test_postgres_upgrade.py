"""An embedded database of an older PostgreSQL is named, and upgraded by one command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import DATABASE, USER, DataFolder
from backend.kernel.process import children
from backend.operations.embedded import upgrade as upgrading
from backend.operations.embedded.binaries import POSTGRES_MAJOR, postgres_installs
from backend.operations.embedded.cluster import major_of
from backend.operations.embedded.engines import Engines
from tests.backend.operations.service import ROOT, plain_environment, run_manage
from tests.polling import until

pytestmark = pytest.mark.slow
OLD = 16
PATIENCE = 60
KEYS = dict.fromkeys(("APP_ID", "REST_API_KEY", "MASTER_KEY", "SECRET_KEY"), "x" * 20)


@pytest.fixture
def old(folder: DataFolder) -> DataFolder:
    """A data folder with a database of an older major, and a row in it."""
    account = folder.prepare()
    folder.postgres.mkdir(mode=0o700)
    account.own(folder.postgres)
    with programs(folder, account) as place:
        run(
            account,
            place / "initdb",
            "-D",
            folder.postgres,
            "-U",
            USER,
            "--auth=trust",
            "-E",
            "UTF8",
        )
        with server(folder, account, place):
            with connect(folder, "postgres") as connection:
                connection.execute(f"CREATE DATABASE {DATABASE}")
            with connect(folder, DATABASE) as connection:
                connection.execute("CREATE TABLE kept (word text)")
                connection.execute("INSERT INTO kept VALUES ('über')")
    return folder


@contextmanager
def programs(folder: DataFolder, account: Account) -> Iterator[Path]:
    """The old programs where the account can run them."""
    programs = postgres_installs()[OLD] / "bin"
    with upgrading._accessible_programs(account, programs, programs) as (place, _, _):
        yield place


def run(account: Account, *command: str | Path) -> None:
    with Path("/dev/null").open("ab") as log:
        assert children.start(command, account=account, log=log).wait() == 0


@contextmanager
def server(folder: DataFolder, account: Account, place: Path, how: str = "terminate") -> Iterator:
    with (folder.log / "old.log").open("ab") as log:
        process = children.start(
            [
                place / "postgres",
                "-D",
                folder.postgres,
                "--listen_addresses=",
                f"--unix_socket_directories={folder.postgres_socket}",
            ],
            account=account,
            log=log,
        )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connect(folder, "postgres").close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end
        yield
    finally:
        getattr(process, how)()
        process.wait(PATIENCE)


def connect(folder: DataFolder, database: str) -> psycopg.Connection:
    place = str(folder.postgres_socket)
    return psycopg.connect(host=place, user=USER, dbname=database, autocommit=True)


def upgrade(folder: DataFolder, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_manage("upgrade_postgres", *arguments, DATA_DIR=folder.path, **KEYS)


def words(folder: DataFolder) -> list[str]:
    """What the database has, by the PostgreSQL that is installed."""
    with Engines(folder, folder.prepare(), redis=False), connect(folder, DATABASE) as connection:
        return [row[0] for row in connection.execute("SELECT word FROM kept")]


def test_an_older_database_is_named_with_the_command_that_upgrades_it(old: DataFolder) -> None:
    with pytest.raises(StartError, match=f"made by PostgreSQL {OLD}.*upgrade_postgres"):
        words(old)
    done = upgrade(old)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"remove the old one: {old.engines}/postgres.{OLD}" in done.stdout
    assert words(old) == ["über"]
    assert major_of(old.engines / f"postgres.{OLD}") == OLD

    again = upgrade(old)
    assert again.returncode == 1
    assert f"is one of PostgreSQL {POSTGRES_MAJOR} already" in again.stderr


def test_a_database_whose_server_was_killed_is_upgraded(old: DataFolder) -> None:
    account = old.prepare()
    with (
        programs(old, account) as place,
        server(old, account, place, how="kill"),
        connect(old, DATABASE) as connection,
    ):
        connection.execute("INSERT INTO kept VALUES ('late')")
    assert upgrade(old).returncode == 0
    assert words(old) == ["über", "late"]


@pytest.mark.parametrize("moment", ["before", "between"])
def test_an_upgrade_that_was_killed_while_it_put_the_new_one_in_place_is_finished(
    old: DataFolder, moment: str
) -> None:
    assert upgrade(old).returncode == 0
    stored = old.engines / f"postgres.{OLD}"
    old.postgres.rename(old.engines / "postgres.upgraded")
    if moment == "before":
        stored.rename(old.postgres)
    assert words(old) == ["über"]
    assert major_of(stored) == OLD


def test_an_upgrade_that_was_killed_leaves_no_server_in_the_way_of_the_next(
    old: DataFolder,
) -> None:
    killed = subprocess.Popen(
        [sys.executable, ROOT / "manage.py", "upgrade_postgres"],
        env=plain_environment(DATA_DIR=old.path, **KEYS),
    )
    # pg_upgrade runs the old server, too.
    until((old.postgres / "postmaster.pid").exists, PATIENCE)
    killed.kill()
    killed.wait()
    assert upgrade(old).returncode == 0
    assert servers(old) == []
    assert words(old) == ["über"]


def servers(folder: DataFolder) -> list[psutil.Process]:
    """The processes that work in the folder of a cluster."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder.engines):
                processes.append(process)
    return processes


def test_an_upgrade_that_fails_leaves_the_old_database_as_it_was(old: DataFolder) -> None:
    account = old.prepare()
    # pg_upgrade has to connect to every database.
    with (
        programs(old, account) as place,
        server(old, account, place),
        connect(old, "postgres") as connection,
    ):
        connection.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
    done = upgrade(old)
    assert done.returncode == 1
    assert "The old database is as it was" in done.stderr
    assert major_of(old.postgres) == OLD
    assert not (old.engines / "postgres.upgraded").exists()


def test_nothing_is_upgraded_while_the_service_runs(old: DataFolder) -> None:
    with old.hold():
        old.record(pid=1, address="http://localhost:1")
        done = upgrade(old)
    assert (done.returncode, "already running" in done.stderr) == (1, True)
    assert major_of(old.postgres) == OLD

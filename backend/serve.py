"""``python -m backend.serve ROLE``: one process, as the settings have it.

Roles: web, realtime, worker, jobs, chain, backfill, beat. Without an argument ``PROCESS`` says
which. ``WEB_BIND`` and ``REALTIME_BIND`` say where the servers listen: ``unix:/path/to.sock`` or
``host:port``.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path


def web() -> None:
    """granian: REST and the admin, over WSGI."""
    from django.conf import settings
    from granian import Granian
    from granian.constants import Interfaces
    from granian.log import LogLevels

    # Loaded here once; the workers are forked from this process.
    import backend.wsgi  # noqa: F401
    from backend import logs

    path, host, port = _bind(settings.WEB_BIND)
    Granian(
        "backend.wsgi:application",
        address=host,
        port=port,
        uds=path,
        uds_permissions=0o600 if path else None,
        interface=Interfaces.WSGI,
        workers=settings.WEB_WORKERS,
        blocking_threads=settings.WEB_THREADS,
        blocking_threads_idle_timeout=600,
        runtime_blocking_threads=settings.WEB_THREADS,
        websockets=False,
        log_level=LogLevels.warning,
        log_dictconfig=logs.standard_library(settings.LOG_LEVEL, settings.LOG_FORMAT),
        respawn_failed_workers=True,
    ).serve()


def realtime() -> None:
    """uvicorn: sockets, over ASGI."""
    import signal

    import uvicorn
    from django.conf import settings
    from uvicorn.supervisors import Multiprocess

    from backend import logs
    from backend.conf import service_settings

    raise_file_limit()
    config = uvicorn.Config(
        "backend.asgi:application",
        workers=settings.REALTIME_WORKERS,
        loop="uvloop",
        http="h11",
        ws="realtime.wire:Wire",
        ws_max_size=service_settings.WS_MESSAGE_SIZE,
        ws_ping_interval=service_settings.WS_PING_INTERVAL,
        ws_ping_timeout=service_settings.WS_PING_TIMEOUT,
        ws_per_message_deflate=False,
        # Whose word counts about the client's address is decided where it is read.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=logs.standard_library(settings.LOG_LEVEL, settings.LOG_FORMAT),
        lifespan="on",
        timeout_graceful_shutdown=5,
        backlog=4096,
    )
    # uvicorn raises the signal again that has ended it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    listening = _listening_socket(settings.REALTIME_BIND)
    if settings.REALTIME_WORKERS > 1:
        Multiprocess(config, [listening]).run()
    else:
        uvicorn.Server(config).run([listening])


def _listening_socket(bind: str) -> socket.socket:
    path, host, port = _bind(bind)
    if path is None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    else:
        found = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)  # for our own account only
        try:
            found.bind(str(path))
        finally:
            os.umask(before)
    found.set_inheritable(True)
    return found


def raise_file_limit() -> None:
    """Take as many open files as the system allows: each socket is one."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _bind(text: str) -> tuple[Path | None, str, int]:
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:"))
        with suppress(FileNotFoundError):
            path.unlink()  # left by a process that was killed
        return path, "127.0.0.1", 0
    host, _, port = text.rpartition(":")
    return None, host.strip("[]"), int(port)


def worker() -> None:
    """Celery: tasks."""
    _work()


def jobs() -> None:
    """Celery: runs of jobs, apart from other tasks, which they would hold up."""
    from django.conf import settings

    from backend.job_settings import QUEUE

    _work("-Q", QUEUE, "-n", "jobs@%h", f"--concurrency={settings.JOB_CONCURRENCY}")


def chain() -> None:
    """Celery: following networks. In threads, since it is waiting for nodes most of the time; a
    network that doesn't answer keeps one of them."""
    from django.conf import settings

    from backend.chain_settings import QUEUE

    concurrency = f"--concurrency={settings.CHAIN_CONCURRENCY}"
    _work("-Q", QUEUE, "-n", "chain@%h", "--pool=threads", concurrency)


def backfill() -> None:
    """Celery: reading what lies behind, in processes, since it is work for the processor."""
    from django.conf import settings

    from backend.chain_settings import BACKFILL_QUEUE

    concurrency = f"--concurrency={settings.BACKFILL_CONCURRENCY}"
    _work("-Q", BACKFILL_QUEUE, "-n", "backfill@%h", concurrency)


def _work(*options: str) -> None:
    from backend.celery import app

    # What workers would tell each other, and heartbeats (``backend.celery.SignOfLife`` says why).
    silent = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    app.start(["--quiet", "worker", *silent, *options])


def beat() -> None:
    """Celery: the schedule. Exactly one runs."""
    from backend.celery import app

    app.start(["--quiet", "beat"])


def limit_memory() -> None:
    """Let code that asks for too much memory fail by itself, before the machine has none left."""
    import resource

    from django.conf import settings

    if settings.MEMORY_LIMIT:
        size = settings.MEMORY_LIMIT * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (size, resource.RLIM_INFINITY))


def main() -> None:
    roles = {
        "web": web,
        "realtime": realtime,
        "worker": worker,
        "jobs": jobs,
        "chain": chain,
        "backfill": backfill,
        "beat": beat,
    }
    role = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PROCESS", "")
    if role not in roles:
        raise SystemExit(f"usage: python -m backend.serve {'|'.join(roles)}")
    os.environ |= {"PROCESS": role, "DJANGO_SETTINGS_MODULE": "backend.settings"}
    limit_memory()
    roles[role]()


if __name__ == "__main__":
    main()

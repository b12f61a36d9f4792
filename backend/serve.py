"""``python -m backend.serve web|realtime|worker|jobs|beat``: one process, as the settings have it.

Without an argument ``PROCESS`` says which. ``WEB_BIND`` and ``REALTIME_BIND`` say where the servers
listen: ``unix:/path/to.sock`` or ``host:port``.
"""

from __future__ import annotations

import os
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

    socket, host, port = _bind(settings.WEB_BIND)
    Granian(
        "backend.wsgi:application",
        address=host,
        port=port,
        uds=socket,
        uds_permissions=0o600 if socket else None,
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
    """daphne: sockets, over ASGI."""
    from daphne.cli import CommandLineInterface
    from django.conf import settings

    socket, host, port = _bind(settings.REALTIME_BIND)
    where = ["-u", str(socket)] if socket else ["-b", host, "-p", str(port)]
    CommandLineInterface().run(
        [*where, "--proxy-headers", "--verbosity", "0", "backend.asgi:application"]
    )


def _bind(text: str) -> tuple[Path | None, str, int]:
    if text.startswith("unix:"):
        socket = Path(text.removeprefix("unix:"))
        with suppress(FileNotFoundError):
            socket.unlink()  # left by a process that was killed
        return socket, "127.0.0.1", 0
    host, _, port = text.rpartition(":")
    return None, host.strip("[]"), int(port)


def worker() -> None:
    """Celery: tasks."""
    from backend.celery import app

    app.start(["--quiet", "worker", "--without-gossip", "--without-mingle"])


def jobs() -> None:
    """Celery: runs of jobs, apart from other tasks, which they would hold up."""
    from django.conf import settings

    from backend.celery import app
    from backend.job_settings import QUEUE

    options = ["--without-gossip", "--without-mingle", f"--concurrency={settings.JOB_CONCURRENCY}"]
    app.start(["--quiet", "worker", "-Q", QUEUE, "-n", "jobs@%h", *options])


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
    roles = {"web": web, "realtime": realtime, "worker": worker, "jobs": jobs, "beat": beat}
    role = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PROCESS", "")
    if role not in roles:
        raise SystemExit(f"usage: python -m backend.serve {'|'.join(roles)}")
    os.environ |= {"PROCESS": role, "DJANGO_SETTINGS_MODULE": "backend.settings"}
    limit_memory()
    roles[role]()


if __name__ == "__main__":
    main()

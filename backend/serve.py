"""``python -m backend.serve ROLE``: one process, as the settings have it.

Roles: web, realtime, worker, jobs, chain, backfill, beat. Without an argument ``PROCESS`` says
which. ``WEB_BIND`` and ``REALTIME_BIND`` say where the servers listen: ``unix:/path/to.sock`` or
``host:port``, the first one also several of them. Handshakes of WebSockets that reach a web process
go on to the realtime process by ``REALTIME_HANDOFF``.
"""

from __future__ import annotations

import os
import sys


def web() -> None:
    """REST and the admin, by the server in ``backend.server``."""
    from django.conf import settings

    # Loaded here once; the workers are forked from this process.
    from backend.wsgi import application  # isort: skip (sets Django up)
    from backend.api.server_rules import limits, rules
    from backend.server.listening import listening_socket
    from backend.server.process import serve
    from backend.server.workers import Workers

    raise_file_limit()
    listeners = [listening_socket(bind) for bind in settings.WEB_BIND]

    def work() -> None:
        serve(rules(application), limits(), listeners, settings.WEB_THREADS)

    Workers(settings.WEB_WORKERS, work).run()


def realtime() -> None:
    """uvicorn: sockets, over ASGI."""
    import signal

    import uvicorn
    from django.conf import settings

    from backend import logs
    from backend.conf import service_settings
    from backend.server.listening import listening_socket
    from backend.server.workers import Workers
    from realtime.serving import SocketServer

    raise_file_limit()
    config = uvicorn.Config(
        "backend.asgi:application",
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
    listening = listening_socket(settings.REALTIME_BIND)
    path = settings.REALTIME_HANDOFF
    handoff = listening_socket(f"unix:{path}") if path else None

    def work() -> None:
        # uvicorn raises the signal again that has ended it.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
        SocketServer(config, handoff).run([listening])

    if settings.REALTIME_WORKERS > 1:
        Workers(settings.REALTIME_WORKERS, work).run()
    else:
        work()


def raise_file_limit() -> None:
    """Take as many open files as the system allows: each socket is one."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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


def check_settings() -> None:
    """End the process with a sentence if a setting is wrong or names a server that can't be used.

    A role that starts while its Redis is away ends as well: what restarts it also retries.
    """
    from django.conf import settings

    from backend.reachability import check_servers

    check_servers(settings)


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
    check_settings()
    roles[role]()


if __name__ == "__main__":
    main()

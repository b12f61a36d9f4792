"""What a process of each role does, and what it has of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import connections

from backend.kernel import doctor, request_counts
from backend.kernel.outgoing import turns
from backend.kernel.process import liveness, reports
from backend.kernel.process.children import name_this
from backend.logs import setup
from backend.operations.checks import load_checks
from backend.operations.processes.supervisor import Role
from backend.server.listeners import close_others, listening_socket
from backend.settings import django as declared
from backend.settings.schedule import BACKFILL, CHAIN, JOBS
from backend.tasks import lanes

log = setup.get_logger("processes")


def become(process: str) -> None:
    """Have this process be the one of this name: in its logs and at the database, and with the time
    limits that it has there."""
    os.environ["PROCESS"] = process
    settings.PROCESS = process
    settings.LOGGING["process"] = process  # Celery's workers set Django up again
    connections.settings["default"]["OPTIONS"] = declared.database(process)["OPTIONS"]
    setup.name_process(process)
    name_this(f"svc-{process}")


def _web() -> Role:
    """REST and the admin, by the server in ``backend.server``."""
    from backend.kernel.process.frozen_heap import leave_out_loaded
    from backend.operations.processes.server_rules import limits, rules
    from backend.server.process import serve
    from backend.server.shares import Shares
    from backend.wsgi import application

    shares = Shares(settings.WEB_WORKERS)
    listeners = [listening_socket(bind) for bind in settings.WEB_BIND]
    # The processes are forked from this one.
    leave_out_loaded()

    def work() -> None:
        become("web")
        doctor.load_with(load_checks)
        close_others(listeners)
        _raise_file_limit()
        reports.start(request_counts.add_up_in_thread)
        share = shares.of(liveness.place() or 0)
        serve(rules(application), limits(), listeners, settings.WEB_THREADS, share)
        request_counts.add_up()

    return Role("web", work, settings.WEB_WORKERS)


def _realtime() -> Role:
    """uvicorn: sockets, over ASGI."""
    listening = listening_socket(settings.REALTIME_BIND)
    path = settings.REALTIME_HANDOFF
    handoff = listening_socket(f"unix:{path}") if path else None

    def work() -> None:
        become("realtime")
        close_others((listening, handoff))
        _raise_file_limit()
        reports.start()
        _serve_sockets(listening, handoff)

    return Role("realtime", work, settings.REALTIME_WORKERS)


def _serve_sockets(listening: socket.socket, handoff: socket.socket | None) -> None:
    import uvicorn

    from backend.settings.conf import service_settings
    from realtime.process.server import SocketServer

    # uvicorn raises the signal again that has ended it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    config = uvicorn.Config(
        "backend.asgi:application",
        loop="uvloop",
        http="h11",
        ws="realtime.sockets.wire:Wire",
        ws_max_size=service_settings.WS_MESSAGE_SIZE,
        ws_ping_interval=service_settings.WS_PING_INTERVAL,
        ws_ping_timeout=service_settings.WS_PING_TIMEOUT,
        ws_per_message_deflate=False,
        # Whose word counts about the client's address is decided where it is read.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=setup.standard_library(settings.LOG_LEVEL, settings.LOG_FORMAT),
        lifespan="on",
        timeout_graceful_shutdown=5,
        backlog=4096,
    )
    SocketServer(config, handoff).run([listening])


def _raise_file_limit() -> None:
    """Take as many open files as the system allows: each socket is one."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _worker() -> None:
    """Celery: tasks, in threads, since many of them wait for other servers."""
    _work("worker", settings.CELERY_TASK_DEFAULT_QUEUE, lanes.THREADS, pool="threads")


def _jobs() -> None:
    """Celery: runs of jobs, apart from other tasks, which they would hold up."""
    _work("jobs", JOBS, settings.JOB_CONCURRENCY)


def _chain() -> None:
    """Celery: following networks. In threads, since it is waiting for nodes most of the time; a
    network that doesn't answer keeps one of them."""
    from chain.indexing.schedule import wakeups

    wakeups.install()
    _work("chain", CHAIN, settings.CHAIN_CONCURRENCY, pool="threads")


def _backfill() -> None:
    """Celery: events of older blocks, in processes, since it is work for the processor, each with
    threads, so that a network that doesn't answer delays no other."""
    _work("backfill", BACKFILL, lanes.BACKFILLS.places, pool="threads")


def _small_worker() -> None:
    """Celery: everything but jobs, in threads, and the schedule, in one process."""
    from backend.celery import app
    from chain.indexing.schedule import wakeups

    wakeups.install()
    threading.Thread(target=_keep_schedule, args=(app,), name="schedule", daemon=True).start()
    queues = f"{settings.CELERY_TASK_DEFAULT_QUEUE},{CHAIN},{BACKFILL}"
    _work("worker", queues, lanes.SMALL_THREADS, pool="threads")


def _keep_schedule(app: Any) -> None:
    from backend.celery import OnlyService

    try:
        OnlyService(app, scheduler_cls=app.conf.beat_scheduler).start()
    except BaseException:
        log.exception("the schedule ended")
    os._exit(1)  # and is started again, with the process


def _small_jobs() -> None:
    """Celery: runs of jobs, in threads. They have a process of their own, so that they
    delay nothing else."""
    _work("jobs", JOBS, settings.JOB_CONCURRENCY, pool="threads")


def _work(name: str, queues: str, concurrency: int, pool: str = "prefork") -> None:
    from backend.celery import app

    if pool == "threads":
        turns.set_threads(concurrency)
    # Not by Celery's command, whose shell takes 10 MB of each process.
    worker = app.Worker(
        hostname=f"{name}-{os.getpid()}@{socket.gethostname()}",
        queues=queues.split(","),
        concurrency=concurrency,
        pool=pool,
        quiet=True,
        # What workers would tell each other, and heartbeats (``backend.celery.HeartbeatStep``).
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


def _beat() -> None:
    """Celery: the schedule, which one process at a time keeps."""
    from backend.celery import app

    reports.start()
    app.Beat(quiet=True).run()


def _of_celery(name: str, run: Callable[[], None], count: Callable[[], int] = lambda: 1) -> Role:
    def work() -> None:
        become(name)
        doctor.load_with(load_checks)
        close_others()
        run()

    return Role(name, work, count())


def archive_role() -> Role:
    """The process that archives the embedded server's WAL; only where that is on."""

    def work() -> None:
        from backend.operations.wal_archive import process

        become("archive")
        close_others()
        reports.start()
        process.run()

    return Role("archive", work)


ROLES: Final[Mapping[str, Callable[[], Role]]] = {
    "web": _web,
    "realtime": _realtime,
    "worker": partial(_of_celery, "worker", _worker, lambda: settings.CELERY_WORKER_CONCURRENCY),
    "jobs": partial(_of_celery, "jobs", _jobs),
    "chain": partial(_of_celery, "chain", _chain),
    "backfill": partial(_of_celery, "backfill", _backfill, lambda: settings.BACKFILL_CONCURRENCY),
    "beat": partial(_of_celery, "beat", _beat),
}
"""How each role is made, with the sockets that its processes share."""

SMALL_ROLES: Final[Mapping[str, Callable[[], Role]]] = {
    "web": _web,
    "realtime": _realtime,
    "worker": partial(_of_celery, "worker", _small_worker),
    "jobs": partial(_of_celery, "jobs", _small_jobs),
}
"""The same work in fewer processes, for the profile ``small``."""

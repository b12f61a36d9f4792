"""The Celery application.

A task that is started while a request is answered logs with that request's id, and so do the tasks
that it starts. Tasks are
acknowledged when they are done, so a task whose worker dies is run again: tasks must bear that.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from time import time
from typing import Any, Final

import redis
from celery import Celery, signals
from celery.apps import worker as celery_worker
from celery.apps.beat import Beat
from celery.beat import Service
from celery.bootsteps import StartStopStep
from celery.platforms import SecurityWarning
from django.db import DEFAULT_DB_ALIAS, connection, connections
from kombu.transport import redis as redis_transport
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from backend.kernel.connections import advisory_locks
from backend.kernel.errors import ServiceError
from backend.kernel.process import exit_hooks, liveness
from backend.kernel.process.children import die_with_parent
from backend.kernel.process.frozen_heap import leave_out_loaded
from backend.kernel.process.heartbeats import SENT_AT
from backend.kernel.request_context import Current, begin
from backend.logs.setup import get_logger
from backend.settings.schedule import BACK_UP, REPAIR_INDEXES, VERIFY_BACKUP
from backend.tasks import broker, overflow, taken
from backend.tasks.schedule_lock import ScheduleLock

# Started by root on a bare machine, everything but the engines runs as root; JSON is all we accept.
warnings.filterwarnings("ignore", category=SecurityWarning)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")

log = get_logger("celery")
app = Celery("backend")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Those of rooms inside our apps are imported by the apps' ``wiring``.
app.autodiscover_tasks()

HEADER = broker.HEADER
_HEARTBEAT_INTERVAL = 5.0  # seconds


@app.task(name="backend.beat_is_alive", ignore_result=True)
def beat_is_alive() -> None:
    """Scheduled by beat; a worker that runs it proves that beat schedules."""
    from backend.kernel.process import heartbeats

    with _redis() as client:
        heartbeats.note(client, heartbeats.BEAT)


@app.task(name="backend.collect_minutes", ignore_result=True)
def collect_minutes() -> None:
    """Store the figures of the last minutes, which the start page of the admin shows."""
    from backend.overview.collection import collect

    collect()


@app.task(name="backend.run_checks", ignore_result=True)
def run_checks() -> None:
    """Run the checks of ``doctor`` for the advisor of the admin."""
    from backend.overview import checkups

    checkups.run()


@app.task(name=REPAIR_INDEXES, ignore_result=True)
def repair_indexes() -> None:
    """Build the declared indexes that are missing, and drop those that no class declares."""
    from django.core.management import call_command

    call_command("build_indexes")


@app.task(name="backend.start_overflows", ignore_result=True)
def start_overflows() -> None:
    """Start tasks that got no place in a lane, and that a worker which died was to start."""
    overflow.start_all()


@app.task(name=BACK_UP, bind=True, ignore_result=True)
def back_up(self: Any, *, is_requested: bool = False) -> None:
    """Make a backup, with ``BACKUP_SCHEDULE`` or when staff have requested one. The schedule is
    kept in the database, also after the setting is off again."""
    from backend.backups import history, process
    from backend.settings.conf import service_settings
    from objects.database import locks

    if not (service_settings.BACKUP_SCHEDULE or is_requested):
        return
    if not process.back_up(float(getattr(self.request, SENT_AT, None) or time())):
        # PostgreSQL may need a moment to end the session of a process that was killed. If another
        # process holds the lock, that has recorded how this one ended.
        with suppress(ServiceError), locks.held(advisory_locks.BACKUPS):
            history.mark_killed()


@app.task(name=VERIFY_BACKUP, ignore_result=True)
def verify_backup(name: str) -> None:
    """Read an archive back and check it. The note of its run has the result."""
    from backend.backups import process

    process.verify(name)


def _redis() -> redis.Redis:
    from django.conf import settings

    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=5)


@signals.setup_logging.connect
def _keep_our_logging(**kwargs: Any) -> None:
    """Having a receiver keeps Celery from setting up logging of its own."""


@signals.before_task_publish.connect
def _send_with(headers: dict[str, Any], **kwargs: Any) -> None:
    headers.setdefault(SENT_AT, time())
    request_id = get_contextvars().get("request_id")
    if request_id:
        headers.setdefault(HEADER, request_id)


@signals.task_prerun.connect
def _bind_request_id(task_id: str, task: Any, **kwargs: Any) -> None:
    clear_contextvars()
    # What no request has caused, such as a task of the schedule, gives its id to what it causes.
    request_id = getattr(task.request, HEADER, None) or task_id
    bind_contextvars(task=task.name, task_id=task_id, request_id=request_id)
    begin(Current(request_id))


@signals.task_postrun.connect
def _forget_request_id(**kwargs: Any) -> None:
    clear_contextvars()


class _Channel(redis_transport.Channel):
    """kombu's, whose failure a worker survives when Redis goes away while it connects.

    A channel of a connection that has been closed meanwhile has nothing left to connect to. In
    kombu that is an ``AttributeError``, which ends the worker; what it takes for a lost connection
    makes it connect again.
    """

    QoS = taken.QoS

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection is None or self.connection.client is None:
            raise redis.ConnectionError("The connection to the broker has been closed.")
        return super()._connparams(asynchronous=asynchronous)


redis_transport.Transport.Channel = _Channel

# What workers say on standard output when they are stopped would be the only lines there.
celery_worker.safe_say = lambda *said: None


@signals.worker_process_init.connect
@signals.worker_ready.connect
def freeze_loaded_objects(**kwargs: Any) -> None:
    """Reading a chain makes many objects in little time, which would have everything searched for
    garbage again and again."""
    leave_out_loaded()


class OnlyService(Service):
    """Celery's, which keeps the schedule while no other process does.

    When it has lost the lock it waits for it again, and reads the schedule again: what it knew may
    be outdated by then. It waits for the lock, and for the broker, within blocks of ``waiting``.
    """

    waiting: Callable[[], AbstractContextManager[None]] = staticmethod(nullcontext)

    def start(self, *args: Any, **options: Any) -> None:
        self._lock = ScheduleLock()
        self._has_lost = True
        while self._has_lost:
            with self.waiting():
                self._lock.wait()
                # The schedule sends the next heartbeat, through a worker, in a quarter of a minute.
                with suppress(redis.RedisError, OSError):
                    beat_is_alive()
            self._has_lost = False
            self.__dict__.pop("scheduler", None)
            self._is_shutdown.clear()
            super().start(*args, **options)

    def get_scheduler(self, *args: Any, **options: Any) -> Any:
        scheduler = super().get_scheduler(*args, **options)
        scheduler.waiting = self.waiting
        tick = scheduler.tick

        def tick_if_held(*args: Any, **options: Any) -> Any:
            with self.waiting():
                is_held = self._lock.is_held
            if not is_held:
                log.error("the lock of the schedule is lost")
                self._has_lost = True
                raise SystemExit  # ends ``super().start``
            return tick(*args, **options)

        scheduler.tick = tick_if_held
        return scheduler


class _ServiceWithHeartbeats(OnlyService):
    """Sends a heartbeat whenever it looks at the schedule, and expects none while it waits for
    PostgreSQL or the broker: a schedule that hangs for another reason is found and replaced."""

    waiting = staticmethod(liveness.waiting)

    def start(self, *args: Any, **options: Any) -> None:
        expect_no_heartbeats_in(connections[DEFAULT_DB_ALIAS])
        with connection.execute_wrapper(_wait_for_database):
            super().start(*args, **options)


_ROUND_TRIPS: Final = ("connect", "is_usable", "_commit", "_rollback")
"""What waits for PostgreSQL in Django's connection, beside statements."""


def expect_no_heartbeats_in(database: Any) -> None:
    """Expect no heartbeat while this connection is opened, checked, or ends a transaction."""

    def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
        def waits(*args: Any, **options: Any) -> Any:
            with liveness.waiting():
                return call(*args, **options)

        return waits

    for name in _ROUND_TRIPS:
        setattr(database, name, waiting(getattr(database, name)))


def _wait_for_database(execute: Callable[..., Any], *arguments: Any) -> Any:
    with liveness.waiting():
        return execute(*arguments)


class _Beat(Beat):
    """Celery's beat, which SIGTERM ends at any moment."""

    Service = _ServiceWithHeartbeats

    def install_sync_handler(self, service: OnlyService) -> None:
        """Leave the schedule to the end of ``Service.start``.

        Celery's own handler asks for the schedule right away. Where it interrupts the code that
        makes the schedule, both wait for one database connection, for ever.
        """

        def stop(number: int, frame: object) -> None:
            service._is_shutdown.set()
            if "scheduler" not in vars(service):
                # Nothing to keep yet, and what is under way may swallow an exception.
                os._exit(0)
            raise SystemExit

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)


app.Beat = app.subclass_with_self(_Beat)


@signals.worker_process_shutdown.connect
def _run_exit_hooks(**kwargs: Any) -> None:
    """What other processes do when Python ends: those of a pool end without it."""
    exit_hooks.end()


@signals.worker_process_init.connect
def _end_with_worker(**kwargs: Any) -> None:
    """End when the worker is killed, in place of finishing what is sent to another one as well."""
    die_with_parent(signal.SIGTERM)


class HeartbeatStep(StartStopStep):
    """Sends a heartbeat every few seconds while the worker is connected to the broker.

    Celery's own heartbeats would do, but a worker that sends one while Redis is away waits for it
    without end, and isn't ended by SIGTERM: workers run without them (``backend.serve``).
    """

    requires = ("celery.worker.consumer:Connection",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self._entry: Any = None

    def start(self, consumer: Any) -> None:
        send = partial(send_heartbeat, consumer)
        send()
        self._entry = consumer.timer.call_repeatedly(_HEARTBEAT_INTERVAL, send)

    def stop(self, consumer: Any) -> None:
        if self._entry is not None:
            consumer.timer.cancel(self._entry)
            self._entry = None
        # Until it is connected again, which takes as long as Redis is away.
        liveness.pause()

    shutdown = stop


app.steps["consumer"].add(HeartbeatStep)


def send_heartbeat(consumer: Any) -> None:
    """Say that the worker of this process lives, and renew its hold on the tasks that it has taken:
    Redis gives those of a worker that was killed to others. Never raises because of Redis."""
    from django.conf import settings

    from backend.kernel.process import heartbeats, reports

    liveness.leave()
    own = (heartbeats.JOBS, heartbeats.CHAIN, heartbeats.BACKFILL)
    names = [settings.PROCESS if settings.PROCESS in own else heartbeats.WORKER]
    if settings.PROFILE == "small" and names == [heartbeats.WORKER]:
        names += [heartbeats.CHAIN, heartbeats.BACKFILL]
    try:
        with _redis() as client:
            for name in names:
                heartbeats.note(client, name)
            taken.renew(client, consumer)
            reports.send(client)
    except redis.RedisError:
        return  # Celery itself reports that Redis is away, and connects again

"""``/health``: the process answers. ``/ready``: everything that it needs answers too.

Neither needs a header. ``/health`` touches nothing. ``/ready`` checks PostgreSQL and Redis at the
same time, returns within about two seconds also when both of them hang, and names what fails,
without its address.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from time import monotonic, time
from typing import Final, Literal, TypedDict

import msgspec
import psycopg
import redis
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from psycopg.pq import DiagnosticField, ExecStatus

from backend.kernel.connections import postgres
from backend.kernel.connections.redis import asking_once
from backend.kernel.process import liveness, restart_report
from backend.kernel.process.heartbeats import (
    BACKFILL,
    BEAT,
    CHAIN,
    JOBS,
    REALTIME,
    WORKER,
    latest_of,
)
from backend.logs.setup import get_logger
from backend.openapi import answer, describes

PATIENCE: Final = 2
"""Seconds that PostgreSQL and Redis have, both together, for a connection and the answers."""
_SILENCE: Final = {WORKER: 20, JOBS: 20, CHAIN: 20, BACKFILL: 20, BEAT: 60, REALTIME: 20}
_MOST_BYTES = 4096
# Their absence delays jobs, schedules, chain records and sockets, and stops no request.
_SHOWN_ONLY = frozenset({JOBS, CHAIN, BACKFILL, BEAT, REALTIME})

_UNREACHABLE: Final = "unreachable"
_UNDEFINED_TABLE: Final = b"42P01"

log = get_logger("ready")
_encode = msgspec.json.encode


class _Healthy(TypedDict):
    status: Literal["ok"]


@describes(
    "health",
    "Whether the service answers",
    response=answer("The service answers.", _Healthy),
    tag="Service",
    is_public=True,
    can_refuse=False,
)
def health(request: HttpRequest) -> HttpResponse:
    """Answer ``/health`` (docs/operating.md)."""
    return _answer(request, 200, b'{"status":"ok"}')


def ready(request: HttpRequest) -> HttpResponse:
    """200 when the service can do its work, else 503 and the names of what it lacks."""
    states = _states()
    failing = [name for name, state in states.items() if state != "ok" and name not in _SHOWN_ONLY]
    # What is restarted again and again may answer nevertheless, most of the time.
    restarted = restart_report.read(settings.DATA_FOLDER.reports)
    states |= {process.name: "fails again and again" for process in restarted if process.is_failing}
    body: dict[str, object] = {"status": "ok", "checks": states}
    if failing:
        body = {"code": 1, "error": f"not ready: {', '.join(failing)}", "checks": states}
    return _answer(request, 503 if failing else 200, _encode(body))


def _answer(request: HttpRequest, status: int, body: bytes) -> HttpResponse:
    if not _is_get(request):
        refusal = _encode({"code": 108, "error": f"method {request.method} is not allowed here"})
        answer = HttpResponse(refusal, status=405, content_type="application/json")
        answer.headers["Allow"] = "GET, HEAD"
        return answer
    answer = HttpResponse(body, status=status, content_type="application/json")
    answer.headers["Cache-Control"] = "no-store"
    return answer


class _Sent(msgspec.Struct):
    method: str = msgspec.field(default="", name="_method")


def _is_get(request: HttpRequest) -> bool:
    """Whether this is a ``GET``, also as SDKs send it: a ``POST`` with the method in its body."""
    if request.method != "POST":
        return request.method in ("GET", "HEAD")
    try:
        return msgspec.json.decode(request.read(_MOST_BYTES), type=_Sent).method == "GET"
    except (msgspec.DecodeError, OSError):
        return False


@lru_cache(maxsize=1)
def _expected_migrations() -> frozenset[tuple[str, str]]:
    from django.db.migrations.loader import MigrationLoader

    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.nodes)


def _states() -> dict[str, str]:
    """The state of each dependency, by name."""
    _expected_migrations()  # reads all migrations the first time, which isn't PostgreSQL's time
    deadline = monotonic() + PATIENCE
    servers = {
        "database": _Check({"database": _UNREACHABLE, "migrations": _UNREACHABLE}, _check_database),
        "redis": _Check(dict.fromkeys(("redis", *_SILENCE), _UNREACHABLE), _check_redis),
    }
    for check in servers.values():
        check.start(deadline)
    states: dict[str, str] = {}
    for name, check in servers.items():
        states |= check.result(deadline)
        if check.error:
            log.warning("a dependency doesn't answer", dependency=name, error=check.error)
    handoff = settings.REALTIME_HANDOFF
    if handoff and states[REALTIME] == "ok" and not Path(handoff).is_socket():
        states[REALTIME] = "its socket is missing"
    if liveness.is_hanging():
        states["web"] = "takes no requests"
    return states


class _Check:
    """A check in a thread, since resolving a host name has no timeout."""

    def __init__(
        self, states: Mapping[str, str], work: Callable[[dict[str, str], float], None]
    ) -> None:
        self._states = dict(states)
        self._work = work
        self.error = f"there is no answer within {PATIENCE} seconds"

    def start(self, deadline: float) -> None:
        self._thread = threading.Thread(target=self._run, args=[deadline], daemon=True)
        self._thread.start()

    def result(self, deadline: float) -> dict[str, str]:
        """The states until now, at the deadline at the latest."""
        self._thread.join(max(0.0, deadline - monotonic()))
        return dict(self._states)

    def _run(self, deadline: float) -> None:
        try:
            self._work(self._states, deadline)
            self.error = ""
        except (psycopg.Error, redis.RedisError, OSError) as error:
            self.error = str(error)


def _check_database(states: dict[str, str], deadline: float) -> None:
    # A connection for this request alone: Django's would wait as long as a request may.
    with closing(postgres.connect(PATIENCE)) as connection:
        states["database"] = "ok"
        applied = _applied_migrations(connection, deadline)
    states["migrations"] = "ok" if _expected_migrations() <= applied else "missing"


def _applied_migrations(connection: psycopg.Connection, deadline: float) -> set[tuple[str, str]]:
    """The applied migrations. Raises ``TimeoutError`` at the deadline.

    ``execute`` would wait without end for a server that hangs: ``statement_timeout`` is the
    server's.
    """
    server = connection.pgconn
    server.send_query(b"SELECT app, name FROM django_migrations")
    while server.flush():
        _wait(server.socket, select.POLLOUT | select.POLLIN, deadline)
        server.consume_input()
    while server.is_busy():
        _wait(server.socket, select.POLLIN, deadline)
        server.consume_input()
    result = server.get_result()
    if result is None or result.error_field(DiagnosticField.SQLSTATE) == _UNDEFINED_TABLE:
        return set()
    if result.status != ExecStatus.TUPLES_OK:
        raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
    rows = range(result.ntuples)
    return {
        ((result.get_value(row, 0) or b"").decode(), (result.get_value(row, 1) or b"").decode())
        for row in rows
    }


def _wait(file: int, events: int, deadline: float) -> None:
    # Not select.select, which takes no file with a number from 1024 on.
    poll = select.poll()
    poll.register(file, events)
    if not poll.poll(max(0.0, deadline - monotonic()) * 1000):
        raise TimeoutError(f"there is no answer within {PATIENCE} seconds")


def _check_redis(states: dict[str, str], deadline: float) -> None:
    with asking_once(settings.REDIS_URL, max(0.1, deadline - monotonic())) as client:
        heartbeats = latest_of(client, [*_SILENCE])
    now = time()
    fresh = {"redis": "ok"}
    for name, silence in _SILENCE.items():
        heartbeat = heartbeats[name]
        is_alive = heartbeat is not None and now - heartbeat <= silence
        fresh[name] = "ok" if is_alive else "not heard from"
    states |= fresh

"""``/health``: the process answers. ``/ready``: everything that it needs answers too.

Neither needs a header. ``/health`` touches nothing; ``/ready`` asks each dependency, waits for
none of them longer than two seconds, and names those that fail, without saying where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from time import time

import msgspec
import psycopg
import redis
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from backend import own_connection
from backend.heartbeats import BACKFILL, BEAT, CHAIN, JOBS, REALTIME, WORKER, latest
from backend.logs import get_logger
from backend.processes import report
from backend.redis_clients import asking_once

_PATIENCE = 2  # seconds
_WORKER_SILENCE = 20
_BEAT_SILENCE = 60
_MOST_BYTES = 4096
# Their absence delays jobs, schedules, chain records and sockets, and stops no request.
_SHOWN_ONLY = frozenset({"jobs", "chain", "backfill", "beat", "realtime"})

log = get_logger("ready")
_encode = msgspec.json.encode


def health(request: HttpRequest) -> HttpResponse:
    """Endpoint 7 of the specification."""
    return _answer(request, 200, b'{"status":"ok"}')


def ready(request: HttpRequest) -> HttpResponse:
    """200 when the service can do its work, else 503 and the names of what it lacks."""
    states = {name: _state(name, check) for name, check in CHECKS.items()}
    failing = [name for name, state in states.items() if state != "ok" and name not in _SHOWN_ONLY]
    # What is restarted again and again may answer nevertheless, most of the time.
    restarted = report.read(settings.DATA_FOLDER.reports)
    states |= {one.name: "fails again and again" for one in restarted if one.is_failing}
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


def _state(name: str, check: Callable[[], str]) -> str:
    try:
        return check()
    except (psycopg.Error, redis.RedisError, OSError) as error:
        log.warning("a dependency doesn't answer", dependency=name, error=str(error))
        return "unreachable"


def _database() -> str:
    # One of its own: the request's would wait as long as a request may.
    with own_connection.connect(_PATIENCE) as connection:
        connection.execute("SELECT 1")
    return "ok"


@lru_cache(maxsize=1)
def _known_migrations() -> frozenset[tuple[str, str]]:
    from django.db.migrations.loader import MigrationLoader

    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.nodes)


def _migrations() -> str:
    with own_connection.connect(_PATIENCE) as connection:
        try:
            rows = connection.execute("SELECT app, name FROM django_migrations").fetchall()
        except psycopg.errors.UndefinedTable:
            return "missing"
    return "ok" if _known_migrations() <= set(rows) else "missing"


def _client() -> redis.Redis:
    return asking_once(settings.REDIS_URL, _PATIENCE)


def _redis() -> str:
    with _client() as client:
        client.ping()
    return "ok"


def _heard(which: str, silence: float) -> str:
    with _client() as client:
        seen = latest(client, which)
    return "ok" if seen is not None and time() - seen <= silence else "not heard from"


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "redis": _redis,
    "worker": lambda: _heard(WORKER, _WORKER_SILENCE),
    "jobs": lambda: _heard(JOBS, _WORKER_SILENCE),
    "chain": lambda: _heard(CHAIN, _WORKER_SILENCE),
    "backfill": lambda: _heard(BACKFILL, _WORKER_SILENCE),
    "beat": lambda: _heard(BEAT, _BEAT_SILENCE),
    "realtime": lambda: _heard(REALTIME, _WORKER_SILENCE),
}

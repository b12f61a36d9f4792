"""The application's rules and limits for the HTTP server, from the settings."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from django.conf import settings
from django.db import connections

from backend.http import authentication
from backend.http.bodies import limits as body_limits
from backend.http.context import client_address, is_proxy
from backend.kernel.process.stacks import is_called_by
from backend.server.context import Rules
from backend.server.limits import Limits
from backend.server.requests.request import Application
from backend.settings.conf import service_settings
from functions.runtime.registry import registry
from functions.runtime.runner import time_limit_of
from objects.files.uploads import incoming_folder

_MEBIBYTE: Final = 1024 * 1024
_INLINE: Final = ("/health",)
_APART: Final = ("/ready", "/metrics")
_REMAINDER: Final = 30.0
"""Seconds that a request may take besides its functions, such as for webhooks and files."""
_ENGINE_CLIENTS: Final = ("psycopg", "psycopg_binary", "redis", "objects.database")


def rules(application: Application) -> Rules:
    """Return the functions that the server calls for each connection and request."""
    return Rules(
        application=application,
        is_proxy=is_proxy,
        client_address=client_address,
        body_limit=body_limits.body_limit,
        answers_too_large=body_limits.answers_too_large,
        inline=_with_mount_path(_INLINE),
        apart=_with_mount_path(_APART),
        spool_folder=incoming_folder,
        realtime=settings.REALTIME_HANDOFF,
        end_thread=connections.close_all,
        is_working=is_working,
        prepare=authentication.of_request,
    )


def is_working(thread: int, seconds: float) -> bool:
    """Whether a thread may have been running a request for so long: it takes what functions may
    take, or waits for PostgreSQL or Redis. That an engine is away ends no process."""
    return seconds < _longest_request() or is_called_by(thread, _ENGINE_CLIENTS)


def _longest_request() -> float:
    functions, triggers = registry.functions.values(), registry.triggers.values()
    limits = {None, *(f.time_limit for f in functions), *(t.time_limit for t in triggers)}
    seconds = [*map(time_limit_of, limits)]
    return max(seconds) + _REMAINDER if all(seconds) else inf


def limits() -> Limits:
    """Return the limits that the settings set; the others keep their defaults."""
    return Limits(
        max_connections=service_settings.HTTP_MAX_CONNECTIONS,
        max_per_address=service_settings.HTTP_MAX_PER_ADDRESS,
        head_time=service_settings.HTTP_HEAD_TIMEOUT,
        idle_time=service_settings.HTTP_IDLE_TIMEOUT,
        min_rate=service_settings.HTTP_MIN_RATE,
        # Four of the largest results: as UTF-8, a character has up to four bytes.
        unsent=max(settings.MEMORY_LIMIT * _MEBIBYTE // 8, 4 * service_settings.MAX_RESPONSE_SIZE),
    )


def _with_mount_path(paths: Iterable[str]) -> frozenset[str]:
    """The paths, at the root and below the mount path."""
    return frozenset([*paths, *(service_settings.MOUNT_PATH + path for path in paths)])

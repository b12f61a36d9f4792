"""Whether the PostgreSQL and Redis that ``DATABASE_URL`` and ``REDIS_URL`` name can be used.

Processes check this once, when they start. The messages name the variable, and host and port if
the URL is well-formed: in a malformed one, a part of the password can be where the host is.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from backend.settings.environment import BadSetting

PATIENCE: Final = 3.0
"""Seconds that both servers have, together, to accept a connection and to answer."""

_REFUSED = re.compile(
    r"failed: (?P<severity>[A-Z]+:\s*)?(?!connection to)(?P<reason>[^\n]+)$", re.MULTILINE
)
_SILENT = f"there is no answer within {PATIENCE:.0f} seconds"
_UNRESOLVED = "its host name can't be resolved"


def check_servers(settings: Any) -> None:
    """Raise ``BadSetting`` if a server that isn't embedded can't be used.

    ``settings`` is ``backend.settings.django`` or Django's. Returns or raises within ``PATIENCE``
    seconds, also where a name server or a firewall doesn't answer.
    """
    checks: dict[str, Callable[[], str]] = {}
    if not settings.EMBEDDED_POSTGRES:
        checks["DATABASE_URL"] = lambda: _postgres_problem(settings.DATABASE_URL)
    if not settings.EMBEDDED_REDIS:
        checks["REDIS_URL"] = lambda: _redis_problem(settings.REDIS_URL)
    problems = _run(checks)
    if problems:
        raise BadSetting(
            "\n".join(f"{name} can't be used: {problem}." for name, problem in problems.items())
        )


def _run(checks: dict[str, Callable[[], str]]) -> dict[str, str]:
    """The problems by variable. Threads, since resolving a name has no timeout."""
    problems = dict.fromkeys(checks, _SILENT)

    def work(name: str) -> None:
        try:
            problems[name] = checks[name]()
        except Exception:  # the drivers' own, for parameters of a URL that they can't use
            problems[name] = _INVALID

    threads = [threading.Thread(target=work, args=[name], daemon=True) for name in checks]
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return {name: problem for name, problem in problems.items() if problem}


def _postgres_problem(url: str) -> str:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=int(PATIENCE), autocommit=True).close()
    except psycopg.errors.ConnectionTimeout:
        return _SILENT
    except psycopg.Error as error:
        text = str(error)
        if "resolve host" in text or "translate host name" in text:
            return _UNRESOLVED
        match = _REFUSED.search(text)
        if match is None:
            return _INVALID
        place, reason = _postgres_place(url), match["reason"].strip().rstrip(".")
        if match["severity"]:  # the server's message, not libpq's
            return f"PostgreSQL{place and f' at {place}'} answers: {reason}"
        return _unconnected(place, reason)
    except (OSError, ValueError) as error:
        return _system_problem(error)
    return ""


def _redis_problem(url: str) -> str:
    import redis

    from backend.kernel.connections.redis import asking_once

    try:
        with asking_once(url, PATIENCE) as client:
            client.ping()
    except redis.BusyLoadingError:
        return ""  # the right server, which is reading its data
    except redis.AuthenticationError:
        return "Redis rejects its user name or password"
    except redis.TimeoutError:
        return _SILENT
    except redis.ConnectionError as error:
        cause = error.__cause__ or error.__context__
        problem = "the server closes the connection" if cause is None else _system_problem(cause)
        is_reason = problem in _REASONS.values()
        return _unconnected(_redis_place(url), problem) if is_reason else problem
    except redis.ResponseError:
        return "Redis rejects the connection: check its password and the number of the database"
    except (redis.RedisError, OSError, ValueError) as error:
        return _system_problem(error)
    return ""


def _unconnected(place: str, reason: str) -> str:
    return f"no connection to {place}: {reason}" if place else reason


def _postgres_place(url: str) -> str:
    """Host and port, or the folder of the socket; "" if a part of the password may be in them."""
    from psycopg.conninfo import conninfo_to_dict

    if not _is_well_formed(url):
        return ""
    parts = conninfo_to_dict(url)
    hosts = str(parts.get("host") or "").split(",")
    ports = str(parts.get("port") or 5432).split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    return ", ".join(
        host if not host or host.startswith("/") else f"{host}:{port or 5432}"
        for host, port in zip(hosts, ports, strict=False)
    )


def _redis_place(url: str) -> str:
    """Host and port, or the path of the socket; "" if a part of the password may be in them."""
    if not _is_well_formed(url):
        return ""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


def _is_well_formed(url: str) -> bool:
    """Whether no unescaped character of a password can have ended the part with the host early."""
    authority, _, path = url.partition("://")[2].partition("/")
    return authority.count("@") <= 1 and "@" not in path and not set(authority) & set("?#")


_INVALID = "it isn't a valid address of such a server"


def _system_problem(error: BaseException) -> str:
    if isinstance(error, socket.gaierror):
        return _UNRESOLVED
    if isinstance(error, TimeoutError):
        return _SILENT
    if isinstance(error, OSError) and error.errno in _REASONS:
        return _REASONS[error.errno]
    return _INVALID


_REASONS: Final = {
    code: os.strerror(code).lower()
    for code in range(1, 134)
    if not os.strerror(code).startswith("Unknown")
}

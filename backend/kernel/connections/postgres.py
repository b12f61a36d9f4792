"""A connection to PostgreSQL beside Django's: for what has its own patience, or holds a lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from django.conf import settings

_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def connect(
    patience: int, session: Mapping[str, object] | None = None, **parameters: Any
) -> psycopg.Connection:
    """Return a new connection in autocommit mode. It waits at most ``patience`` seconds for the
    server
    and for each statement. ``session`` are settings of the session, ``parameters`` those of libpq.
    Raises ``psycopg.OperationalError``."""
    entry = settings.DATABASES["default"]
    address = {name: entry[key] for key, name in _NAMES.items() if entry[key]}
    own = {"statement_timeout": patience * 1000, **(session or {})}
    # Of a setting that is given twice, the later value counts.
    options = " ".join(
        [entry["OPTIONS"].get("options", ""), *(f"-c {name}={own[name]}" for name in own)]
    )
    parameters_of_libpq = {**entry["OPTIONS"], **address, "connect_timeout": patience, **parameters}
    return psycopg.connect(**{**parameters_of_libpq, "options": options.strip()}, autocommit=True)

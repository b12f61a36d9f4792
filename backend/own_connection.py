"""A connection to PostgreSQL beside Django's: for what has its own patience, or holds a lock."""

from __future__ import annotations

from typing import Any

import psycopg
from django.conf import settings

_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def connect(patience: int, **parameters: Any) -> psycopg.Connection:
    """A new connection that commits by itself. It waits at most ``patience`` seconds for the server
    and for each statement. Raises ``psycopg.OperationalError``."""
    entry = settings.DATABASES["default"]
    address = {name: entry[key] for key, name in _NAMES.items() if entry[key]}
    limits = {
        "connect_timeout": patience,
        "options": f"-c statement_timeout={patience * 1000}",
    }
    return psycopg.connect(
        **{**entry["OPTIONS"], **limits, **address, **parameters}, autocommit=True
    )

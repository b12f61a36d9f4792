"""The addresses of PostgreSQL and Redis, as each library wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from backend.environment import BadSetting

CONNECT_TIMEOUT = 10


def django_database(url: str, session: Mapping[str, object], name: str) -> dict[str, Any]:
    """An entry of ``DATABASES`` from a URL in libpq's own form: sockets, ``sslmode`` and all."""
    try:
        given = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except ProgrammingError:
        raise BadSetting(
            "DATABASE_URL must be a PostgreSQL address, such as "
            "postgresql://user:password@host:5432/database."
        ) from None
    if not given.get("dbname"):
        raise BadSetting("DATABASE_URL must end with the name of a database.")
    limits = " ".join(f"-c {key}={value}" for key, value in session.items())
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": name,
        "options": f"{given.pop('options', '')} {limits}".strip(),
    }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given.pop("dbname"),
        "USER": given.pop("user", ""),
        "PASSWORD": given.pop("password", ""),
        "HOST": given.pop("host", ""),
        "PORT": given.pop("port", ""),
        "OPTIONS": options | given,
    }


def celery_broker(url: str) -> str:
    """Celery's spelling of a Redis URL: it knows sockets by another scheme."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={database}"

"""The addresses of PostgreSQL and Redis, as each library wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from backend.settings.environment import BadSetting

CONNECT_TIMEOUT = 10


def with_password(url: str, name: str, password: str) -> str:
    """The URL of the setting ``name`` with a password of any characters in it."""
    if not url or not password:
        return url
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if ":" in user:
        raise BadSetting(f"{name} has a password already: leave out that one or the other.")
    if at == "" and parts.scheme.startswith("postgres"):
        raise BadSetting(f"{name} names no user, whom the password belongs to.")
    return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl()


def django_database(url: str, session: Mapping[str, object], name: str) -> dict[str, Any]:
    """An entry of ``DATABASES`` from a URL in libpq's own form: sockets, ``sslmode`` and all."""
    try:
        parameters = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except ProgrammingError:
        raise BadSetting(
            "DATABASE_URL must be a PostgreSQL address, such as "
            "postgresql://user:password@host:5432/database."
        ) from None
    if any("@" in parameters.get(part, "") for part in ("host", "dbname")):
        raise BadSetting(
            "DATABASE_URL has a password with characters that end it: write @ as %40, / as %2F and "
            ": as %3A, or set DATABASE_PASSWORD."
        )
    if not parameters.get("dbname"):
        raise BadSetting("DATABASE_URL must end with the name of a database.")
    limits = " ".join(f"-c {key}={value}" for key, value in session.items())
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": name,
        "options": f"{parameters.pop('options', '')} {limits}".strip(),
    }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parameters.pop("dbname"),
        "USER": parameters.pop("user", ""),
        "PASSWORD": parameters.pop("password", ""),
        "HOST": parameters.pop("host", ""),
        "PORT": parameters.pop("port", ""),
        "OPTIONS": options | parameters,
    }


def celery_broker(url: str) -> str:
    """Celery's spelling of a Redis URL: it knows sockets by another scheme."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"

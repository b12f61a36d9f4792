"""Sessions: a token that its bearer keeps, and a row that says whose it is.

The token is 128 random bits; the database has its hash, so a copy of the database signs no one
in. A session counts until it expires or its object is removed, in every process at once: each
request asks the database (one statement, with the version of the roles).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from backend.kernel.errors import InvalidSessionToken
from backend.kernel.json_types import Json
from backend.settings.conf import service_settings
from objects.core.values import wire_time
from objects.database.statements import fetch, fetch_rows, fetch_value
from objects.sql.rows import NOW
from objects.users import roles

_TOKEN = re.compile(r"r:[0-9a-f]{32}\Z")


@dataclass(frozen=True)
class Proven:
    """What a token proves: the session, its user, and the roles that the user holds.

    It does so for ``seconds_left``, unless the session ends earlier; None: until it ends.
    """

    session_id: str
    user_id: str
    roles: frozenset[str]
    seconds_left: float | None = None


class Bearer(NamedTuple):
    """The session and the user that a token belongs to."""

    session_id: str
    user_id: str


# SQL: every request with a session runs one of these.
_BY_TOKEN: Final = """
SELECT s.object_id, s."user", COALESCE(v.version, 0),
       extract(epoch FROM s.expires_at - statement_timestamp())
FROM objects_session s LEFT JOIN objects_role_version v ON v.id = 1
WHERE s.token_hash = decode(%(token_hash)s, 'hex') AND s."user" IS NOT NULL
"""
_BY_HASHES: Final = """
SELECT encode(s.token_hash, 'hex'), s.object_id, s."user",
       extract(epoch FROM s.expires_at - statement_timestamp())
FROM objects_session s
WHERE s."user" IS NOT NULL
AND s.token_hash IN (SELECT decode(h, 'hex') FROM unnest(%(hashes)s::text[]) h)
"""


class _Session(NamedTuple):
    session_id: str
    user_id: str
    role_version: str
    seconds_left: float | None


class _HashedSession(NamedTuple):
    token_hash: str
    session_id: str
    user_id: str
    seconds_left: float | None


def new_token() -> str:
    """A session token."""
    return f"r:{secrets.token_hex(16)}"


def token_hash(token: str) -> str:
    """What the database has of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def expiry() -> datetime:
    """When a session that begins now expires."""
    return datetime.now(UTC) + timedelta(seconds=service_settings.SESSION_LENGTH)


def created_with(action: str, provider: str | None) -> dict[str, Json]:
    """The ``createdWith`` of a session: ``signup``, ``login``, ``create`` or ``upgrade``."""
    fields: dict[str, Json] = {"action": action}
    return fields if provider is None else {**fields, "authProvider": provider}


def authenticate(token: str) -> Proven:
    """What a token proves. Raises ``InvalidSessionToken`` for one that is unknown or expired."""
    if not _TOKEN.match(token):
        raise InvalidSessionToken("Invalid session token")
    rows = fetch_rows(_Session, _BY_TOKEN, {"token_hash": token_hash(token)}, prepare=True)
    if not rows:
        raise InvalidSessionToken("Invalid session token")
    row = rows[0]
    if row.seconds_left is not None:
        _check_expiry(row.session_id, row.seconds_left)
    held = roles.held_by(row.user_id, row.role_version)
    return Proven(row.session_id, row.user_id, held, _left(row.seconds_left))


def bearer(token: str, *, may_be_expired: bool = False) -> Bearer:
    """Return whose a token is, without using the session. Raises ``InvalidSessionToken``."""
    rows = (
        fetch_rows(_HashedSession, _BY_HASHES, {"hashes": [token_hash(token)]}, prepare=True)
        if _TOKEN.match(token)
        else []
    )
    if not rows:
        raise InvalidSessionToken("Invalid session token")
    row = rows[0]
    left = _left(row.seconds_left)
    if left is not None and left <= 0 and not may_be_expired:
        raise InvalidSessionToken("Session token is expired.")
    return Bearer(row.session_id, row.user_id)


def prove_many(hashes: Collection[str]) -> dict[str, Proven]:
    """What tokens prove now, by their hashes (``token_hash``); without those that prove nothing.

    Two statements, however many there are. Being asked about isn't being used: no session is
    extended.
    """
    rows = fetch_rows(_HashedSession, _BY_HASHES, {"hashes": list(hashes)}, prepare=True)
    held = roles.held_by_many({row.user_id for row in rows})
    return {
        row.token_hash: Proven(
            row.session_id, row.user_id, held[row.user_id], _left(row.seconds_left)
        )
        for row in rows
        if row.seconds_left is None
        or row.seconds_left > 0
        or not service_settings.EXPIRE_INACTIVE_SESSIONS
    }


def _left(seconds: float | None) -> float | None:
    return seconds if service_settings.EXPIRE_INACTIVE_SESSIONS else None


def _check_expiry(session_id: str, seconds_left: float) -> None:
    settings = service_settings
    if seconds_left <= 0 and settings.EXPIRE_INACTIVE_SESSIONS:
        raise InvalidSessionToken("Session token is expired.")
    if settings.EXTEND_SESSION_ON_USE and seconds_left < settings.SESSION_LENGTH / 2:
        # Two requests at once both write the same; the session is never shortened.
        fetch(
            "UPDATE objects_session SET expires_at = GREATEST(expires_at, %(expiry)s),"
            f" updated_at = {NOW}"
            " WHERE object_id = %(session_id)s",
            {"expiry": wire_time(expiry()), "session_id": session_id},
            prepare=True,
        )


def end(session_id: str) -> None:
    """End a session; nothing happens if it has ended already."""
    fetch(
        "DELETE FROM objects_session WHERE object_id = %(session_id)s",
        {"session_id": session_id},
        prepare=True,
    )


def end_all_of(user_id: str) -> None:
    """End all sessions of a user."""
    fetch(
        'DELETE FROM objects_session WHERE "user" = %(user_id)s', {"user_id": user_id}, prepare=True
    )


def end_all() -> None:
    """End all sessions of all users."""
    fetch("DELETE FROM objects_session", {}, prepare=True)


# -- Expired sessions -----------------------------------------------------------------------------

_REMOVE_EXPIRED: Final = """
DELETE FROM objects_session WHERE object_id = ANY (
    SELECT object_id FROM objects_session WHERE expires_at < statement_timestamp()
    LIMIT %(most)s FOR UPDATE SKIP LOCKED)
RETURNING 1
"""
_COUNT_EXPIRED: Final = """
SELECT count(*) FROM objects_session
WHERE expires_at < statement_timestamp() - %(seconds)s * interval '1 second'
"""


def remove_expired(most: int) -> int:
    """Remove up to so many expired sessions; return how many there were.

    It may run several times at once.
    """
    return len(fetch(_REMOVE_EXPIRED, {"most": most}, prepare=False))


def count_expired(age: timedelta) -> int:
    """Return the number of sessions that expired at least so long ago."""
    params = {"seconds": age.total_seconds()}
    return fetch_value(int, _COUNT_EXPIRED, params, prepare=False) or 0

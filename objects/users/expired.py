"""Rows that nothing can use any more: sessions, mailed tokens and challenges that have expired."""

from __future__ import annotations

from backend.settings.conf import service_settings
from objects.database.statements import fetch
from objects.users.passkeys import challenges

# One statement removes no more, so that nobody waits long for the locks of its rows.
_AT_ONCE = 1000

_SESSIONS = (
    "DELETE FROM objects_session WHERE object_id = ANY (SELECT object_id FROM objects_session"
    " WHERE expires_at < statement_timestamp() LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1"
)
_MAIL_TOKENS = (
    "DELETE FROM objects_mail_token WHERE token_hash = ANY (SELECT token_hash"
    " FROM objects_mail_token WHERE expires_at < statement_timestamp() LIMIT %s"
    " FOR UPDATE SKIP LOCKED) RETURNING 1"
)


def remove_expired() -> int:
    """Remove what has expired; how many rows that were. It may run twice at once."""
    statements = [_MAIL_TOKENS, challenges.EXPIRED]
    if service_settings.EXPIRE_INACTIVE_SESSIONS:
        statements.append(_SESSIONS)
    return sum(_remove(statement) for statement in statements)


def _remove(statement: str) -> int:
    removed = 0
    while True:
        rows = len(fetch(statement, (_AT_ONCE,), prepare=False))
        removed += rows
        if rows < _AT_ONCE:
            return removed

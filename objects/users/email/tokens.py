"""Tokens that are mailed to users: what proves that somebody reads the mail of an address.

A token is 256 random bits; the database has its hash. It is bound to a user, to a purpose and to
the address that it was sent to: once the user has another address, it is worth nothing. A user
has at most one of each purpose, the newest. A token is used once, however many try at the same
moment: using it deletes its row.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from backend.kernel.errors import InvalidLink
from backend.settings.conf import service_settings
from objects.database import maintenance
from objects.database.statements import fetch
from objects.users.models import MailToken

VERIFY = MailToken.Purpose.VERIFY_EMAIL.value
RESET = MailToken.Purpose.RESET_PASSWORD.value

_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}\Z")


@dataclass(frozen=True)
class Holder:
    """Whom a token was sent to. ``by_email`` is False where a user without an address is reached
    by a user name that is one."""

    user_id: str
    username: str
    address: str
    by_email: bool


def validity(purpose: str) -> int:
    """How long a token is good for, in seconds."""
    settings = service_settings
    return settings.EMAIL_TOKEN_VALIDITY if purpose == VERIFY else settings.RESET_TOKEN_VALIDITY


def issue(user_id: str, purpose: str, address: str) -> str | None:
    """A new token in place of the user's former one; None if the user is gone.

    Raises ``UnderMaintenance``.
    """
    token = secrets.token_urlsafe(_BYTES)
    with maintenance.writing():
        if not _lock(user_id):
            return None
        forget(user_id, purpose)
        fetch(
            "INSERT INTO objects_mail_token"
            " (token_hash, user_id, purpose, email, created_at, expires_at)"
            " SELECT decode(%s, 'hex'), %s, %s, %s, t.now, t.now + %s * interval '1 second'"
            " FROM (SELECT statement_timestamp() AS now) t",
            (_hash(token), user_id, purpose, address, validity(purpose)),
            prepare=True,
        )
    return token


# A user without an address may have a user name that is one; it gets resets, as with Parse.
_IS_GOOD = """
t.token_hash = decode(%s, 'hex') AND t.purpose = %s AND t.expires_at > statement_timestamp()
AND u.object_id = t.user_id
AND (u.email = t.email OR (u.email IS NULL AND u.username = t.email AND t.purpose = 'reset'))
"""
_FIND = f"""
SELECT u.object_id, COALESCE(u.username, ''), t.email, u.email IS NOT NULL
FROM objects_mail_token t, objects_user u WHERE {_IS_GOOD}
"""
_USE = f"DELETE FROM objects_mail_token t USING objects_user u WHERE {_IS_GOOD} RETURNING 1"


def holder_of(token: object, purpose: str) -> Holder:
    """Whom a token was sent to, if it is good; it stays so. Raises ``InvalidLink``."""
    if not isinstance(token, str) or not _TOKEN.match(token):
        raise InvalidLink
    # By its hash the database finds it: what takes how long depends on nothing that is secret.
    rows = fetch(_FIND, (_hash(token), purpose), prepare=True)
    if not rows:
        raise InvalidLink
    user_id, username, address, by_email = rows[0]
    return Holder(user_id, username, address, by_email == "t")


def use(token: object, purpose: str) -> Holder:
    """Use a token up, in the caller's transaction. Raises ``InvalidLink``."""
    holder = holder_of(token, purpose)
    # The user's row first, in the order of a change of the user, which takes tokens away as well.
    _lock(holder.user_id)
    if not fetch(_USE, (_hash(str(token)), purpose), prepare=True):
        raise InvalidLink
    return holder


def forget(user_id: str, purpose: str | None = None) -> None:
    """Make the user's tokens worthless, all or those of one purpose."""
    fetch(
        "DELETE FROM objects_mail_token WHERE user_id = %s AND (%s::text IS NULL OR purpose = %s)",
        (user_id, purpose, purpose),
        prepare=True,
    )


def _lock(user_id: str) -> bool:
    statement = "SELECT 1 FROM objects_user WHERE object_id = %s FOR NO KEY UPDATE"
    return bool(fetch(statement, (user_id,), prepare=True))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()

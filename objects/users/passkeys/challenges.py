"""What authenticators are asked to sign, and the tokens by which clients come back with it.

A challenge and its token are 256 random bits each; of the token the database has the hash. A token
counts for ten minutes and once: using it deletes its row, so of requests that use it at the same
moment one finds it. Whoever asks again and again is stopped at so many open challenges of one
address, and what has expired is removed by those who ask, so the table stays as small as the
traffic of ten minutes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final, Literal

from backend.kernel.errors import RateLimited, ScriptFailed
from objects.database.statements import fetch

Purpose = Literal["register", "add", "log in"]

LIFETIME: Final = 600  # seconds
MOST_OPEN: Final = 100  # of one address
_BYTES = 32
_REMOVED_AT_ONCE = 20
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch
NAME: Final = "temporaryAuthenticationToken"


@dataclass(frozen=True, slots=True)
class Issued:
    """A challenge for a client, and the token that it comes back with."""

    challenge: bytes
    token: str


@dataclass(frozen=True, slots=True)
class Challenge:
    """What was asked for. ``user_id`` is whose passkey it is about, or will be; None where any
    passkey may sign in."""

    purpose: Purpose
    challenge: bytes
    username: str | None
    user_id: str | None
    invitation: str | None


EXPIRED: Final = """
DELETE FROM objects_passkey_challenge WHERE token_hash = ANY (
    SELECT token_hash FROM objects_passkey_challenge WHERE expires_at < statement_timestamp()
    LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1
"""
_ISSUE = """
INSERT INTO objects_passkey_challenge
    (token_hash, purpose, challenge, username, user_id, invitation, address, expires_at)
SELECT decode(%s, 'hex'), %s, decode(%s, 'hex'), %s, %s, %s, %s,
       statement_timestamp() + %s * interval '1 second'
WHERE (SELECT count(*) FROM objects_passkey_challenge
       WHERE address = %s AND address <> '' AND expires_at >= statement_timestamp()) < %s
RETURNING 1
"""


def issue(
    purpose: Purpose,
    *,
    username: str | None,
    user_id: str | None,
    address: str,
    invited: tuple[bytes, str] | None = None,
) -> Issued:
    """A new challenge; ``invited`` is that of a custodian, and what belongs to it.

    Raises ``RateLimited`` if too many of this client address are open.
    """
    fetch(EXPIRED, (_REMOVED_AT_ONCE,), prepare=True)
    challenge, invitation = invited or (secrets.token_bytes(_BYTES), None)
    issued = Issued(challenge, secrets.token_urlsafe(_BYTES))
    whose = (username, user_id, invitation, address)
    values = (_hash(issued.token), purpose, challenge.hex(), *whose)
    if not fetch(_ISSUE, (*values, LIFETIME, address, MOST_OPEN), prepare=True):
        raise RateLimited("Too many passkeys are being asked for from this address.")
    return issued


def find(token: str, *purposes: Purpose) -> Challenge:
    """What this token was given for; it isn't used by that.

    Raises ``ScriptFailed`` if it is unknown, used, expired or for something else.
    """
    rows = (
        fetch(
            "SELECT purpose, challenge, username, user_id, invitation"
            " FROM objects_passkey_challenge"
            " WHERE token_hash = decode(%s, 'hex') AND expires_at > statement_timestamp()",
            (_hash(token),),
            prepare=True,
        )
        if _TOKEN(token)
        else []
    )
    if not rows or rows[0][0] not in purposes:
        raise _unknown()
    purpose, challenge, username, user_id, invitation = rows[0]
    return Challenge(purpose, bytes.fromhex(challenge[2:]), username, user_id, invitation)


def use(token: str) -> None:
    """Use the token up: it counts for the first who does this. The others, who wait if that one's
    transaction is open, get ``ScriptFailed``; if it is rolled back, the token is unused again."""
    used = fetch(
        "DELETE FROM objects_passkey_challenge WHERE token_hash = decode(%s, 'hex')"
        " AND expires_at > statement_timestamp() RETURNING 1",
        (_hash(token),),
        prepare=True,
    )
    if not used:
        raise _unknown()


def spoil(token: str) -> None:
    """Let the token count no more, for it came with something wrong."""
    fetch(
        "DELETE FROM objects_passkey_challenge WHERE token_hash = decode(%s, 'hex')",
        (_hash(token),),
        prepare=True,
    )


def _unknown() -> ScriptFailed:
    return ScriptFailed(f"{NAME}: unknown, used before or expired")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

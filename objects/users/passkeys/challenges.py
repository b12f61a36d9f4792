"""What authenticators are asked to sign, and the tokens by which clients come back with it.

A challenge and its token are 256 random bits each; of the token the database has the hash. A token
counts for ten minutes and once: using it deletes its row, so of requests that use it at the same
moment one finds it. A client that repeats requests is stopped at so many open challenges of one
address, and what has expired is removed by those who ask, so the table stays as small as the
traffic of ten minutes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final, Literal, cast

from django.db.models.functions import Now

from backend.kernel.errors import RateLimited, ScriptFailed
from objects.database.orm import orm_queries
from objects.database.statements import fetch
from objects.users.passkeys.models import PasskeyChallenge

Purpose = Literal["register", "add", "log in", "staff add", "staff log in"]

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


# SQL for what runs at every request for a challenge: its limit is part of the insert.
_REMOVE_EXPIRED = """
DELETE FROM objects_passkey_challenge WHERE token_hash = ANY (
    SELECT token_hash FROM objects_passkey_challenge WHERE expires_at < statement_timestamp()
    LIMIT %(most)s FOR UPDATE SKIP LOCKED) RETURNING 1
"""
_ISSUE = """
INSERT INTO objects_passkey_challenge
    (token_hash, purpose, challenge, username, user_id, invitation, address, expires_at)
SELECT decode(%(token_hash)s, 'hex'), %(purpose)s, decode(%(challenge)s, 'hex'), %(username)s,
       %(user_id)s, %(invitation)s, %(address)s::text,
       statement_timestamp() + %(lifetime)s * interval '1 second'
WHERE (SELECT count(*) FROM objects_passkey_challenge
       WHERE address = %(address)s::text AND address <> ''
       AND expires_at >= statement_timestamp()) < %(most_open)s
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
    fetch(_REMOVE_EXPIRED, {"most": _REMOVED_AT_ONCE}, prepare=True)
    challenge, invitation = invited or (secrets.token_bytes(_BYTES), None)
    issued = Issued(challenge, secrets.token_urlsafe(_BYTES))
    params = {
        "token_hash": _hash(issued.token).hex(),
        "purpose": purpose,
        "challenge": challenge.hex(),
        "username": username,
        "user_id": user_id,
        "invitation": invitation,
        "address": address,
        "lifetime": LIFETIME,
        "most_open": MOST_OPEN,
    }
    if not fetch(_ISSUE, params, prepare=True):
        raise RateLimited("Too many passkeys are being asked for from this address.")
    return issued


def find(token: str, *purposes: Purpose) -> Challenge:
    """What this token was given for; it isn't used by that.

    Raises ``ScriptFailed`` if it is unknown, used, expired or for something else.
    """
    if not _TOKEN(token):
        raise _unknown()
    with orm_queries():
        row = PasskeyChallenge.objects.filter(
            token_hash=_hash(token), expires_at__gt=Now(), purpose__in=purposes
        ).first()
    if row is None:
        raise _unknown()
    purpose = cast("Purpose", row.purpose)
    return Challenge(purpose, bytes(row.challenge), row.username, row.user_id, row.invitation)


def use(token: str) -> None:
    """Use the token up: it counts for the first who does this. The others, who wait if that one's
    transaction is open, get ``ScriptFailed``; if it is rolled back, the token is unused again."""
    with orm_queries():
        challenges = PasskeyChallenge.objects.filter(token_hash=_hash(token))
        deleted, _ = challenges.filter(expires_at__gt=Now()).delete()
    if not deleted:
        raise _unknown()


def spoil(token: str) -> None:
    """Let the token count no more, for it came with something wrong."""
    with orm_queries():
        PasskeyChallenge.objects.filter(token_hash=_hash(token)).delete()


def _unknown() -> ScriptFailed:
    return ScriptFailed(f"{NAME}: unknown, used before or expired")


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

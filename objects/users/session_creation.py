"""Creating sessions for callers whom ``session_gate`` has admitted: only that imports this."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from objects.core.names import new_object_id
from objects.core.values import wire_time
from objects.database import fetch
from objects.users.sessions import created_with, expiry, new_token, token_hash


@dataclass(frozen=True, slots=True)
class SessionPermit:
    """The proof that a caller has passed the gate. Only ``session_gate`` makes it."""

    user_id: str
    action: str
    provider: str | None
    installation_id: str | None


def create(permit: SessionPermit) -> str:
    """Create the session; return its token, which is shown to the user once.

    On an installation the session replaces the user's previous one.
    """
    user_id, installation_id = permit.user_id, permit.installation_id
    if installation_id is not None:
        fetch(
            'DELETE FROM objects_session WHERE "user" = %s AND installation_id = %s',
            (user_id, installation_id),
            prepare=True,
        )
    token = new_token()
    fetch(
        "INSERT INTO objects_session (object_id, created_at, updated_at, read_acl, write_acl,"
        ' data, "user", installation_id, expires_at, created_with, token_hash)'
        " SELECT %s, t.now, t.now, %s, %s, '{}'::jsonb, %s, %s, %s, %s::jsonb, decode(%s, 'hex')"
        " FROM (SELECT date_trunc('milliseconds', statement_timestamp()) AS now) t",
        (
            new_object_id(),
            [user_id],
            [user_id],
            user_id,
            installation_id,
            wire_time(expiry()),
            msgspec.json.encode(created_with(permit.action, permit.provider)).decode(),
            token_hash(token),
        ),
        prepare=True,
    )
    return token


def give_token(session_id: str, permit: SessionPermit) -> str:
    """Give a session that was stored as an object its token, if it is the admitted user's."""
    token = new_token()
    fetch(
        "UPDATE objects_session SET token_hash = decode(%s, 'hex')"
        ' WHERE object_id = %s AND "user" = %s',
        (token_hash(token), session_id, permit.user_id),
        prepare=True,
    )
    return token

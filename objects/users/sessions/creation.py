"""Create sessions for callers that ``session_gate`` has admitted. Only that module imports this."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from objects.core.names import new_object_id
from objects.core.values import wire_time
from objects.database.statements import fetch
from objects.users.sessions.tokens import created_with, expiry, new_token, token_hash


@dataclass(frozen=True, slots=True)
class SessionPermit:
    """Proof that a caller has passed ``session_gate``, which alone creates it."""

    user_id: str
    action: str
    provider: str | None
    installation_id: str | None


def create(permit: SessionPermit) -> str:
    """Create the session and return its token, which isn't stored.

    A user has one session per installation: an earlier one is deleted.
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
    """Set and return the token of a stored ``_Session`` object, if it is the admitted user's."""
    token = new_token()
    fetch(
        "UPDATE objects_session SET token_hash = decode(%s, 'hex')"
        ' WHERE object_id = %s AND "user" = %s',
        (token_hash(token), session_id, permit.user_id),
        prepare=True,
    )
    return token

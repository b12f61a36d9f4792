"""Create sessions for callers that ``gate`` has admitted. Only that module imports this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from objects.core.names import new_object_id
from objects.core.values import wire_time
from objects.database.statements import fetch
from objects.sql.rows import NOW
from objects.users.sessions.tokens import created_with, expiry, new_token, token_hash


@dataclass(frozen=True, slots=True)
class SessionPermit:
    """Proof that a caller has passed ``gate``, which alone creates it."""

    user_id: str
    action: str
    provider: str | None
    installation_id: str | None


_END_EARLIER: Final = """
DELETE FROM objects_session WHERE "user" = %(user_id)s AND installation_id = %(installation_id)s
"""
_END_OTHERS: Final = f"{_END_EARLIER} AND object_id <> %(session_id)s"
_CREATE: Final = f"""
INSERT INTO objects_session
    (object_id, created_at, updated_at, read_acl, write_acl, data, "user", installation_id,
     expires_at, created_with, token_hash)
SELECT %(session_id)s, t.now, t.now, ARRAY[%(user_id)s::text], ARRAY[%(user_id)s::text],
       '{{}}'::jsonb, %(user_id)s::text, %(installation_id)s, %(expires_at)s,
       %(created_with)s::jsonb, decode(%(token_hash)s, 'hex')
FROM (SELECT {NOW} AS now) t
"""
_GIVE_TOKEN: Final = """
UPDATE objects_session SET token_hash = decode(%(token_hash)s, 'hex')
WHERE object_id = %(session_id)s AND "user" = %(user_id)s
"""


def create(permit: SessionPermit) -> str:
    """Create the session and return its token, which isn't stored.

    A user has one session per installation: an earlier one is deleted.
    """
    if permit.installation_id is not None:
        params = {"user_id": permit.user_id, "installation_id": permit.installation_id}
        fetch(_END_EARLIER, params, prepare=True)
    token = new_token()
    fetch(
        _CREATE,
        {
            "session_id": new_object_id(),
            "user_id": permit.user_id,
            "installation_id": permit.installation_id,
            "expires_at": wire_time(expiry()),
            "created_with": msgspec.json.encode(
                created_with(permit.action, permit.provider)
            ).decode(),
            "token_hash": token_hash(token),
        },
        prepare=True,
    )
    return token


def give_token(session_id: str, permit: SessionPermit, installation_id: str | None) -> str:
    """Set and return the token of a stored ``_Session`` object, if it is the admitted user's.

    An earlier session of the same installation is deleted.
    """
    if installation_id is not None:
        ids = {
            "user_id": permit.user_id,
            "installation_id": installation_id,
            "session_id": session_id,
        }
        fetch(_END_OTHERS, ids, prepare=True)
    token = new_token()
    params = {
        "token_hash": token_hash(token),
        "session_id": session_id,
        "user_id": permit.user_id,
    }
    fetch(_GIVE_TOKEN, params, prepare=True)
    return token

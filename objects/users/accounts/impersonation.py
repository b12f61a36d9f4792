"""Acting as a user without a session of theirs: for staff who look at what a user sees."""

from __future__ import annotations

from backend.kernel.errors import ObjectNotFound
from backend.kernel.principal import Authority, Principal
from objects.core.names import is_object_id
from objects.database.statements import fetch
from objects.users import roles

_FOUND = """
SELECT COALESCE(u.username, ''), COALESCE(v.version, 0)
FROM objects_user u LEFT JOIN objects_role_version v ON v.id = 1
WHERE u.object_id = %s
"""


def as_user(user_id: str) -> tuple[Principal, str]:
    """The principal that a session of this user would have, and the user's name.

    Whoever calls this has checked that the caller may. Raises ``ObjectNotFound``.
    """
    rows = fetch(_FOUND, (user_id,), prepare=True) if is_object_id(user_id) else []
    if not rows:
        raise ObjectNotFound("There is no such user.")
    name, version = rows[0]
    held = roles.held_by(user_id, version)
    return Principal(Authority.CLIENT, user_id=user_id, roles=held), name or user_id

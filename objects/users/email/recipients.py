"""Finding the account that a letter is meant for."""

from __future__ import annotations

from dataclasses import dataclass

from objects.database.statements import fetch
from objects.users.email import tokens
from objects.users.names import account_keys


@dataclass(frozen=True)
class Reached:
    """An account, and the address that letters to it go to."""

    user_id: str
    address: str


# The address is the stored one: what was typed may only look like it.
_REACHED = """
SELECT object_id, COALESCE(email, username) FROM objects_user
WHERE (%s::text IS NULL OR object_id = %s)
AND (%s::text IS NULL OR email_key IN (%s, %s)
     OR (%s AND email IS NULL AND username_key IN (%s, %s)))
AND (CASE WHEN %s THEN email IS NOT NULL OR username LIKE '%%@%%'
     ELSE email IS NOT NULL AND email_verified IS NOT TRUE END)
ORDER BY email IS NULL, email_key = %s DESC, username_key = %s DESC LIMIT 1
"""


def reached_by(
    purpose: str, *, user_id: str | None = None, address: str | None = None
) -> Reached | None:
    """The account with this id or address, if there is a reason to write to it."""
    if user_id is None and address is None:
        return None
    key, former = (None, None) if address is None else account_keys(address)
    resets = purpose == tokens.RESET
    rows = fetch(
        _REACHED,
        (
            *(user_id, user_id, key, key, former),
            *(resets, key, former, resets, former, former),
        ),
        prepare=False,
    )
    return Reached(*rows[0]) if rows else None

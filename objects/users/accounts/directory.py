"""Finding users as staff look for them, and what the service keeps of one besides the object.

Whoever calls this has checked that the caller may. Each question is one statement that an index
answers, however many users there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from objects.core.names import is_object_id
from objects.database.statements import fetch
from objects.users.names import account_keys

_LONGEST = 256  # characters of a name
_LAST = "\U0010ffff"

_SEARCH = """
SELECT object_id, 0, '' FROM objects_user WHERE object_id = %s
UNION ALL
(SELECT object_id, 1, username_key FROM objects_user
 WHERE username_key >= %s AND username_key < %s ORDER BY username_key LIMIT %s)
UNION ALL
(SELECT object_id, 2, email_key FROM objects_user
 WHERE email_key >= %s AND email_key < %s ORDER BY email_key LIMIT %s)
ORDER BY 2, 3
"""


def search(text: str, limit: int) -> list[str]:
    """The ids of users whose id this is, or whose name or address begins with it.

    Case and width don't matter. At most ``limit``, in this order.
    """
    if not text or len(text) > _LONGEST or "\x00" in text:
        return []
    user_ids: dict[str, None] = {}
    for key in dict.fromkeys(account_keys(text)):
        ends = (key, key + _LAST, limit)
        rows = fetch(_SEARCH, (text if is_object_id(text) else None, *ends, *ends), prepare=False)
        user_ids |= dict.fromkeys(row[0] for row in rows)
    return list(user_ids)[:limit]


def user_named(text: str) -> str | None:
    """The id of the user with this id, name or address; None if nobody has it."""
    if not text or len(text) > _LONGEST or "\x00" in text:
        return None
    key, former = account_keys(text)
    rows = fetch(
        "SELECT object_id FROM objects_user"
        " WHERE object_id = %s OR username_key IN (%s, %s) OR email_key IN (%s, %s)"
        " ORDER BY object_id = %s DESC, username_key = %s DESC NULLS LAST,"
        " username_key = %s DESC NULLS LAST, email_key = %s DESC NULLS LAST LIMIT 1",
        (text, key, former, key, former, text, former, key, former),
        prepare=False,
    )
    return rows[0][0] if rows else None


def id_of_name(username: str) -> str | None:
    """The id of the user with this name, whatever its spelling; None if nobody has it."""
    if "\x00" in username:
        return None
    key, former = account_keys(username)
    rows = fetch(
        "SELECT object_id FROM objects_user WHERE username_key IN (%s, %s)"
        " ORDER BY username_key = %s DESC LIMIT 1",
        (key, former, former),
        prepare=True,
    )
    return rows[0][0] if rows else None


@dataclass(frozen=True)
class Standing:
    """What there is about a user that is no field of the object.

    ``locked_until`` is None unless the account is locked at the moment.
    """

    has_password: bool
    password_set_at: datetime | None
    failed_logins: int
    locked_until: datetime | None
    second_factor_since: datetime | None
    recovery_codes: int
    identities: tuple[tuple[str, str], ...]


_STANDING = """
SELECT p.user_id IS NOT NULL, extract(epoch FROM p.changed_at), COALESCE(f.count, 0),
       extract(epoch FROM CASE WHEN f.locked_until > statement_timestamp()
                               THEN f.locked_until END),
       extract(epoch FROM s.created_at),
       (SELECT count(*) FROM objects_recovery_code r WHERE r.user_id = w.id),
       (SELECT COALESCE(json_agg(json_build_array(i.provider, i.external_id) ORDER BY i.provider),
                        '[]') FROM objects_identity i WHERE i.user_id = w.id)
FROM (SELECT %s::text AS id) w
LEFT JOIN objects_password p ON p.user_id = w.id
LEFT JOIN objects_failed_logins f ON f.user_id = w.id
LEFT JOIN objects_second_factor s ON s.user_id = w.id
"""


def standing(user_id: str) -> Standing:
    """What is kept of this user; nothing of one who isn't there."""
    ((has, changed, failed, locked, factor, codes, identities),) = fetch(
        _STANDING, (user_id,), prepare=False
    )
    return Standing(
        has == "t",
        _time(changed),
        int(failed),
        _time(locked),
        _time(factor),
        int(codes),
        tuple((provider, given) for provider, given in msgspec.json.decode(identities)),
    )


def _time(seconds: str | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)

"""The rows of people that requests read and write apart from their objects.

SQL, since each sign-up, login and registration of an installation runs several of these statements,
and the ORM takes about 0.5 ms for one. They change no field that clients see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from backend.kernel.json_types import Json
from objects.core.names import ObjectId
from objects.database.row_types import select_list
from objects.database.statements import fetch, fetch_rows, fetch_value, fetch_values


class Account(NamedTuple):
    """The fields of a user that the conditions of a session depend on.

    ``encoded`` is the hash of the password, and None without one, as is the time of its change.
    """

    user_id: Annotated[str, "{row}.object_id"]
    has_address: Annotated[bool, "{row}.email IS NOT NULL"]
    address_is_verified: Annotated[bool, "COALESCE({row}.email_verified, false)"]
    is_closed: Annotated[
        bool,
        "COALESCE(cardinality({row}.read_acl) = 0 AND cardinality({row}.write_acl) = 0, false)",
    ]
    encoded: Annotated[str | None, "{password}.encoded"]
    password_changed_at: Annotated[str | None, "{password}.changed_at::text"]


class AccountKeys(NamedTuple):
    """The keys of a name or an address, as of today and of former versions; None: not given."""

    key: str | None = None
    former: str | None = None


# -- Accounts -------------------------------------------------------------------------------------

_ACCOUNT: Final = f"""
SELECT {select_list(Account, "u", password="p")}
FROM objects_user u LEFT JOIN objects_password p ON p.user_id = u.object_id
"""
_BY_ID: Final = f"{_ACCOUNT} WHERE u.object_id = %(user_id)s"
_BY_NAME: Final = f"""{_ACCOUNT}
WHERE (%(name)s::text IS NULL OR u.username_key IN (%(name)s, %(former_name)s))
AND (%(address)s::text IS NULL OR u.email_key IN (%(address)s, %(former_address)s))
ORDER BY u.username_key = %(former_name)s DESC, u.email_key = %(former_address)s DESC LIMIT 1
"""
_HASH_NEAR: Final = """
SELECT COALESCE(
    (SELECT encoded FROM objects_password WHERE user_id >= %(user_id)s ORDER BY user_id LIMIT 1),
    (SELECT encoded FROM objects_password ORDER BY user_id LIMIT 1)
)
"""
_LOCK: Final = "SELECT FROM objects_user WHERE object_id = %(user_id)s FOR KEY SHARE"
_AUTH_DATA: Final = "SELECT auth_data FROM objects_user WHERE object_id = %(user_id)s"
_MERGE_AUTH_DATA: Final = """
UPDATE objects_user SET auth_data = COALESCE(auth_data, '{}'::jsonb) || %(changes)s::jsonb
WHERE object_id = %(user_id)s
"""
_STORE_KEY: Final = {
    "username": "UPDATE objects_user SET username_key = %(key)s WHERE object_id = %(user_id)s",
    "email": "UPDATE objects_user SET email_key = %(key)s WHERE object_id = %(user_id)s",
}


def account_of_id(user_id: str) -> Account | None:
    """Return the account of a user, or None."""
    rows = fetch_rows(Account, _BY_ID, {"user_id": user_id}, prepare=True)
    return rows[0] if rows else None


def account_of_name(name: AccountKeys, address: AccountKeys) -> Account | None:
    """Return the account with this name and this address, or None."""
    params = {
        "name": name.key,
        "former_name": name.former,
        "address": address.key,
        "former_address": address.former,
    }
    rows = fetch_rows(Account, _BY_NAME, params, prepare=False)
    return rows[0] if rows else None


def password_hash_near(user_id: str) -> str | None:
    """Return the hash of the account with this id or the next one; None if no account has one."""
    return fetch_value(str, _HASH_NEAR, {"user_id": user_id}, prepare=True)


def auth_data(user_id: str) -> dict[str, Json]:
    """Return the stored ``authData`` of a user; empty without any."""
    stored = fetch(_AUTH_DATA, {"user_id": user_id}, prepare=True)
    text = stored[0][0] if stored else None
    value = None if text is None else msgspec.json.decode(text)
    return value if isinstance(value, dict) else {}


def merge_auth_data(user_id: str, changes: Mapping[str, Json]) -> None:
    """Replace the stored ``authData`` of these providers. No trigger runs."""
    params = {"changes": msgspec.json.encode(changes).decode(), "user_id": user_id}
    fetch(_MERGE_AUTH_DATA, params, prepare=True)


def lock_account(user_id: str) -> bool:
    """Keep the account from being changed until the transaction ends; return whether it exists."""
    return bool(fetch(_LOCK, {"user_id": user_id}, prepare=True))


def store_account_key(user_id: str, field: Literal["username", "email"], key: str | None) -> None:
    """Store the key of a name or an address. A taken one violates the unique constraint."""
    fetch(_STORE_KEY[field], {"key": key, "user_id": user_id}, prepare=True)


# -- Failed logins --------------------------------------------------------------------------------

# The guess that reaches the threshold is still compared, and locks the account for those after
# it; when the lock is over, counting restarts. A locked row isn't changed, so nothing returns.
_CLAIM_GUESS: Final = """
INSERT INTO objects_failed_logins AS f (user_id, count, locked_until)
VALUES (%(user_id)s, 1, CASE WHEN %(threshold)s::int <= 1
        THEN statement_timestamp() + %(minutes)s::float8 * interval '1 minute' END)
ON CONFLICT (user_id) DO UPDATE SET
    count = CASE WHEN f.locked_until IS NULL THEN f.count + 1 ELSE 1 END,
    locked_until = CASE
        WHEN (CASE WHEN f.locked_until IS NULL THEN f.count + 1 ELSE 1 END) >= %(threshold)s::int
        THEN statement_timestamp() + %(minutes)s::float8 * interval '1 minute' END
WHERE f.locked_until IS NULL OR f.locked_until <= statement_timestamp()
RETURNING 1
"""
# Without the guess that locked it, an account isn't locked.
_RETURN_GUESS: Final = """
UPDATE objects_failed_logins SET count = count - 1, locked_until = NULL
WHERE user_id = %(user_id)s AND count > 0
"""
_SECONDS_LOCKED: Final = """
SELECT extract(epoch FROM locked_until - statement_timestamp())
FROM objects_failed_logins WHERE user_id = %(user_id)s
"""
_FORGET_GUESSES: Final = "DELETE FROM objects_failed_logins WHERE user_id = %(user_id)s"


def claim_guess(user_id: str, threshold: int, minutes: int) -> bool:
    """Count a guess at a password; return False, and count nothing, while the account is locked."""
    params = {"user_id": user_id, "threshold": threshold, "minutes": minutes}
    return bool(fetch(_CLAIM_GUESS, params, prepare=True))


def return_guess(user_id: str) -> None:
    """Take back what ``claim_guess`` has counted."""
    fetch(_RETURN_GUESS, {"user_id": user_id}, prepare=True)


def seconds_locked(user_id: str) -> float:
    """Return the seconds until the account is unlocked, zero or less if it isn't locked."""
    return fetch_value(float, _SECONDS_LOCKED, {"user_id": user_id}, prepare=True) or 0.0


def forget_guesses(user_id: str) -> None:
    """Reset the count of guesses."""
    fetch(_FORGET_GUESSES, {"user_id": user_id}, prepare=True)


# -- Installations --------------------------------------------------------------------------------

_LOCK_INSTALLATIONS: Final = """
SELECT object_id FROM objects_installation
WHERE installation_id = %(installation_id)s OR device_token = %(device_token)s
ORDER BY object_id FOR UPDATE
"""


def lock_installations(installation_id: str | None, device_token: str | None) -> list[ObjectId]:
    """Lock the objects with this id or this token until the transaction ends; return their ids."""
    params = {"installation_id": installation_id, "device_token": device_token}
    ids = fetch_values(str, _LOCK_INSTALLATIONS, params, prepare=True)
    return [ObjectId(object_id) for object_id in ids]

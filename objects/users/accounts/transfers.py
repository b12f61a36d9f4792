"""What belongs to accounts of another server apart from their objects, for many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from django.db.models.functions import Now

from backend.kernel.errors import InvalidJSON
from backend.kernel.json_types import Json
from objects.database.orm import orm_queries
from objects.database.statements import fetch
from objects.rules import TransferredObject
from objects.users.accounts import second_factor
from objects.users.accounts.hashers import encoded_bcrypt
from objects.users.accounts.second_factor import MFA
from objects.users.models import Identity, Password
from objects.users.names import check_email, check_username, stored_key

_STORE_KEYS: Final = """
UPDATE objects_user u SET username_key = v.username_key, email_key = v.email_key
FROM unnest(%(ids)s::text[], %(username_keys)s::text[], %(email_keys)s::text[])
    AS v(user_id, username_key, email_key)
WHERE u.object_id = v.user_id
"""
_TOKENS: Final = ("token", "secret")


def stored_form(obj: TransferredObject) -> TransferredObject:
    """Return an account as it is stored here.

    Its password, its second factor and the access tokens of its providers are no part of it.

    Raises ``UsernameMissing``, ``InvalidEmailAddress`` or ``InvalidJSON``.
    """
    fields = {name: value for name, value in obj.fields.items() if name != "password"}
    check_username(fields.get("username"))
    if fields.get("email") in (None, ""):
        fields.pop("email", None)
    else:
        check_email(fields["email"])
    auth_data = fields.get("authData")
    if isinstance(auth_data, dict):
        fields["authData"] = {
            name: _without_tokens(data) for name, data in auth_data.items() if name != MFA
        }
    elif auth_data is not None:
        raise InvalidJSON("authData: expected an object of providers")
    return replace(obj, fields=fields)


def _without_tokens(data: Json) -> Json:
    if not isinstance(data, dict):
        return data
    return {key: value for key, value in data.items() if not key.lower().endswith(_TOKENS)}


@orm_queries()
def store(accounts: Sequence[TransferredObject]) -> None:
    """Store keys, passwords and identities of stored accounts.

    A taken name or address, or an identity of another user, violates its unique constraint.
    """
    ids = [account.object_id for account in accounts]
    fetch(
        _STORE_KEYS,
        {
            "ids": ids,
            "username_keys": [stored_key(account.fields.get("username")) for account in accounts],
            "email_keys": [stored_key(account.fields.get("email")) for account in accounts],
        },
        prepare=False,
    )
    Password.objects.bulk_create(
        _passwords(accounts),
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["encoded", "changed_at"],
    )
    Identity.objects.filter(user_id__in=ids).delete()
    Identity.objects.bulk_create(
        Identity(provider=provider, external_id=str(data["id"]), user_id=account.object_id)
        for account in accounts
        for provider, data in _auth_data(account).items()
        if provider != MFA and isinstance(data, dict) and isinstance(data.get("id"), str | int)
    )
    for account in accounts:
        factor = _auth_data(account).get(MFA)
        if isinstance(factor, dict) and factor.get("secret"):
            second_factor.transfer(account.object_id, factor)


@orm_queries()
def add_missing_passwords(accounts: Sequence[TransferredObject]) -> None:
    """Store the passwords of accounts that have none here."""
    Password.objects.bulk_create(_passwords(accounts), ignore_conflicts=True)


def _passwords(accounts: Sequence[TransferredObject]) -> list[Password]:
    return [
        Password(user_id=account.object_id, encoded=encoded, changed_at=Now())
        for account in accounts
        if account.password_hash and (encoded := encoded_bcrypt(account.password_hash))
    ]


def _auth_data(account: TransferredObject) -> Mapping[str, Json]:
    auth_data = account.fields.get("authData")
    return auth_data if isinstance(auth_data, dict) else {}

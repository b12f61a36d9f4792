"""Fields of an account that the maintenance key sets and reads, under Parse Server's names.

They are for imports and exports: what a user object never has, since the service keeps it in
tables of its own. Hashes and tokens are written only: no key shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from django.db.models.functions import Now

from backend.kernel.errors import IncorrectType, InvalidKeyName
from backend.kernel.json_types import Json, Wire
from backend.kernel.texts.shown import shown
from objects.core.values import date, normalise_date, wire_time
from objects.database.orm import orm_queries
from objects.users.accounts.hashers import HIGHEST_COST, encoded_bcrypt
from objects.users.email import tokens
from objects.users.models import FailedLogins, FormerPassword, MailToken, Password

Value: TypeAlias = str | int | datetime | tuple[str, ...] | None

MOST_FORMER: Final = 20
_ARGON2: Final = re.compile(
    r"argon2\$argon2id\$v=19\$m=(?P<memory>[1-9][0-9]{0,5}),t=(?P<passes>[1-9][0-9]?),p=[1-8]"
    r"\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}"
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
_MOST_FAILED: Final = 1_000_000  # failed logins; each one adds to it


@dataclass(frozen=True, slots=True)
class InternalFields:
    """The fields that a write sets, by name.

    None empties the history of passwords, resets the lockout and removes tokens. It leaves the
    password, the time of its change and the ends of tokens as they are.
    """

    values: Mapping[str, Value] = field(default_factory=dict, repr=False)

    @property
    def encoded(self) -> str | None:
        """The hash of the new password as Django's hashers encode it, or None."""
        encoded = self.values.get("_hashed_password")
        return encoded if isinstance(encoded, str) else None


def take(fields: dict[str, Any]) -> InternalFields | None:
    """Remove the internal fields from the body of a write, and return them; None without any.

    Raises ``InvalidKeyName`` for a name that isn't one of them, and ``IncorrectType``.
    """
    names = [name for name in fields if name.startswith("_")]
    if not names:
        return None
    values: dict[str, Value] = {}
    for name in names:
        parse = _PARSERS.get(name)
        if parse is None:
            raise InvalidKeyName(f"Invalid field name: {shown(name)}.")
        value = fields.pop(name)
        is_removed = value is None or (isinstance(value, dict) and value.get("__op") == "Delete")
        values[name] = None if is_removed else parse(name, value)
    return InternalFields(values)


def _password(name: str, value: object) -> str:
    encoded = encoded_bcrypt(value) if isinstance(value, str) else None
    if encoded is not None:
        return encoded
    if isinstance(value, str) and _is_own_hash(value):
        return value
    raise IncorrectType(
        f"{name}: expected a hash of bcrypt with a cost of at most {HIGHEST_COST}, like $2b$10$…"
    )


def _is_own_hash(value: str) -> bool:
    """Return whether this is a hash as the service stores it, and takes no longer to compare."""
    match = _ARGON2.fullmatch(value)
    return match is not None and int(match["memory"]) <= 102_400 and int(match["passes"]) <= 10


def _history(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_FORMER:
        raise IncorrectType(f"{name}: expected an array of at most {MOST_FORMER} hashes")
    return tuple(_password(name, item) for item in value)


def _number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_FAILED:
        raise IncorrectType(f"{name}: expected a whole number from 0 to {_MOST_FAILED:,}")
    return value


def _moment(name: str, value: object) -> datetime:
    if isinstance(value, dict) and value.get("__type") == "Date":
        value = value.get("iso")
    return datetime.fromisoformat(normalise_date(value, name))


def _token(name: str, value: object) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise IncorrectType(f"{name}: expected 16 to 128 characters of A-Z, a-z, 0-9, _ and -")
    return value


_PARSERS: Final[Mapping[str, Callable[[str, object], Value]]] = {
    "_hashed_password": _password,
    "_password_history": _history,
    "_password_changed_at": _moment,
    "_failed_login_count": _number,
    "_account_lockout_expires_at": _moment,
    "_email_verify_token": _token,
    "_email_verify_token_expires_at": _moment,
    "_perishable_token": _token,
    "_perishable_token_expires_at": _moment,
}
_TOKENS: Final = (
    ("_email_verify_token", MailToken.Purpose.VERIFY_EMAIL.value),
    ("_perishable_token", MailToken.Purpose.RESET_PASSWORD.value),
)


@orm_queries()
def store(user_id: str, internal: InternalFields, address: str | None) -> None:
    """Store the fields of a user, in the transaction of the write, after the password.

    ``address`` is what tokens in emails are bound to; without one there are none.
    """
    values = internal.values
    if "_password_history" in values:
        FormerPassword.objects.filter(user_id=user_id).delete()
        history = values["_password_history"]
        FormerPassword.objects.bulk_create(
            FormerPassword(user_id=user_id, encoded=encoded, replaced_at=Now())
            for encoded in (history if isinstance(history, tuple) else ())
        )
    changed_at = values.get("_password_changed_at")
    if changed_at is not None:
        Password.objects.filter(user_id=user_id).update(changed_at=changed_at)
    _store_guesses(user_id, values)
    for name, purpose in _TOKENS:
        _store_token(user_id, name, purpose, values, address)


def _store_guesses(user_id: str, values: Mapping[str, Value]) -> None:
    changes: dict[str, Any] = {}
    if "_failed_login_count" in values:
        changes["count"] = values["_failed_login_count"] or 0
    if "_account_lockout_expires_at" in values:
        changes["locked_until"] = values["_account_lockout_expires_at"]
    if changes:
        FailedLogins.objects.bulk_create(
            [FailedLogins(user_id=user_id, **{"count": 0, **changes})],
            update_conflicts=True,
            unique_fields=["user"],
            update_fields=list(changes),
        )


def _store_token(
    user_id: str, name: str, purpose: str, values: Mapping[str, Value], address: str | None
) -> None:
    expires_at = values.get(f"{name}_expires_at")
    if name not in values:
        if expires_at is not None:
            MailToken.objects.filter(user_id=user_id, purpose=purpose).update(expires_at=expires_at)
        return
    tokens.forget(user_id, purpose)
    token = values[name]
    if isinstance(token, str) and address is not None:
        validity = timedelta(seconds=tokens.validity(purpose))
        MailToken.objects.create(
            token_hash=tokens.hash_of(token),
            user_id=user_id,
            purpose=purpose,
            email=address,
            created_at=Now(),
            expires_at=expires_at if isinstance(expires_at, datetime) else Now() + validity,
        )


@orm_queries()
def add_to(users: Sequence[Wire]) -> None:
    """Add the internal fields that may be shown to user objects."""
    by_id = {str(user["objectId"]): user for user in users if "objectId" in user}
    passwords = Password.objects.filter(user_id__in=by_id)
    for user_id, changed_at in passwords.values_list("user_id", "changed_at"):
        by_id[user_id]["_password_changed_at"] = _date(changed_at)
    guesses = FailedLogins.objects.filter(user_id__in=by_id)
    for user_id, count, until in guesses.values_list("user_id", "count", "locked_until"):
        by_id[user_id]["_failed_login_count"] = count
        if until is not None:
            by_id[user_id]["_account_lockout_expires_at"] = _date(until)
    names = {purpose: f"{name}_expires_at" for name, purpose in _TOKENS}
    sent = MailToken.objects.filter(user_id__in=by_id, expires_at__isnull=False)
    for user_id, purpose, expires_at in sent.values_list("user_id", "purpose", "expires_at"):
        if expires_at is not None:
            by_id[user_id][names[purpose]] = _date(expires_at)


def _date(moment: datetime) -> Json:
    return {**date(wire_time(moment))}

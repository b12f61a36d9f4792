"""Passwords: how they are kept, what they may be, and how many guesses there are.

A password is checked in about the same time whether there is such a user or not. With a lockout
(``LOCKOUT_THRESHOLD``) each guess is counted before it is looked at, so that guesses that come at
once don't get more tries than guesses one after the other.
"""

from __future__ import annotations

import math
import re
import string
from datetime import UTC, datetime, timedelta
from functools import cache

from django.contrib.auth.hashers import check_password, make_password
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from backend.kernel.errors import ObjectNotFound, PasswordMissing, ValidationFailed
from backend.kernel.texts.spelling import name_key
from backend.settings.conf import service_settings
from objects.database.orm import orm_queries
from objects.users import rows
from objects.users.models import FormerPassword, Password

_MOST_CHARACTERS = 1024
_LETTERS = string.digits + string.ascii_letters  # of ids


def check_form(value: object) -> str:
    """A password that was sent, or ``PasswordMissing`` (201)."""
    if not isinstance(value, str) or not value:
        raise PasswordMissing("password is required")
    if len(value) > _MOST_CHARACTERS:
        raise ValidationFailed(f"password: at most {_MOST_CHARACTERS} characters")
    return value


def check_policy(password: str, username: str | None) -> None:
    """Raise ``ValidationFailed`` if the deployment wants another kind of password."""
    settings = service_settings
    if settings.PASSWORD_PATTERN and not re.search(settings.PASSWORD_PATTERN, password):
        raise ValidationFailed(settings.PASSWORD_MESSAGE)
    forbidden = name_key(username) if settings.PASSWORD_NOT_USERNAME and username else None
    if forbidden and forbidden in name_key(password):
        raise ValidationFailed("Password cannot contain your username.")


def encode(password: str) -> str:
    """What is kept of a password."""
    return make_password(password)


def check_history(user_id: str, password: str) -> None:
    """Raise ``ValidationFailed`` for one of the user's last passwords, the present one included."""
    remembered = service_settings.PASSWORD_HISTORY
    if remembered <= 0:
        return
    present = Password.objects.filter(user_id=user_id).values_list("encoded", flat=True)
    former = _former_passwords(user_id, remembered - 1).values_list("encoded", flat=True)
    with orm_queries():
        hashes = list(present.union(former, all=True))
    if any(check_password(password, encoded) for encoded in hashes):
        raise ValidationFailed(
            f"New password should not be the same as last {remembered} passwords."
        )


@orm_queries()
def store(user_id: str, encoded: str) -> None:
    """Give the user this password, in the transaction that has locked the user. The one before is
    kept as long as the history wants it."""
    now = Now()
    if service_settings.PASSWORD_HISTORY > 1:
        FormerPassword.objects.bulk_create(
            FormerPassword(user_id=user_id, encoded=former, replaced_at=now)
            for former in Password.objects.filter(user_id=user_id).values_list("encoded", flat=True)
        )
    remembered = _former_passwords(user_id, max(0, service_settings.PASSWORD_HISTORY - 1))
    FormerPassword.objects.filter(user_id=user_id).exclude(pk__in=remembered.values("pk")).delete()
    Password.objects.bulk_create(
        [Password(user_id=user_id, encoded=encoded, changed_at=now)],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["encoded", "changed_at"],
    )


def _former_passwords(user_id: str, count: int) -> QuerySet[FormerPassword]:
    """The user's last passwords before the present one."""
    former = FormerPassword.objects.filter(user_id=user_id)
    return former.order_by("-replaced_at", "-pk")[:count]


@cache
def _of_nobody() -> str:
    return make_password("nobody's")


def decoy(name: str) -> str:
    """Return the hash that a password is compared with where the name has none.

    It is another account's, chosen by the name. Imported hashes take longer than the service's own,
    so a hash of always the same kind would show which names are those of imported accounts.
    """
    digest = salted_hmac("objects.users.decoy", name).digest()
    user_id = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])
    return rows.password_hash_near(user_id) or _of_nobody()


def is_right(user_id: str | None, password: str, encoded: str | None, name: str) -> bool:
    """Whether this is the password. Without a user it takes as long, and it isn't.

    Hashes of an older kind are replaced. ``name`` is what the client calls the account.
    """
    if user_id is None or encoded is None:
        check_password(password, decoy(name))
        return False

    @orm_queries()
    def rehash(raw: str) -> None:
        stored = Password.objects.filter(user_id=user_id, encoded=encoded)
        stored.update(encoded=make_password(raw))

    return check_password(password, encoded, setter=rehash)


def check_age(changed_at: datetime) -> None:
    """Raise ``ObjectNotFound`` if the password is older than the deployment allows."""
    days = service_settings.PASSWORD_MAX_AGE
    if days > 0 and datetime.now(UTC) - changed_at > timedelta(days=days):
        raise ObjectNotFound("Your password has expired. Please reset your password.")


# -- Lockout --------------------------------------------------------------------------------------


def claim_guess(user_id: str) -> None:
    """Count a guess at the user's password, before it is compared.

    Raises ``ObjectNotFound`` with the minutes that are left while the account is locked.
    """
    threshold = service_settings.LOCKOUT_THRESHOLD
    if threshold <= 0:
        return
    if not rows.claim_guess(user_id, threshold, service_settings.LOCKOUT_DURATION):
        raise _locked(rows.seconds_locked(user_id))


def return_guess(user_id: str) -> None:
    """Take back what ``claim_guess`` has counted: the password was another account's."""
    if service_settings.LOCKOUT_THRESHOLD > 0:
        rows.return_guess(user_id)


def check_not_locked(user_id: str) -> None:
    """Raise what ``claim_guess`` raises while the account is locked, without counting anything."""
    left = rows.seconds_locked(user_id) if service_settings.LOCKOUT_THRESHOLD > 0 else 0.0
    if left > 0:
        raise _locked(left)


def _locked(seconds_left: float) -> ObjectNotFound:
    return ObjectNotFound(
        "Your account is locked due to multiple failed login attempts. Please try again"
        f" after {math.ceil(max(1.0, seconds_left) / 60)} minute(s)"
    )


def forget_guesses(user_id: str) -> None:
    """Reset the count: the password was right, or it was reset."""
    rows.forget_guesses(user_id)

"""Tokens in emails: they prove access to the mailbox of an address.

A token is 256 random bits; the database has its hash. It is bound to a user, to a purpose and to
the address that it was sent to: once the user has another address, it is worth nothing. A user
has at most one of each purpose, the newest. A token is used once, however many try at the same
moment: using it deletes its row.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from backend.kernel.errors import InvalidLink
from backend.settings.conf import service_settings
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.users.models import MailToken, User

VERIFY = MailToken.Purpose.VERIFY_EMAIL.value
RESET = MailToken.Purpose.RESET_PASSWORD.value

_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}\Z")  # those of imports have other lengths


@dataclass(frozen=True)
class Holder:
    """Whom a token was sent to. ``by_email`` is False where a user without an address is reached
    by a user name that is one."""

    user_id: str
    username: str
    address: str
    by_email: bool


def validity(purpose: str) -> int:
    """How long a token is good for, in seconds."""
    settings = service_settings
    return settings.EMAIL_TOKEN_VALIDITY if purpose == VERIFY else settings.RESET_TOKEN_VALIDITY


@orm_queries()
def issue(user_id: str, purpose: str, address: str) -> str | None:
    """A new token in place of the user's former one; None if the user is gone.

    Raises ``UnderMaintenance``.
    """
    token = secrets.token_urlsafe(_BYTES)
    with maintenance.writing():
        if not _lock(user_id):
            return None
        forget(user_id, purpose)
        MailToken.objects.create(
            token_hash=hash_of(token),
            user_id=user_id,
            purpose=purpose,
            email=address,
            created_at=Now(),
            expires_at=Now() + timedelta(seconds=validity(purpose)),
        )
    return token


def _valid(token: str, purpose: str) -> QuerySet[MailToken]:
    is_of_user = Q(user__email=F("email"))
    if purpose == RESET:
        # A user without an address may have a user name that is one; it gets resets, as with Parse.
        is_of_user |= Q(user__email=None, user__username=F("email"))
    # By its hash the database finds it: what takes how long depends on nothing that is secret.
    return MailToken.objects.filter(
        is_of_user, token_hash=hash_of(token), purpose=purpose, expires_at__gt=Now()
    )


def holder_of(token: object, purpose: str) -> Holder:
    """Whom a token was sent to, if it is good; it stays so. Raises ``InvalidLink``."""
    if not isinstance(token, str) or not _TOKEN.match(token):
        raise InvalidLink
    with orm_queries():
        row = (
            _valid(token, purpose)
            .values_list("user_id", "user__username", "email", "user__email")
            .first()
        )
    if row is None:
        raise InvalidLink
    user_id, username, address, email_of_user = row
    return Holder(user_id, username or "", address, email_of_user is not None)


def use(token: object, purpose: str) -> Holder:
    """Use a token up, in the caller's transaction. Raises ``InvalidLink``."""
    holder = holder_of(token, purpose)
    # The user's row first, in the order of a change of the user, which takes tokens away as well.
    with orm_queries():
        _lock(holder.user_id)
        deleted, _ = _valid(str(token), purpose).delete()
    if not deleted:
        raise InvalidLink
    return holder


@orm_queries()
def forget(user_id: str, purpose: str | None = None) -> None:
    """Make the user's tokens worthless, all or those of one purpose."""
    tokens = MailToken.objects.filter(user_id=user_id)
    if purpose is not None:
        tokens = tokens.filter(purpose=purpose)
    tokens.delete()


def _lock(user_id: str) -> bool:
    locked = User.objects.select_for_update(no_key=True).filter(pk=user_id)
    return bool(locked.values_list("pk"))


def hash_of(token: str) -> bytes:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).digest()

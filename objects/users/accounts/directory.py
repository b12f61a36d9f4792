"""Find users as staff look for them, and what the service stores about one apart from the object.

Callers have checked the rights. Each question is one statement that an index
answers, however many users there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from objects.core.names import is_object_id
from objects.database.orm import orm_queries
from objects.users.models import Identity, User
from objects.users.names import account_keys

_LONGEST = 256  # characters of a name
_LAST = "\U0010ffff"


def search(text: str, limit: int) -> list[str]:
    """The ids of users whose id this is, or whose name or address begins with it.

    Case and width don't matter. At most ``limit``, in this order.
    """
    if not text or len(text) > _LONGEST or "\x00" in text:
        return []
    user_ids: dict[str, None] = {}
    with orm_queries():
        for key in dict.fromkeys(account_keys(text)):
            by_id = User.objects.filter(pk=text if is_object_id(text) else None)
            matches = _ranked(by_id, 0, Value("")).union(
                _with_prefix("username_key", key, 1)[:limit],
                _with_prefix("email_key", key, 2)[:limit],
                all=True,
            )
            user_ids |= dict.fromkeys(row[0] for row in matches.order_by("rank", "key"))
    return list(user_ids)[:limit]


def _with_prefix(column: str, prefix: str, rank: int) -> QuerySet[User, tuple[Any, ...]]:
    # Not ``startswith``: an index of any operator class answers the comparison.
    matches = User.objects.filter(
        **{f"{column}__gte": prefix, f"{column}__lt": prefix + _LAST}
    ).order_by(column)
    return _ranked(matches, rank, F(column))


def _ranked(users: QuerySet[User], rank: int, key: Combinable) -> QuerySet[User, tuple[Any, ...]]:
    return users.annotate(rank=Value(rank), key=key).values_list("pk", "rank", "key")


def user_named(text: str) -> str | None:
    """Return the id of the user with this id, name or address, or None."""
    if not text or len(text) > _LONGEST or "\x00" in text:
        return None
    key, former = account_keys(text)
    with orm_queries():
        matches = User.objects.filter(
            Q(pk=text) | Q(username_key__in=(key, former)) | Q(email_key__in=(key, former))
        ).only("pk", "username_key", "email_key")
        best = max(
            matches,
            key=lambda user: (
                user.pk == text,
                _closeness(user.username_key, former),
                _closeness(user.username_key, key),
                _closeness(user.email_key, former),
            ),
            default=None,
        )
    return None if best is None else best.pk


def _closeness(stored: str | None, key: str) -> int:
    return 0 if stored is None else 1 + (stored == key)


def id_of_name(username: str) -> str | None:
    """Return the id of the user with any spelling of this name, or None."""
    if "\x00" in username:
        return None
    key, former = account_keys(username)
    with orm_queries():
        users = User.objects.filter(username_key__in=(key, former))
        ids = dict(users.values_list("username_key", "pk"))
    return ids.get(former) or ids.get(key)


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


@orm_queries()
def standing(user_id: str) -> Standing:
    """What is kept of this user; nothing of one who isn't there."""
    row = (
        User.objects.filter(pk=user_id)
        .values_list(
            "password__changed_at",
            "failedlogins__count",
            Case(When(failedlogins__locked_until__gt=Now(), then="failedlogins__locked_until")),
            "secondfactor__created_at",
            Count("recovery_codes"),
        )
        .first()
    )
    if row is None:
        return Standing(False, None, 0, None, None, 0, ())
    password_set_at, failed_logins, locked_until, second_factor_since, recovery_codes = row
    identities = Identity.objects.filter(user_id=user_id).order_by("provider")
    return Standing(
        password_set_at is not None,
        password_set_at,
        failed_logins or 0,
        locked_until,
        second_factor_since,
        recovery_codes,
        tuple(identities.values_list("provider", "external_id")),
    )

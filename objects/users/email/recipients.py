"""Find the account for which an email is requested."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from objects.database.orm import orm_queries
from objects.users.email import tokens
from objects.users.models import User
from objects.users.names import account_keys


@dataclass(frozen=True)
class Reached:
    """An account, and the address of its emails."""

    user_id: str
    address: str


def reached_by(
    purpose: str, *, user_id: str | None = None, address: str | None = None
) -> Reached | None:
    """The account with this id or address, if there is a reason to write to it."""
    if user_id is None and address is None:
        return None
    accounts = User.objects.all()
    former = None
    if user_id is not None:
        accounts = accounts.filter(pk=user_id)
    if address is not None:
        key, former = account_keys(address)
        has_address = Q(email_key__in=(key, former))
        if purpose == tokens.RESET:
            has_address |= Q(email=None, username_key__in=(key, former))
        accounts = accounts.filter(has_address)
    if purpose == tokens.RESET:
        accounts = accounts.filter(Q(email__isnull=False) | Q(username__contains="@"))
    else:
        accounts = accounts.filter(
            Q(email_verified=None) | Q(email_verified=False), email__isnull=False
        )
    with orm_queries():
        best = min(
            accounts.only("pk", "email", "username", "email_key", "username_key"),
            key=lambda user: (
                user.email is None,
                user.email_key != former,
                user.username_key != former,
            ),
            default=None,
        )
    # The address is the stored one: what was typed may only look like it.
    return None if best is None else Reached(best.pk, best.email or best.username or "")

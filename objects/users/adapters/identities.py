"""Which user an identity at a provider belongs to. One identity has one user at most."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.errors import UniqueViolation

from backend.kernel.errors import AccountAlreadyLinked
from objects.database.orm import orm_queries
from objects.users.adapters import ProviderIdentity
from objects.users.models import Identity


def user_of(provider: str, external_id: str) -> str | None:
    """The user with this identity, or None."""
    with orm_queries():
        identities = Identity.objects.filter(provider=provider, external_id=external_id)
        return identities.values_list("user_id", flat=True).first()


def add(user_id: str, identities: Mapping[str, ProviderIdentity | None]) -> None:
    """Give the user these identities. Raises ``AccountAlreadyLinked`` if one is another's."""
    for provider, identity in sorted(identities.items()):
        if identity is None:
            continue
        try:
            with orm_queries():
                Identity.objects.create(provider=provider, external_id=identity.id, user_id=user_id)
        except UniqueViolation:
            raise AccountAlreadyLinked("this auth is already used") from None


def replace(user_id: str, identities: Mapping[str, ProviderIdentity | None]) -> None:
    """Give the user these identities in place of those at the same providers."""
    with orm_queries():
        for provider in sorted(identities):
            Identity.objects.filter(user_id=user_id, provider=provider).delete()
    add(user_id, identities)

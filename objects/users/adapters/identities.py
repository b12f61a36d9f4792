"""Which user an identity at a provider belongs to. One identity has one user at most."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.errors import UniqueViolation

from backend.kernel.errors import AccountAlreadyLinked
from objects.database.statements import fetch
from objects.users.adapters import ProviderIdentity


def user_of(provider: str, external_id: str) -> str | None:
    """The user with this identity, or None."""
    rows = fetch(
        "SELECT user_id FROM objects_identity WHERE provider = %s AND external_id = %s",
        (provider, external_id),
        prepare=True,
    )
    return rows[0][0] if rows else None


def add(user_id: str, identities: Mapping[str, ProviderIdentity | None]) -> None:
    """Give the user these identities. Raises ``AccountAlreadyLinked`` if one is another's."""
    for provider, identity in sorted(identities.items()):
        if identity is None:
            continue
        try:
            fetch(
                "INSERT INTO objects_identity (provider, external_id, user_id) VALUES (%s, %s, %s)",
                (provider, identity.id, user_id),
                prepare=True,
            )
        except UniqueViolation:
            raise AccountAlreadyLinked("this auth is already used") from None


def replace(user_id: str, identities: Mapping[str, ProviderIdentity | None]) -> None:
    """Give the user these identities in place of those at the same providers."""
    for provider in sorted(identities):
        fetch(
            "DELETE FROM objects_identity WHERE user_id = %s AND provider = %s",
            (user_id, provider),
            prepare=True,
        )
    add(user_id, identities)

"""What a custodian is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chain.models.signing import Wallet


class CustodyFailed(Exception):
    """The custodian has not done what it was asked for. The text says why, for the log: without
    addresses of services, tokens and keys."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The user that a wallet is made for."""

    user_id: str
    username: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a custodian wants to see signed by the passkey of a new user, because the user will be
    its user, too. ``token`` is the custodian's, for ``Proof``."""

    challenge: bytes
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer to an invitation: the new passkey in the standard's JSON form."""

    token: str = field(repr=False)
    credential: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """A new wallet. ``wallet_id`` is unique over all custodians; ``key`` is encrypted, and there
    only if the service itself keeps it."""

    wallet_id: str
    network: str
    address: str
    reference: str | None = None
    key: str | None = field(default=None, repr=False)


class Custodian:
    """Who keeps the keys. ``name`` is kept with each wallet."""

    name: ClassVar[str]

    def invite(self, owner: Owner) -> Invitation | None:
        """What a user to be has to sign; None if the custodian doesn't ask for anything. Raises
        ``CustodyFailed``."""
        return None

    def create(self, owner: Owner, networks: Sequence[str], proof: Proof | None) -> Iterator[Made]:
        """A wallet of this user on each network, one after the other. ``proof`` is there for a new
        user who was invited. Asked again for the same, a custodian elsewhere gives what it has
        made, where its API can. Raises ``CustodyFailed``."""
        raise NotImplementedError

    def sign(self, wallet: Wallet, digest: bytes) -> bytes:
        """The 65 bytes of the signature (r, s, v as 0 or 1) of a hash of 32 bytes. Raises
        ``CustodyFailed`` if this custodian doesn't sign."""
        raise CustodyFailed("this custodian doesn't sign for the service")

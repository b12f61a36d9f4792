"""Where an attack takes place: the service's address, its public keys and the data in it."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass
from typing import Any, Self

from bench.failure import BenchFailure

MOUNT = "/api"
VICTIM = "Article"
"""The class that the victim reads and writes."""
CORPUS = "Corpus"
"""Objects with long texts, for expensive queries."""
HEAVY = "Heavy"
"""A find of this class answers some megabytes."""
VICTIM_ADDRESS = "127.0.0.2"


@dataclass(frozen=True, slots=True)
class Scene:
    """The service that is attacked; only a loopback address is accepted."""

    host: str
    port: int
    application: str
    key: str
    article: str
    """The object that the victim gets."""
    file: str
    """The path of a file of 20 MB."""
    username: str
    password: str
    """The victim's account."""
    token: str
    """The session of another user, whom the attackers have signed up."""

    def __post_init__(self) -> None:
        require_loopback(self.host)

    @property
    def client(self) -> dict[str, str]:
        """The headers of any client: the application and a public key."""
        return {
            "X-Svc-Application-Id": self.application,
            "X-Svc-REST-API-Key": self.key,
        }

    @property
    def user(self) -> dict[str, str]:
        """The headers of the user whom the attackers have signed up."""
        return {**self.client, "X-Svc-Session-Token": self.token}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(**values)


def require_loopback(host: str) -> None:
    """Raise ``BenchFailure`` for any target that isn't a loopback address."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise BenchFailure(f"{host} isn't a loopback address: only those are attacked")


def attacker_address(row: int, number: int, addresses: int) -> str:
    """The loopback address of an attacker.

    Every row has addresses of its own, so no row uses up the limits of another.
    """
    place = number % addresses
    return f"127.{row % 250 + 1}.{place // 250}.{place % 250 + 1}"

"""The endpoints of a network: the rows of ``Provider`` and the setting ``RPC_URLS_<id>`` beside
each other, and the public endpoint of the network only if there are neither.

Addresses are read here and passed to the client; they are never shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from cryptography.fernet import InvalidToken

from backend.kernel.encryption import cipher, secret_keys
from backend.settings.conf import service_settings
from chain.models import Blockchain, Provider
from chain.purposes import PROVIDER

_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class Given:
    """An endpoint as it is set up. ``url`` is None if this ``SECRET_KEY`` can't read it."""

    name: str
    source: str
    weight: int
    url: str | None = field(repr=False)
    row: int | None = None
    requests_per_second: int | None = None
    batch_size: int | None = None
    # What the processes have noted in the row.
    paused_until: datetime | None = field(default=None, compare=False)
    checked_at: datetime | None = field(default=None, compare=False)


def seal(url: str) -> str:
    """An address as ``Provider`` keeps it."""
    return cipher(PROVIDER).encrypt(url.encode()).decode()


def given_for(network_id: int) -> list[Given]:
    """The endpoints of a network, in the order in which operators see them."""
    rows = Provider.objects.filter(network_id=network_id, active=True)
    endpoints = [
        Given(
            row.name,
            "provider",
            row.weight,
            opened(row.url),
            row.pk,
            row.requests_per_second,
            row.batch_size,
            row.paused_until,
            row.checked_at,
        )
        for row in rows
    ]
    for number, (url, weight) in enumerate(service_settings.RPC_URLS.get(network_id, ()), 1):
        endpoints.append(Given(f"setting {number}", "setting", weight, url))
    return endpoints or _public(network_id)


def socket_urls() -> dict[int, str]:
    """A WebSocket address of each network that is followed and has one."""
    networks = Blockchain.objects.filter(active=True, network_id__isnull=False)
    public = dict(networks.values_list("network_id", "wss_endpoint"))
    rows = Provider.objects.filter(active=True, socket_url__isnull=False).order_by("weight", "-id")
    own = {row.network_id: opened(row.socket_url or "") for row in rows}
    urls = {network_id: own.get(network_id) or url for network_id, url in public.items()}
    return {network_id: url for network_id, url in urls.items() if url}


def opened(sealed: str) -> str | None:
    """The address that ``seal`` has sealed; None if no key reads it."""
    return _opened(sealed, secret_keys())


@lru_cache(maxsize=1024)
def _opened(sealed: str, keys: tuple[str, ...]) -> str | None:
    try:
        return cipher(PROVIDER).decrypt(sealed).decode()
    except InvalidToken:
        return None


def _public(network_id: int) -> list[Given]:
    rows = Blockchain.objects.filter(network_id=network_id)
    url = rows.values_list("rpc_endpoint", flat=True).first()
    return [Given("public", "public", _WEIGHT, url)] if url else []

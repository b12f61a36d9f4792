"""The service's own endpoints of a network, as staff keep them."""

from __future__ import annotations

from typing import Any, Final

from django.db import IntegrityError

from backend.errors import DuplicateValue, ObjectNotFound, ValidationFailed
from backend.outgoing import parts_of
from chain.gateway.endpoints import Given, seal
from chain.gateway.looking import Look, look_at
from chain.models import Provider
from objects import maintenance

LONGEST: Final = 2000  # characters of an address
_LIMITS: Final = ("requests_per_second", "batch_size", "largest_range")


def add(
    network_id: int,
    name: str,
    url: str,
    *,
    socket_url: str | None = None,
    weight: int = 10,
    **limits: int | None,
) -> Provider:
    """Keep a provider; its addresses are encrypted. ``limits`` are those of the model.

    Raises ``ValidationFailed`` and ``DuplicateValue``.
    """
    if not 0 < len(name) <= 64:
        raise ValidationFailed("name: expected 1 to 64 characters")
    if not 0 <= weight <= 32_767:
        raise ValidationFailed("weight: expected a number from 0 to 32767")
    values: dict[str, Any] = {key: limits[key] for key in _LIMITS if limits.get(key) is not None}
    if any(not 0 < value < 2**31 for value in values.values()):
        raise ValidationFailed("limits: expected numbers from 1 on")
    values["url"] = seal(_checked("url", url, ("http", "https")))
    if socket_url:
        values["socket_url"] = seal(_checked("socket url", socket_url, ("ws", "wss")))
    try:
        with maintenance.writing():
            return Provider.objects.create(
                network_id=network_id, name=name, weight=weight, **values
            )
    except IntegrityError:
        raise DuplicateValue(f"The network has a provider {name} already.") from None


def remove(network_id: int, name: str) -> None:
    """Forget a provider. Raises ``ObjectNotFound``."""
    with maintenance.writing():
        gone, _ = Provider.objects.filter(network_id=network_id, name=name).delete()
    if not gone:
        raise ObjectNotFound(f"The network has no provider {name}.")


def is_address(url: str, schemes: tuple[str, ...]) -> bool:
    """Whether a provider may be asked at this address, which begins with one of the schemes."""
    parts = parts_of(url) if len(url) <= LONGEST else None
    return parts is not None and parts.scheme in schemes


def tried(url: str, *, seconds: float = 5.0) -> Look:
    """What an endpoint answers that isn't kept yet."""
    return look_at([Given("new", "provider", 1, url)], seconds=seconds)[0]


def _checked(what: str, url: str, schemes: tuple[str, ...]) -> str:
    if not is_address(url, schemes):
        # Without the address: it may have a key in it.
        raise ValidationFailed(f"{what}: expected an address that begins with {schemes[-1]}://")
    return url

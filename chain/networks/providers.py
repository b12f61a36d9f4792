"""The service's own endpoints of a network, as staff keep them.

The rules for a provider's fields are here, for the command, REST and the admin. Addresses are
encrypted, since they may have keys in them, and are in no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import IntegrityError

from backend.kernel.errors import DuplicateValue, ObjectNotFound, ValidationFailed
from chain.core.names import network_of, provider_name
from chain.models import Blockchain, Provider
from chain.rpc.addresses import endpoint_of
from chain.rpc.endpoints import Given, opened, seal
from chain.rpc.probes import Look, look_at
from objects.database import maintenance

_SEALED: Final = ("url", "socket_url")


class WrongField(ValidationFailed):
    """A field has a value that it can't have; ``reason`` says what is expected."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def _number(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise ValueError(f"expected a number from {least} to {most}")
        return int(value)

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_limit: Final = _or_none(_number(1, 2**31 - 1))
FIELDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": provider_name,
    "url": endpoint_of("http", "https"),
    "socket_url": _or_none(endpoint_of("ws", "wss")),
    "weight": _number(0, 32_767),
    "requests_per_second": _limit,
    "batch_size": _limit,
    "largest_range": _limit,
    "active": _flag,
}
"""What may be set of a provider: each reader returns the value, or raises ``ValueError``."""


def add(network_id: int, name: str, url: str, **fields: Any) -> Provider:
    """Add a provider, with ``fields`` of ``FIELDS``.

    Raises ``ValidationFailed``, ``DuplicateValue``, and ``ObjectNotFound`` if there is no such
    network.
    """
    values = _checked({"name": name, "url": url, **fields})
    try:
        network_id = network_of(network_id)
    except ValueError as error:
        raise ValidationFailed(f"network: {error}") from None
    try:
        with maintenance.writing():
            check_network(network_id)
            return Provider.objects.create(network_id=network_id, **values)
    except IntegrityError:
        raise _duplicate(name) from None


def check_network(network_id: int) -> None:
    """Raise ``ObjectNotFound`` if there is no such network: its providers would never be used."""
    if not Blockchain.objects.filter(network_id=network_id).exists():
        raise ObjectNotFound(f"There is no network {network_id}. Add it first.")


def change(network_id: int, name: str, fields: Mapping[str, Any]) -> list[str]:
    """Change ``FIELDS`` of a provider, all or none; the names of those that are different now.
    A name from before ``provider_name`` was enforced may stay.

    Raises ``ValidationFailed``, ``ObjectNotFound`` and ``DuplicateValue``.
    """
    if fields.get("name") == name:
        fields = {key: value for key, value in fields.items() if key != "name"}
    values = _checked(fields)
    try:
        with maintenance.writing():
            rows = Provider.objects.select_for_update().filter(network_id=network_id, name=name)
            row = rows.first()
            if row is None:
                raise _missing(name)
            changed = [key for key in values if _differs(row, key, fields[key])]
            for key in changed:
                setattr(row, key, values[key])
            # The gateway writes the rest of the row meanwhile.
            row.save(update_fields=changed)
            return changed
    except IntegrityError:
        raise _duplicate(str(fields.get("name"))) from None


def remove(network_id: int, name: str) -> None:
    """Remove a provider. Raises ``ObjectNotFound``."""
    with maintenance.writing():
        gone, _ = Provider.objects.filter(network_id=network_id, name=name).delete()
    if not gone:
        raise _missing(name)


def tried(url: str, *, seconds: float = 5.0) -> Look:
    """What an endpoint answers that isn't kept yet."""
    return look_at([Given("new", "provider", 1, url)], seconds=seconds)[0]


def complaint_about(network_id: int, url: str) -> str | None:
    """Why an endpoint can't be used for a network, as a sentence without its address; None if it
    answers for it. Raises ``WrongField`` for what is no address."""
    _checked({"url": url})
    answer = tried(url)
    if answer.trouble is not None:
        return f"It doesn't answer ({answer.trouble})."
    if answer.chain_id != network_id:
        return f"It answers for network {answer.chain_id}, not for {network_id}."
    return None


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Columns and their values, addresses encrypted."""
    values = {}
    for key, value in fields.items():
        try:
            values[key] = FIELDS[key](value)
        except ValueError as error:
            raise WrongField(key, str(error)) from None
    return {
        key: seal(value) if key in _SEALED and value is not None else value
        for key, value in values.items()
    }


def _differs(row: Provider, key: str, value: Any) -> bool:
    before = getattr(row, key)
    return bool((opened(before) if key in _SEALED and before else before) != value)


def _missing(name: str) -> ObjectNotFound:
    return ObjectNotFound(f"The network has no provider named {name}.")


def _duplicate(name: str) -> DuplicateValue:
    return DuplicateValue(f"The network has a provider {name} already.")

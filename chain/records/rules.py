"""What the chain's classes ask of their objects beyond schema and permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import models

from backend.kernel.errors import (
    DuplicateValue,
    IncorrectType,
    OperationForbidden,
    ServiceError,
    ValidationFailed,
)
from chain.core import names
from chain.core.names import address_of, network_of
from chain.models import VERIFY_ALL, Blockchain, Cursor
from chain.models.indexing import RESET_PROOFS
from chain.rpc.addresses import endpoint_of
from objects.database.orm import orm_queries
from objects.rules import Change, Rules

_DELETED: Final = {"__op": "Delete"}


def take(change: Change, name: str, read: Callable[[Any], Any]) -> None:
    """Replace a field of the write by its normal form; ``IncorrectType`` if it has none."""
    if name in change.fields:
        try:
            change.fields[name] = read(change.fields[name])
        except ValueError as error:
            raise IncorrectType(f"{name}: {error}") from None


def require(change: Change, *fields: str) -> None:
    """Raise ``ValidationFailed`` if a new object lacks one of these fields."""
    if change.creating:
        for name in fields:
            if change.fields.get(name) is None:
                raise ValidationFailed(f"{name} is required")


def whole_number(value: Any) -> int | None:
    """A whole number from 0 on, or nothing."""
    return None if value is None or value == _DELETED else names.whole_number(value)


def _address(*schemes: str) -> Callable[[Any], Any]:
    """An endpoint's address with one of these schemes, or none; other types are the schema's."""
    read = endpoint_of(*schemes)
    return lambda value: read(value) if isinstance(value, str) and value else value


def _setting(column: str) -> tuple[Any, Callable[[Any], Any]]:
    """The default of a network's setting, and what reads a client's value: the same values as in
    the admin. Removing the setting, or null, restores the default."""
    model_field = Blockchain._meta.get_field(column)
    assert isinstance(model_field, models.BooleanField | models.IntegerField | models.CharField)
    default = None if model_field.null else model_field.default

    def read(value: Any) -> Any:
        if value is None or value == _DELETED:
            return default
        if isinstance(model_field, models.IntegerField):
            value = names.whole_number(value)
        elif isinstance(model_field, models.BooleanField) and not isinstance(value, bool):
            raise ValueError("expected true or false")
        elif model_field.choices and value not in [*dict(model_field.flatchoices)]:
            raise ValueError(f"expected {' or '.join(dict(model_field.flatchoices))}")
        try:
            return model_field.clean(value, None)
        except ValidationError as error:
            raise ValueError(" ".join(error.messages)) from None

    return default, read


_SETTINGS: Final = {
    "active": _setting("active"),
    "confirmations": _setting("confirmations"),
    "pollInterval": _setting("poll_interval"),
    "finalityDepth": _setting("finality_depth"),
    "verify": _setting("verify"),
}


class BlockchainRules(Rules[Change]):
    """A network has an id; ``networkId`` is one, and never changes. Its endpoints are asked if it
    has no others, so they have to be addresses. Its settings are what they may be in the admin."""

    def prepare(self, change: Change) -> None:
        for name, (default, read) in _SETTINGS.items():
            is_clients = name in change.fields and name not in change.server_changes
            if is_clients and not change.principal.may_write_as_master:
                raise OperationForbidden(f"{name}: only the master key sets it")
            take(change, name, read)
            if change.creating and default is not None:
                change.fields.setdefault(name, default)
        require(change, "networkId")
        take(change, "networkId", network_of)
        take(change, "rpcEndpoint", _address("http", "https"))
        take(change, "wssEndpoint", _address("ws", "wss"))

    def before_update(self, change: Change) -> None:
        stored = (change.before or {}).get("networkId")
        if change.fields.get("networkId", stored) != stored:
            raise ValidationFailed("networkId never changes; add another network")

    def after_update(self, change: Change) -> None:
        before = change.before or {}
        if VERIFY_ALL == before.get("verify") != change.fields.get("verify", VERIFY_ALL):
            forget_proofs(network_of(before["networkId"]))

    def error_for(self, constraint: str) -> ServiceError | None:
        if "network_id" in constraint:
            return DuplicateValue("A blockchain with this networkId exists already.")
        return None


def forget_proofs(network_id: int) -> None:
    """Learn again what the headers of a network prove, since its ``verify`` isn't ``all`` any more:
    so an operator ends that a fork of the network, or a provider that lied, has made that wrong.
    Not when it becomes ``all``: nothing would be proved until the next block."""
    with orm_queries():
        Cursor.objects.filter(network_id=network_id).update(**RESET_PROOFS)


class IdentityRules(Rules[Change]):
    """The rules of ``Identity``: a wallet address is valid, and belongs to one user."""

    def prepare(self, change: Change) -> None:
        require(change, "walletAddress")
        take(change, "walletAddress", address_of)

    def error_for(self, constraint: str) -> ServiceError | None:
        if "wallet_address" in constraint:
            return DuplicateValue("An identity with this walletAddress exists already.")
        return None

"""What contracts and their events ask of their objects beyond schema and permissions."""

from __future__ import annotations

from typing import Any

from backend.kernel.errors import DuplicateValue, IncorrectType, ServiceError, ValidationFailed
from chain.core.abi.contract import LONGEST_NAME, check_abi
from chain.core.names import address_of, network_of
from chain.indexing.contract_versions import contracts_changed, every_network_changed
from chain.records.rules import require, take, whole_number
from objects.rules import Change, Rules

_FIXED = ("address", "networkId")
_DELETED = {"__op": "Delete"}


class ContractRules(Rules[Change]):
    """Address, network and ABI are what they should be, and a contract stays at its place. The
    network's reader learns of changes: its cursor's ``contracts`` grows in the transaction of the
    write."""

    def prepare(self, change: Change) -> None:
        require(change, "name", "address", "networkId")
        take(change, "name", _name)
        take(change, "address", address_of)
        take(change, "networkId", network_of)
        take(change, "startBlock", whole_number)
        take(change, "kind", _short)
        take(change, "viewRoles", _role_names)
        take(change, "callRoles", _role_names)
        if change.fields.get("abi", _DELETED) not in (None, _DELETED):
            try:
                check_abi(change.fields["abi"])
            except ValueError as error:
                raise IncorrectType(str(error)) from None
        if change.creating and change.fields.get("listening") is None:
            # Facets are called through their diamond, and it is the diamond that logs.
            change.fields["listening"] = change.fields.get("kind") != "facet"

    def before_update(self, change: Change) -> None:
        for name in _FIXED:
            if name in change.fields and change.fields[name] != (change.before or {}).get(name):
                raise ValidationFailed(f"{name} never changes; register another contract")

    def after_create(self, change: Change) -> None:
        contracts_changed(change.fields)

    def after_update(self, change: Change) -> None:
        contracts_changed(change.before or {})

    def after_delete(self, change: Change) -> None:
        contracts_changed(change.before or {})

    def after_purge(self) -> None:
        every_network_changed()

    def error_for(self, constraint: str) -> ServiceError | None:
        if constraint == "chain_contract_place":
            return DuplicateValue("A contract with this address is registered on this network.")
        return None


class EventRules(Rules[Change]):
    """Events are what the chain says; what is in an index isn't longer than an index bears."""

    def prepare(self, change: Change) -> None:
        for name in ("contractName", "eventName", "address", "networkId", "blockHash"):
            take(change, name, _short)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise ValueError(f"expected a name of at most {LONGEST_NAME} characters")
    return value


def _role_names(value: Any) -> Any:
    """Check who may call: a list that admits no caller by mistake would be noticed late."""
    is_operation = isinstance(value, dict) and "__op" in value
    names = value.get("objects", []) if is_operation else value
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    ):
        raise ValueError("expected a list of names of roles")
    return value


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_NAME:
        raise ValueError(f"expected a text of at most {LONGEST_NAME} characters")
    return value

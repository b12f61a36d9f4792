"""The contracts that are registered on a network, by address or name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import QuerySet

from backend.kernel.errors import ScriptFailed
from chain.core.abi.functions import Function, functions_of
from chain.core.abi.types import BadAbi
from chain.core.names import address_of
from chain.models import SmartContract

FACET, DIAMOND = "facet", "diamond"
_MOST_ABIS: Final = 500


def on_network(network_id: int) -> QuerySet[SmartContract]:
    return SmartContract.objects.filter(network_id=network_id)


def contract_named(network_id: int, name: str) -> SmartContract:
    """The contract of this name or address; of several with one name it is the one that was added
    last, as everywhere. ``ScriptFailed`` if there is none."""
    of_network = on_network(network_id)
    if name[:2].lower() == "0x":
        try:
            contract = of_network.filter(address=address_of(name)).first()
        except ValueError as error:
            raise ScriptFailed(f"Invalid parameter contract: {error}") from None
    else:
        contract = _of_name(network_id, name).first()
    if contract is None:
        raise ScriptFailed(f"No contract {name[:80]!r} is registered on network {network_id}")
    return contract


def _of_name(network_id: int, name: str) -> QuerySet[SmartContract]:
    if "\x00" in name:  # which PostgreSQL has in no text
        return SmartContract.objects.none()
    contracts = on_network(network_id).filter(name=name)
    return contracts.order_by("-created_at", "-object_id")


def facet_named(network_id: int, name: str) -> SmartContract:
    """As ``contract_named`` by name alone; those of the kind ``facet`` come first."""
    of_name = _of_name(network_id, name)
    facet = of_name.filter(kind=FACET).first() or of_name.first()
    if facet is None:
        raise ScriptFailed(f"No facet {name[:80]!r} is registered on network {network_id}")
    return facet


def functions_in(contract: SmartContract) -> list[Function]:
    """The functions of its ABI. ``ScriptFailed`` if that can't be understood."""
    if contract.abi is None:
        raise ScriptFailed(f"The contract {contract.name!r} has no ABI")
    try:
        return functions_of(contract.abi)
    except BadAbi as error:
        raise ScriptFailed(f"The ABI of {contract.name!r}: {error}") from None


def abis_of(network_id: int, *first: SmartContract) -> Iterator[Any]:
    """ABIs that may know a contract's errors: of these contracts, then of all of the network. Read
    from the database when they are asked for."""
    yield from (contract.abi for contract in first)
    other_contracts = on_network(network_id).exclude(pk__in=[contract.pk for contract in first])
    yield from other_contracts.values_list("abi", flat=True)[:_MOST_ABIS]

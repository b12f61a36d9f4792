"""``loadAllBlockchains``, ``loadProviderUrl``, ``loadProviderWebSocketUrl`` and
``loadSmartContractsForNetwork``: the networks and contracts that clients work with.

All of them hand out what the caller may read of the classes ``Blockchain`` and ``SmartContract``:
public addresses. The service's own endpoints (``Provider``) are nowhere in here.
"""

from __future__ import annotations

from typing import Any

from backend.kernel.errors import ScriptFailed
from chain.core.names import network_of
from functions import FunctionRequest
from functions.runtime.registry import function
from functions.runtime.values import Object

_SHOWN = ("networkId", "name", "symbol", "code", "explorer")
_CONTRACT = ("name", "address", "abi", "networkId")
_PAGE = 100  # contracts, whose ABIs may be large


@function("loadAllBlockchains")
def load_all_blockchains(request: FunctionRequest) -> list[dict[str, Any]]:
    """All networks by their ids: ``[{networkId, providerUrl, name, symbol, code, explorer}]``.

    ``providerUrl`` is the network's public endpoint. What isn't known of a network is null.
    """
    blockchains = list(request.objects("Blockchain").keys(*_SHOWN, "rpcEndpoint").each())
    blockchains.sort(key=lambda network: network.get("networkId") or 0)
    return [
        {"providerUrl": network.get("rpcEndpoint"), **{name: network.get(name) for name in _SHOWN}}
        for network in blockchains
    ]


@function("loadProviderUrl")
def load_provider_url(request: FunctionRequest, networkId: int | float | str) -> str:
    """The public endpoint of a network. It is error 141 if there is no such network, or no
    endpoint of it."""
    network_id = number_of(networkId)
    url = _network(request, network_id, "rpcEndpoint").get("rpcEndpoint")
    if not isinstance(url, str) or not url:
        raise ScriptFailed(f"The blockchain with networkId {network_id} has no provider URL")
    return url


@function("loadProviderWebSocketUrl")
def load_provider_web_socket_url(
    request: FunctionRequest, networkId: int | float | str
) -> str | None:
    """The public WebSocket endpoint of a network; null if it has none. An unknown network is error
    141."""
    url = _network(request, number_of(networkId), "wssEndpoint").get("wssEndpoint")
    return url if isinstance(url, str) and url else None


@function("loadSmartContractsForNetwork")
def load_smart_contracts_for_network(
    request: FunctionRequest, networkId: int | float | str
) -> dict[str, dict[str, Any]]:
    """The contracts of a network by their names: ``{NAME: {name, address, abi, networkId}}``.

    Of several with one name it is the one that was added last.
    """
    contracts = request.objects("SmartContract").where(networkId=number_of(networkId))
    contracts_of_network = list(contracts.keys(*_CONTRACT, "createdAt").each(_PAGE))
    contracts_of_network.sort(key=lambda contract: (contract["createdAt"], contract.id))
    return {
        contract["name"]: {name: contract.get(name) for name in _CONTRACT}
        for contract in contracts_of_network
        if contract.get("name")
    }


def number_of(network_id: int | float | str) -> int:
    """The number of a network from a parameter ``networkId``, which may be its digits."""
    try:
        return network_of(network_id)
    except ValueError as error:
        raise ScriptFailed(f"Invalid parameter networkId: {error}") from None


def _network(request: FunctionRequest, network_id: int, field: str) -> Object:
    network = request.objects("Blockchain").where(networkId=network_id).keys(field).first()
    if network is None:
        raise ScriptFailed(f"No blockchain found for networkId: {network_id}")
    return network

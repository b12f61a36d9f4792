"""``addDiamondFacet``: add the functions of a facet to a diamond (EIP-2535)."""

from __future__ import annotations

from typing import Any

from backend.kernel.errors import ScriptFailed
from chain.core.names import address_of
from chain.sending.facets import add_facet
from functions import FunctionRequest
from functions.library.blockchains import number_of
from functions.library.contracts import CONTRACT_ADMIN, TIME_LIMIT
from functions.library.rights import check_login, missing_right
from functions.runtime.registry import function


@function("addDiamondFacet", time_limit=TIME_LIMIT)
def add_diamond_facet(
    request: FunctionRequest, networkId: int | float | str, diamondAddress: str, facetName: str
) -> dict[str, Any]:
    """Add the functions of a registered facet to a diamond, by a transaction of the network's
    signer: ``{transactionHash, status: "pending", selectors}``.

    The diamond's loupe is read first, and the cut is simulated: a collision or a revert is error
    141 with the reason, and nothing is sent. Requires the master key or the role
    ``ContractAdmin``.
    """
    network_id = number_of(networkId)
    try:
        diamond = address_of(diamondAddress)
    except ValueError as error:
        raise ScriptFailed(f"Invalid parameter diamondAddress: {error}") from None
    if not facetName.strip():
        raise ScriptFailed("Invalid parameter facetName: expected the name of a contract")
    if "privateKey" in request.params:
        raise ScriptFailed("Invalid parameter privateKey: the service's own signer signs")
    check_login(request)
    if not request.master and CONTRACT_ADMIN not in request.roles:
        raise missing_right(f"the master key or the role {CONTRACT_ADMIN} is required")
    added = add_facet(network_id, diamond, facetName)
    return {
        "transactionHash": added.transaction_hash,
        "status": "pending",
        "selectors": added.selectors,
    }

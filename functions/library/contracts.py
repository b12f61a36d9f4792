"""``viewMethod`` and ``callMethod``: the methods of registered contracts.

The ``SmartContract`` names the roles that are allowed: ``viewRoles`` and ``callRoles``. By default
all logged-in users may read, and the role ``ContractAdmin`` may call. ``*`` among the ``viewRoles``
allows all clients; ``callRoles`` can't, since calls spend the signer's ether. The master key
allows both.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from backend.kernel.errors import ScriptFailed
from backend.kernel.principal import EVERYBODY
from chain.models import SmartContract
from chain.sending.calls import call, view
from chain.sending.contracts import contract_named
from functions import FunctionRequest, RateLimit
from functions.library.blockchains import number_of
from functions.library.rights import check_login, missing_right
from functions.runtime.registry import function

CONTRACT_ADMIN: Final = "ContractAdmin"
TIME_LIMIT: Final = 60.0
"""Seconds: networks are asked several times."""

_VIEWS: Final = RateLimit(count=300, window=60, per="user")
_WEI = re.compile(r"[0-9]{1,78}")

# Not said by types: generators of clients want to know more of a list than can be known.
Arguments = Annotated[Any, "A list in the method's order, or an object by names."]


@function("viewMethod", rate_limit=_VIEWS, time_limit=TIME_LIMIT)
def view_method(
    request: FunctionRequest,
    networkId: int | float | str,
    contract: str,
    method: str,
    args: Arguments = None,
) -> Any:
    """Call a read-only method of a registered contract and return its result.

    ``contract`` is its name or address, ``method`` a name, or a signature such as
    ``balanceOf(address)`` where several have the name; ``args`` are in order, or by their names.
    Integers wider than 48 bits are decimal texts, both ways.
    """
    network_id = _checked(networkId, contract, method, args)
    smart_contract = contract_named(network_id, contract)
    if not _may_view(request, smart_contract):
        check_login(request)
        raise missing_right("a role that may read this contract is required")
    return view(smart_contract, method, [] if args is None else args)


@function("callMethod", time_limit=TIME_LIMIT)
def call_method(
    request: FunctionRequest,
    networkId: int | float | str,
    contract: str,
    method: str,
    args: Arguments = None,
    value: int | str = 0,
) -> dict[str, str]:
    """Call a method of a registered contract by a transaction of the network's signer:
    ``{transactionHash, status: "pending"}``. ``value`` is wei.

    The call is simulated first: a revert is error 141 with the reason, and nothing is sent.
    """
    network_id = _checked(networkId, contract, method, args)
    wei = _wei(value)
    check_login(request)
    smart_contract = contract_named(network_id, contract)
    if not _may_call(request, smart_contract):
        raise missing_right("the master key or a role that may call this contract is required")
    sent = call(smart_contract, method, [] if args is None else args, wei)
    return {"transactionHash": sent, "status": "pending"}


def _checked(network_id: int | float | str, contract: str, method: str, args: Any) -> int:
    if not isinstance(args, list | dict | None):
        raise ScriptFailed("Invalid parameter args: expected a list, or an object by names")
    for name, value in (("contract", contract), ("method", method)):
        if not value.strip():
            raise ScriptFailed(f"Invalid parameter {name}: expected a name")
    return number_of(network_id)


def _wei(value: int | str) -> int:
    if isinstance(value, str) and _WEI.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or not 0 <= value < 2**256:
        raise ScriptFailed("Invalid parameter value: expected an amount of wei (a decimal text)")
    return value


def _may_view(request: FunctionRequest, contract: SmartContract) -> bool:
    if request.principal.has_master_key:
        return True
    if contract.view_roles is None:
        return request.user_id is not None
    allowed = _names(contract.view_roles)
    return EVERYBODY in allowed or not request.roles.isdisjoint(allowed)


def _may_call(request: FunctionRequest, contract: SmartContract) -> bool:
    if request.master:
        return True
    allowed = {CONTRACT_ADMIN} if contract.call_roles is None else _names(contract.call_roles)
    return not request.roles.isdisjoint(allowed - {EVERYBODY})


def _names(roles: Any) -> set[str]:
    return {name for name in roles if isinstance(name, str)} if isinstance(roles, list) else set()

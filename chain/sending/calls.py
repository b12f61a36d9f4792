"""Calling methods of registered contracts: to read, and to change something by a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.kernel.errors import ScriptFailed
from chain.core.abi import diamonds
from chain.core.abi.functions import Function, NoSuchFunction, chosen, named, revert_reason
from chain.core.abi.types import BadValue
from chain.models import SmartContract
from chain.rpc import contracts
from chain.rpc.contracts import Call, Reverted
from chain.sending.contracts import DIAMOND, FACET, abis_of, functions_in, on_network
from chain.sending.node_access import ask, known_network
from chain.sending.outgoing import send
from objects.database import maintenance

PURPOSE: Final = "callMethod"
_MOST_CANDIDATES: Final = 50
_MOST_FACETS: Final = 500


def view(contract: SmartContract, method: str, args: Any) -> Any:
    """What a method answers that only reads, in JSON. ``ScriptFailed`` for a method or arguments
    that don't fit, or the contract's reason to refuse."""
    network_id, address = _place(contract)
    function = _function(contract, method, args)
    if not function.only_reads:
        raise ScriptFailed(f"{function.signature} changes the contract: callMethod calls it")
    call = Call(address, _data(function, args))
    try:
        answer = ask(network_id, lambda node: contracts.call(node, call))
    except Reverted as refusal:
        raise _refused(contract, refusal) from None
    if function.outputs and not answer:
        raise ScriptFailed(f"There is no contract at {address} that has {function.signature}")
    try:
        return function.result(answer)
    except BadValue as error:
        raise ScriptFailed(f"{function.signature}: {error}") from None


def call(contract: SmartContract, method: str, args: Any, value: int) -> str:
    """Send a transaction that calls a method, and ``value`` wei with it; its hash. As ``send``."""
    maintenance.check()
    network_id, address = _place(contract)
    function = _function(contract, method, args)
    if function.only_reads:
        raise ScriptFailed(f"{function.signature} only reads: viewMethod calls it")
    if value and function.mutability != "payable":
        raise ScriptFailed(f"Invalid parameter value: {function.signature} takes no ether")
    return send(
        network_id,
        address,
        _data(function, args),
        purpose=PURPOSE,
        value=value,
        abis=abis_of(network_id, contract),
    )


def _place(contract: SmartContract) -> tuple[int, str]:
    if contract.network_id is None or not contract.address:
        raise ScriptFailed(f"The contract {contract.name!r} has no address on a network")
    return known_network(contract.network_id), contract.address


def _data(function: Function, args: Any) -> str:
    try:
        return function.call_data(args)
    except BadValue as error:
        raise ScriptFailed(f"Invalid parameter {error}") from None


def _function(contract: SmartContract, method: str, args: Any) -> Function:
    candidates = named(functions_in(contract), method)
    if not candidates and contract.kind == DIAMOND:
        candidates = _of_facets(contract, method)
    try:
        return chosen(candidates, method, args)
    except NoSuchFunction as error:
        where = "args" if candidates else "method"
        raise ScriptFailed(f"Invalid parameter {where}: {error}") from None


def _of_facets(diamond: SmartContract, method: str) -> list[Function]:
    """The methods of this name that a diamond has from registered facets, as its loupe says."""
    network_id, address = _place(diamond)
    offered: Mapping[str, tuple[Function, str]] = {
        function.selector: (function, facet.address)
        for facet in on_network(network_id).filter(kind=FACET, abi__isnull=False)[:_MOST_FACETS]
        if facet.address
        for function in named(functions_in(facet), method)
    }
    candidates = [*offered][:_MOST_CANDIDATES]
    questions = [Call(address, diamonds.question(selector)) for selector in candidates]
    answers = ask(network_id, lambda node: contracts.calls(node, questions)) if candidates else []
    functions_found = []
    for selector, answer in zip(candidates, answers, strict=True):
        function, facet_address = offered[selector]
        try:
            has = isinstance(answer, bytes) and diamonds.facet_in(answer) == facet_address
        except BadValue:
            has = False
        if has:
            functions_found.append(function)
    return functions_found


def _refused(contract: SmartContract, refusal: Reverted) -> ScriptFailed:
    assert contract.network_id is not None
    abis = abis_of(contract.network_id, contract)
    reason = revert_reason(refusal.data, abis, refusal.message)
    return ScriptFailed(f"The contract refuses: {reason}")

"""How far a network has counted an account's transactions, when one node's word isn't enough.

A nonce that is too high leaves a gap that everything behind it waits for; one that is too low is
refused when it is used. So of a jump the lowest is believed that two nodes say.
"""

from __future__ import annotations

from typing import Final

from backend.logs.setup import get_logger
from chain import rpc
from chain.core.failures import NodeFailure
from chain.rpc import contracts
from chain.sending import nonces

_SECONDS: Final = 5.0

log = get_logger("sending")


def believed(account: nonces.Account, stored: int | None, reported: int) -> int:
    """The account's next nonce, transactions that wait among it, of which a node has said that it
    is ``said``.

    Up to ``known``, which the service has counted itself, it is believed. If it is higher, the
    account is used elsewhere, or the node doesn't tell the truth: two are asked (the same one
    again where there is no other) and the lowest holds. If it is so low that ``take`` would
    go back behind a gap, the highest does.
    """
    is_jump = reported > (stored or 0)
    if not is_jump and not nonces.left_out(account, stored, reported):
        return reported
    try:
        other_counts = rpc.ask_several(
            account.network_id,
            lambda node: contracts.nonce_of(node, account.address, "pending"),
            seconds=_SECONDS,
        )
    except NodeFailure:
        return reported
    count = (min if is_jump else max)([reported, *other_counts])
    if count != reported:
        log.warning(
            "nodes count an account's transactions differently",
            network=account.network_id,
            account=account.address,
            said=[reported, *other_counts],
        )
    return count

"""``monitorTransaction``: monitor a transaction that a client has sent."""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import ScriptFailed
from chain import monitor
from chain.core.names import hash_of
from chain.sending.node_access import known_network
from functions import FunctionRequest, RateLimit
from functions.library.blockchains import number_of
from functions.library.rights import check_login, missing_right
from functions.runtime.registry import function
from functions.runtime.values import Object

_CLASS: Final = "Transaction"
# Without a limit, a user could cause an unlimited number of requests to the nodes.
_LIMIT: Final = RateLimit(count=100, window=60, per="user")


@function("monitorTransaction", rate_limit=_LIMIT)
def monitor_transaction(
    request: FunctionRequest, networkId: int | float | str, hash: str
) -> Object:
    """Monitor a transaction until it is confirmed, failed or stalled; return its ``Transaction``.

    A hash that is already monitored returns the existing record. A record on another network, no
    node of which has ever seen the hash, moves to this network if one of its nodes knows the hash.
    Requires the master key, or a logged-in user and a network that the service indexes.
    """
    network_id = number_of(networkId)
    try:
        tx_hash = hash_of(hash)
    except ValueError as error:
        raise ScriptFailed(f"Invalid parameter hash: {error}") from None
    check_login(request)
    if request.read_only:
        raise missing_right("the master key is required, the read-only one isn't enough")
    if not request.master:
        # A hash has a single record: a user could block it by naming a network without an indexer.
        known_network(network_id)
    monitor.claim(network_id, tx_hash)
    started = request.objects.as_master(_CLASS).create(hash=tx_hash, networkId=str(network_id))
    return request.objects(_CLASS).get(started.id)

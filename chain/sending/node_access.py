"""Requests to a network while a client waits: failures become errors of the
service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from backend.kernel.errors import ScriptFailed, ServiceUnavailable
from backend.kernel.texts.redaction import mask_text
from backend.logs.setup import get_logger
from chain import rpc
from chain.core.failures import NodeFailure, Unavailable
from chain.core.node import Node
from chain.models import Blockchain

SECONDS: Final = 10.0
_LONGEST: Final = 200

log = get_logger("sending")

_T = TypeVar("_T")


def ask(network_id: int, step: Callable[[Node], _T], *, seconds: float = SECONDS) -> _T:
    """The outcome of ``step`` with a node. Raises ``ServiceUnavailable`` if none answers,
    ``ScriptFailed`` for what all nodes refuse, and what ``step`` itself raises."""
    try:
        return rpc.attempt(network_id, step, seconds=seconds)
    except NodeFailure as failure:
        if isinstance(failure, Unavailable) and failure.refusal is not None:
            text = mask_text(failure.refusal.message)[:_LONGEST]
            raise ScriptFailed(f"Network {network_id} refuses: {text}") from None
        log.warning("network can't be asked", network=network_id, reason=str(failure))
        raise ServiceUnavailable(
            f"Network {network_id} can't be reached at the moment."
        ) from failure


def known_network(network_id: int) -> int:
    """The id, if it is one of a network that is there. ``ScriptFailed`` if not."""
    if not Blockchain.objects.filter(network_id=network_id, active=True).exists():
        raise ScriptFailed(f"No blockchain found for networkId: {network_id}")
    return network_id

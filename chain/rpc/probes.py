"""Probe each endpoint of a network for operators, without any effect on its health."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from chain.core.failures import NodeFailure
from chain.rpc.client.json_rpc import Endpoint
from chain.rpc.endpoints import Given, given_for

_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Look:
    """What an endpoint has answered: the network it is of and its head, or what went wrong."""

    name: str
    source: str
    chain_id: int | None = None
    head: int | None = None
    trouble: str | None = None


def look(network_id: int, *, seconds: float = 3.0) -> list[Look]:
    """Ask each endpoint of a network which network it is of, and for its head."""
    return look_at(given_for(network_id), seconds=seconds)


def look_at(endpoints: list[Given], *, seconds: float = 3.0) -> list[Look]:
    """As ``look``, for endpoints that are given, all at once."""
    if not endpoints:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(endpoints))) as threads:
        return [*threads.map(lambda endpoint: _look(endpoint, seconds), endpoints)]


def _look(configured: Given, seconds: float) -> Look:
    if configured.url is None:
        return Look(configured.name, configured.source, trouble="its address can't be read")
    try:
        endpoint = Endpoint(configured.url, timeout=seconds)
    except ValueError:
        return Look(configured.name, configured.source, trouble="its address isn't one")
    try:
        chain_id = endpoint.call(("eth_chainId", ()), str)
        head = endpoint.call(("eth_blockNumber", ()), str)
        return Look(configured.name, configured.source, int(chain_id, 16), int(head, 16))
    except NodeFailure as failure:
        return Look(configured.name, configured.source, trouble=str(failure))
    except ValueError:
        return Look(configured.name, configured.source, trouble="an answer that isn't a number")
    finally:
        endpoint.close()

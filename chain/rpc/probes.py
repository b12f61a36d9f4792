"""Looking at every endpoint of a network by itself, for operators: nothing is learned from it."""

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


def look_at(given: list[Given], *, seconds: float = 3.0) -> list[Look]:
    """As ``look``, for endpoints that are given, all at once."""
    if not given:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as threads:
        return [*threads.map(lambda one: _look(one, seconds), given)]


def _look(given: Given, seconds: float) -> Look:
    if given.url is None:
        return Look(given.name, given.source, trouble="its address can't be read")
    try:
        endpoint = Endpoint(given.url, timeout=seconds)
    except ValueError:
        return Look(given.name, given.source, trouble="its address isn't one")
    try:
        chain_id = endpoint.call(("eth_chainId", ()), str)
        head = endpoint.call(("eth_blockNumber", ()), str)
        return Look(given.name, given.source, int(chain_id, 16), int(head, 16))
    except NodeFailure as failure:
        return Look(given.name, given.source, trouble=str(failure))
    except ValueError:
        return Look(given.name, given.source, trouble="an answer that isn't a number")
    finally:
        endpoint.close()

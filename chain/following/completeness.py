"""Logs that a node hasn't told of: noticed by the headers, and asked for again.

A node's index of logs may be behind its blocks, and one address may be many machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from time import monotonic
from typing import Final

from backend.logs import get_logger
from chain.core import links
from chain.core.bloom import Watch, is_complete
from chain.core.failures import TryAgain
from chain.core.node import Header, Log, LogFilter, Node

PATIENCE: Final = 600.0
"""Seconds that a network waits for logs that a header speaks of."""
_MOST_DOUBTED: Final = 1000
_doubted: dict[str, float] = {}

log = get_logger("chain")


def completed(
    node: Node, headers: Sequence[Header], logs: Sequence[Log], wanted: LogFilter, *, by_hash: bool
) -> list[Log]:
    """The wanted logs of these blocks, given those that the node has answered at first.

    A block whose header speaks of others is asked about by its hash (unless it was at first), and
    then for all its logs: those make up the header's filter, or the node hasn't got them all yet,
    which raises ``TryAgain``: another provider may. What nobody has had for ``PATIENCE`` is done
    without, and left to audits: a header that is wrong must not end the reading of its network.
    """
    found = links.belonging(logs, headers)
    silent = _silent(headers, found, wanted)
    if silent and not by_hash:
        again = node.logs_of(wanted, [one.hash for one in silent])
        found = links.belonging(_exchanged(found, silent, again), headers)
        silent = _silent(silent, found, wanted)
    if silent:
        whole = node.logs_of(LogFilter(), [one.hash for one in silent])
        for one, its in zip(silent, whole, strict=True):
            if not is_complete(one, its):
                _doubt(node.network_id, one)
        addresses = {address.lower() for address in wanted.addresses}
        ours = [[one for one in its if one.address.lower() in addresses] for its in whole]
        found = links.belonging(_exchanged(found, silent, ours), headers)
    return found


def _doubt(network_id: int, header: Header) -> None:
    now = monotonic()
    since = _doubted.setdefault(header.hash, now)
    if now - since < PATIENCE:
        while len(_doubted) > _MOST_DOUBTED:
            _doubted.pop(next(iter(_doubted)))
        raise TryAgain(f"logs are missing that the header of block {header.height} speaks of")
    log.error("a block is stored without logs", network=network_id, block=header.height)


def _silent(headers: Sequence[Header], logs: Sequence[Log], wanted: LogFilter) -> list[Header]:
    watch = _watch(wanted)
    heard: dict[str, set[str]] = {}
    for one in logs:
        heard.setdefault(one.block_hash, set()).add(one.address.lower())
    return [one for one in headers if watch.silent(one, heard.get(one.hash, ()))]


def _exchanged(
    logs: Sequence[Log], blocks: Sequence[Header], answers: Sequence[Sequence[Log]]
) -> list[Log]:
    again = {one.hash for one in blocks}
    kept = [one for one in logs if one.block_hash not in again]
    return kept + [one for its in answers for one in its]


@lru_cache(maxsize=64)
def _watch(wanted: LogFilter) -> Watch:
    return Watch(wanted)

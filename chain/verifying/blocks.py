"""Blocks whose headers are at hand: their logs, checked both ways and repaired if possible.

A node's index of logs may be behind its blocks or damaged, one address may be many machines, and a
provider may lie. A log that the header's filter doesn't name is not in the block, and a contract
that the filter names and that has no log is looked for: by the hash of the block, then in all logs
of the block, then in its receipts. What the receipts say counts if they are those that the header
commits to.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from functools import lru_cache
from time import monotonic
from typing import Final

from backend.logs import get_logger
from chain.core import links
from chain.core.block_hashes import hash_of
from chain.core.bloom import Watch, is_complete, names, value_of
from chain.core.failures import Contradiction, TryAgain
from chain.core.node import Header, Log, LogFilter, LoggedReceipt, Node
from chain.core.receipts import have_bloom, have_root, logs_in
from chain.verifying import capabilities
from chain.verifying.hashes import check_hashes
from chain.verifying.noting import note_contradiction
from chain.verifying.schemes import Scheme

PATIENCE: Final = 600.0
"""Seconds that a network waits for logs that a header speaks of whose hash can't be checked."""
_DOUBTED: Final = 0.05  # the share of blocks looked at more closely because their filters are full
_MOST_REMEMBERED: Final = 1000
_AT_ONCE: Final = 8  # blocks whose receipts are requested together: they may be large
_REPAIRED: Final = "its logs weren't those of its receipts, which were taken instead"
_doubted: dict[str, float] = {}

log = get_logger("chain")


def verified(
    node: Node,
    headers: Sequence[Header],
    logs: Sequence[Log],
    wanted: LogFilter,
    scheme: Scheme,
    *,
    by_hash: bool,
) -> list[Log]:
    """The wanted logs of these blocks, given those that the node answered at first (``by_hash``:
    to questions for the hashes of the blocks).

    The headers' hashes are computed as well. Raises ``Contradiction`` for what can't be true and
    can't be repaired with this node, so another provider may be asked; ``Moved`` if the chain has
    changed meanwhile.
    """
    check_hashes(node, headers, scheme)
    found = links.belonging(logs, headers)
    invented = _unnamed(node.network_id, headers, found)
    silent = _silent(headers, found, wanted)
    if (invented or silent) and not by_hash:
        again = [one for one in headers if one.hash in invented | silent]
        answers = node.logs_of(wanted, [one.hash for one in again])
        found = links.belonging(_exchanged(found, again, answers), headers)
        invented = _unnamed(node.network_id, again, found)
        silent &= _silent(again, found, wanted)
    if scheme.every_block:
        examined = _having(headers, found, wanted)
    else:
        examined = invented | {
            one for one in _having(headers, found, wanted) if _is_drawn(scheme.share)
        }
        incomplete = [one for one in headers if one.hash in silent - examined]
        found, silent = _with_all_logs(node, incomplete, found, wanted)
        examined |= silent
    checked = _examined(node, headers, examined, found, wanted, scheme, doubted=invented | silent)
    if not _same(checked, found):
        # The provider was wrong about one of these blocks: the sample doesn't suffice for the rest.
        rest = _having(headers, checked, wanted) - examined
        checked = _examined(node, headers, rest, checked, wanted, scheme, doubted=())
    return links.belonging(checked, headers)


def is_doubtful(network_id: int, header: Header, logs: Sequence[Log], wanted: LogFilter) -> bool:
    """Whether the header's filter contradicts these logs of its block, one way or the other."""
    return bool(_unnamed(network_id, [header], logs) or _silent([header], logs, wanted))


def forget() -> None:
    """Begin as a new process does."""
    _doubted.clear()


# -- Which blocks are looked at more closely, by their hashes --------------------------------------


def _unnamed(network_id: int, headers: Sequence[Header], logs: Sequence[Log]) -> set[str]:
    """Blocks with a log that their filters don't name."""
    if capabilities.has_unnamed_logs(network_id):
        return set()
    by_hash = {one.hash: one for one in headers if not _has_no_filter(one)}
    return {
        one.block_hash
        for one in logs
        if one.block_hash in by_hash and not names(by_hash[one.block_hash], one)
    }


def _silent(headers: Sequence[Header], logs: Sequence[Log], wanted: LogFilter) -> set[str]:
    """Blocks whose filters name a contract that has no log. Of full filters, which name contracts
    by coincidence, so many that one block in twenty is looked at in vain."""
    watch = _watch(wanted)
    heard: dict[str, set[str]] = {}
    for log_ in logs:
        heard.setdefault(log_.block_hash, set()).add(log_.address.lower())
    return {
        one.hash
        for one in headers
        if any(name not in heard.get(one.hash, ()) for name in watch.named(one))
        and _is_drawn(_DOUBTED / max(_DOUBTED, watch.chance(one)))
    }


def _having(headers: Sequence[Header], logs: Sequence[Log], wanted: LogFilter) -> set[str]:
    """Blocks with wanted logs, and those whose filters don't exclude any."""
    watch = _watch(wanted)
    named = {one.hash for one in headers if watch.named(one) or _has_no_filter(one)}
    return named | {one.block_hash for one in logs}


def _has_no_filter(header: Header) -> bool:
    """Some networks leave the filter empty; they don't have Ethereum's hashes either."""
    return not value_of(header) and hash_of(header) is None


def _is_drawn(share: float) -> bool:
    return share >= 1 or random.random() < share


# -- What they have -------------------------------------------------------------------------------


def _with_all_logs(
    node: Node, headers: Sequence[Header], logs: list[Log], wanted: LogFilter
) -> tuple[list[Log], set[str]]:
    """The logs, with those of these blocks taken from the answers for all contracts, and the blocks
    for which not even these make up the filter."""
    whole = node.logs_of(LogFilter(), [one.hash for one in headers]) if headers else []
    addresses = {address.lower() for address in wanted.addresses}
    ours = [[one for one in its if one.address.lower() in addresses] for its in whole]
    pairs = zip(headers, whole, strict=True)
    incomplete = {one.hash for one, its in pairs if not is_complete(one, its)}
    return _exchanged(logs, headers, ours), incomplete


def _examined(
    node: Node,
    headers: Sequence[Header],
    hashes: Collection[str],
    logs: list[Log],
    wanted: LogFilter,
    scheme: Scheme,
    *,
    doubted: Collection[str],
) -> list[Log]:
    """The logs, with those of the blocks with these hashes taken from the blocks' receipts."""
    closely = [header for header in headers if header.hash in hashes]
    for at in range(0, len(closely), _AT_ONCE):
        part = closely[at : at + _AT_ONCE]
        truth = _from_receipts(node, part, logs, wanted, scheme, doubted=doubted)
        logs = _exchanged(logs, part, truth)
    return logs


def _from_receipts(
    node: Node,
    headers: Sequence[Header],
    logs: Sequence[Log],
    wanted: LogFilter,
    scheme: Scheme,
    *,
    doubted: Collection[str],
) -> list[list[Log]]:
    """The wanted logs of each of these blocks, by its receipts; the given ones where the receipts
    prove nothing and nothing else is doubtful."""
    found = []
    repaired = []
    for header, receipts in zip(headers, node.block_receipts(headers), strict=True):
        given = [one for one in logs if one.block_hash == header.hash]
        if receipts is None:
            if scheme.every_block or header.hash in doubted:
                raise TryAgain(f"the provider doesn't have the receipts of block {header.height}")
            found.append(given)
            continue
        truth = logs_in(header, receipts, wanted)
        differs = not _same(truth, given)
        is_proven = have_root(header, receipts)
        fault = _fault(node.network_id, header, receipts, scheme, is_proven=is_proven)
        if fault is None and differs and not is_proven:
            fault = "its logs and its receipts differ"
        if is_proven and receipts:
            capabilities.learn(node.network_id, "proves_receipts")
        if fault is None and differs:
            repaired.append(header.height)
        if fault is not None:
            _doubt(node, header, fault, scheme)
        found.append(given if fault is not None else truth)
    note_contradiction(node, repaired, _REPAIRED, scheme, is_settled=True)
    return found


def _fault(
    network_id: int,
    header: Header,
    receipts: Sequence[LoggedReceipt],
    scheme: Scheme,
    *,
    is_proven: bool,
) -> str | None:
    """Why these can't be the receipts of the block; ``is_proven`` if they have its root, which
    doesn't commit to hashes of transactions."""
    if capabilities.has_unnamed_logs(network_id):
        logs = [one for receipt in receipts for one in receipt.logs]
        return None if is_complete(header, logs) else "its receipts lack logs"
    sent = [one.transaction_hash.lower() for one in receipts]
    if sent != [one.lower() for one in header.transactions]:
        return "its receipts are of other transactions"
    if is_proven:
        return None
    if scheme.every_block and capabilities.has(network_id, "proves_receipts"):
        return "its receipts have another root"
    if _has_no_filter(header) or have_bloom(header, receipts):
        return None
    return "its receipts have other logs"


def _doubt(node: Node, header: Header, fault: str, scheme: Scheme) -> None:
    """Raise ``Contradiction``; unless it has lasted, and the header itself may be what is wrong."""
    now = monotonic()
    if header.hash not in _doubted:
        _doubted[header.hash] = now
        while len(_doubted) > _MOST_REMEMBERED:
            _doubted.pop(next(iter(_doubted)))
        note_contradiction(node, [header.height], fault, scheme)
    if (
        scheme.every_block
        or now - _doubted[header.hash] < PATIENCE
        or capabilities.has(node.network_id, "proves_hashes")
    ):
        raise Contradiction(f"block {header.height}: {fault}")
    log.error("a block is stored that is in doubt", network=node.network_id, block=header.height)


# -- Lists ----------------------------------------------------------------------------------------


def _same(logs: Sequence[Log], others: Sequence[Log]) -> bool:
    return {*map(links.facts, logs)} == {*map(links.facts, others)}


def _exchanged(
    logs: Sequence[Log], blocks: Sequence[Header], answers: Sequence[Sequence[Log]]
) -> list[Log]:
    again = {one.hash for one in blocks}
    kept = [one for one in logs if one.block_hash not in again]
    return kept + [one for its in answers for one in its]


@lru_cache(maxsize=64)
def _watch(wanted: LogFilter) -> Watch:
    return Watch(wanted)

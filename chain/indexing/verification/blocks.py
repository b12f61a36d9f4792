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

from backend.logs.setup import get_logger
from chain.core.blocks import consistency
from chain.core.blocks.bloom import Watch, is_complete, names_all, value_of
from chain.core.blocks.hashes import has_own_hash, hash_of
from chain.core.blocks.receipts import have_bloom, have_root, logs_in
from chain.core.failures import Contradiction, MissingReceipts, NodeFailure
from chain.core.node import Header, Log, LogFilter, Node, Receipts
from chain.indexing.verification import capabilities
from chain.indexing.verification.contradictions import note_contradiction
from chain.indexing.verification.hashes import check_hashes
from chain.indexing.verification.schemes import Scheme

PATIENCE: Final = 600.0
"""Seconds until a block is stored that its receipts contradict. Only where a sample is checked, on
networks whose header hashes can't be computed: there the header may be what is wrong."""
_DOUBTED: Final = 0.05  # the share of blocks looked at more closely because their filters are full
_MOST_REMEMBERED: Final = 1000
_AT_ONCE: Final = 8  # blocks whose receipts are requested together: they may be large
_REPAIRED: Final = "its logs weren't those of its receipts, which were taken instead"
_doubted: dict[str, float] = {}
"""When a block was first contradicted by its receipts, by its hash."""
_noted: dict[tuple[str, str], None] = {}
"""The providers that have contradicted themselves about a block, and its hash."""

log = get_logger("chain")


def verified(
    node: Node,
    headers: Sequence[Header],
    logs: Sequence[Log],
    log_filter: LogFilter,
    scheme: Scheme,
    *,
    by_hash: bool,
    proving: Collection[str] = (),
) -> list[Log]:
    """The wanted logs of these blocks, checked against their headers. ``logs`` is what the node
    returned at first; ``by_hash`` says that it was requested by the hashes of the blocks.
    ``proving`` are the hashes of blocks that are compared with their receipts in any case.

    Suspicious blocks are read again by their hashes, then, of a sample, with the logs of all
    contracts. Those that are still suspicious, and others as the scheme says, are compared with
    their receipts.

    Raises ``Contradiction`` if the node's data contradict each other and can't be repaired,
    ``MissingReceipts`` if some are missing that are needed to decide, and ``Moved`` if the chain
    has changed meanwhile.
    """
    check_hashes(node, headers, scheme)
    current = consistency.belonging(logs, headers)
    if not log_filter.addresses:
        return current  # no address means none here, and any in a request
    unnamed = _with_unnamed_logs(node.network_id, headers, current)
    lacking = _drawn_lacking(headers, current, log_filter)
    if (unnamed or lacking) and not by_hash:
        suspects = [header for header in headers if header.hash in unnamed | lacking]
        answers = node.logs_of(log_filter, [header.hash for header in suspects])
        current = consistency.belonging(_replaced(current, suspects, answers), headers)
        unnamed = _with_unnamed_logs(node.network_id, suspects, current)
        lacking &= _lacking(suspects, current, log_filter)
    if scheme.every_block:
        required = unnamed | lacking
        to_check = required | _with_possible_logs(node.network_id, headers, current, log_filter)
        if not capabilities.has(node.network_id, "proves_receipts"):
            to_check.add(headers[-1].hash)  # to learn soon whether receipts prove anything
    else:
        suspects = [header for header in headers if header.hash in lacking]
        current, incomplete = _with_all_logs(node, suspects, current, log_filter)
        required = {*unnamed, *incomplete, *proving}
        possible = _with_possible_logs(node.network_id, headers, current, log_filter)
        sample = (block_hash for block_hash in possible if _is_drawn(scheme.share))
        to_check = {*required, *sample}
    checked = _compared(node, headers, to_check, current, log_filter, scheme, required=required)
    if not consistency.are_same(checked, current):
        # The provider was wrong about one of these blocks: the sample doesn't suffice for the rest.
        doubtful = _with_possible_logs(node.network_id, headers, checked, log_filter) - to_check
        checked = _compared(node, headers, doubtful, checked, log_filter, scheme, required=())
    return consistency.belonging(checked, headers)


def is_doubtful(
    network_id: int, header: Header, logs: Sequence[Log], log_filter: LogFilter
) -> bool:
    """Whether the header's filter contradicts these logs of its block. Of nearly full filters,
    which name contracts by coincidence, only a share drawn by chance does."""
    return bool(
        _with_unnamed_logs(network_id, [header], logs) or _drawn_lacking([header], logs, log_filter)
    )


def has_receipts(node: Node, header: Header) -> bool:
    """Whether the node has the receipts of a block with transactions. Raises ``NodeFailure``."""
    # One receipt is small. Nodes without an index of transactions have those of whole blocks.
    call = ("eth_getTransactionReceipt", (node.transactions_in(header)[0],))
    [receipt] = node.batch([call])
    if not isinstance(receipt, NodeFailure) and bytes(receipt) != b"null":
        return True
    return next(node.block_receipts([header])) is not None


def forget() -> None:
    """Begin as a new process does."""
    _doubted.clear()
    _noted.clear()


# -- Which blocks are examined more closely, by their hashes ---------------------------------------


def _with_unnamed_logs(network_id: int, headers: Sequence[Header], logs: Sequence[Log]) -> set[str]:
    """Blocks with a log that their filters don't name."""
    if capabilities.has_unnamed_logs(network_id):
        return set()
    logs_of: dict[str, list[Log]] = {}
    for log_ in logs:
        logs_of.setdefault(log_.block_hash, []).append(log_)
    return {
        header.hash
        for header in headers
        if header.hash in logs_of
        and not names_all(header, logs_of[header.hash])
        and not _has_no_filter(network_id, header)
    }


def _lacking(headers: Sequence[Header], logs: Sequence[Log], log_filter: LogFilter) -> set[str]:
    """Blocks whose filters name a wanted contract that has no log."""
    watch = _watch(log_filter)
    present: dict[str, set[str]] = {}
    for log_ in logs:
        present.setdefault(log_.block_hash, set()).add(log_.address.lower())
    return {
        header.hash
        for header in headers
        if any(name not in present.get(header.hash, ()) for name in watch.named(header))
    }


def _drawn_lacking(
    headers: Sequence[Header], logs: Sequence[Log], log_filter: LogFilter
) -> set[str]:
    """As ``_lacking``, with a sample of the blocks whose nearly full filters name contracts by
    coincidence: about one block in twenty is among them without a reason."""
    lacking = _lacking(headers, logs, log_filter)
    watch = _watch(log_filter)
    return {
        header.hash
        for header in headers
        if header.hash in lacking and _is_drawn(_DOUBTED / max(_DOUBTED, watch.chance(header)))
    }


def _with_possible_logs(
    network_id: int, headers: Sequence[Header], logs: Sequence[Log], log_filter: LogFilter
) -> set[str]:
    """Blocks with wanted logs, and those whose filters don't exclude any."""
    watch = _watch(log_filter)
    named = {
        header.hash
        for header in headers
        if watch.named(header) or _has_no_filter(network_id, header)
    }
    return named | {header.block_hash for header in logs}


def _has_no_filter(network_id: int, header: Header) -> bool:
    """Some networks leave the filter empty; they don't have Ethereum's hashes either."""
    return (
        not value_of(header)
        and hash_of(header) is None
        and not capabilities.has(network_id, "proves_hashes")
    )


def _is_drawn(share: float) -> bool:
    return share >= 1 or random.random() < share


# -- What they have -------------------------------------------------------------------------------


def _with_all_logs(
    node: Node, headers: Sequence[Header], logs: list[Log], log_filter: LogFilter
) -> tuple[list[Log], set[str]]:
    """The logs, with those of these blocks taken from the answers for all contracts, and the blocks
    for which not even these make up the filter."""
    all_logs = node.logs_of(LogFilter(), [each.hash for each in headers]) if headers else []
    pairs = zip(headers, all_logs, strict=True)
    incomplete = {header.hash for header, block in pairs if not is_complete(header, block)}
    return _replaced(logs, headers, [log_filter.matching(block) for block in all_logs]), incomplete


def _compared(
    node: Node,
    headers: Sequence[Header],
    hashes: Collection[str],
    logs: list[Log],
    log_filter: LogFilter,
    scheme: Scheme,
    *,
    required: Collection[str],
) -> list[Log]:
    """The logs, with those of the blocks with these hashes taken from the blocks' receipts."""
    chosen = [header for header in headers if header.hash in hashes]
    for at in range(0, len(chosen), _AT_ONCE):
        part = chosen[at : at + _AT_ONCE]
        corrected = _corrected(node, part, logs, log_filter, scheme, required=required)
        if corrected:
            blocks = [each for each in part if each.hash in corrected]
            logs = _replaced(logs, blocks, [corrected[each.hash] for each in blocks])
    return logs


def _corrected(
    node: Node,
    headers: Sequence[Header],
    logs: Sequence[Log],
    log_filter: LogFilter,
    scheme: Scheme,
    *,
    required: Collection[str],
) -> dict[str, list[Log]]:
    """The wanted logs of those of these blocks whose receipts have others than ``logs``, by hash.
    Receipts may be missing where neither ``required`` nor the scheme demands them. Notes repairs
    and contradictions."""
    corrected = {}
    answers = node.block_receipts(headers)
    for header in headers:
        logs_of_block = [log for log in logs if log.block_hash == header.hash]
        is_required = scheme.every_block or header.hash in required
        # ``next`` here, so that no receipts are held while those of the next block are read.
        truth = _of_receipts(
            node, header, next(answers), logs_of_block, log_filter, scheme, is_required=is_required
        )
        if truth is not logs_of_block:
            corrected[header.hash] = truth
            # At once: the next block may end this step, which is repeated then.
            count = int(_is_new(node, header))
            note_contradiction(node, header.height, _REPAIRED, scheme, count=count, is_settled=True)
    return corrected


def _of_receipts(
    node: Node,
    header: Header,
    receipts: Receipts | None,
    logs: list[Log],
    log_filter: LogFilter,
    scheme: Scheme,
    *,
    is_required: bool,
) -> list[Log]:
    """The wanted logs of a block as its receipts have them: ``given`` itself if they are the same,
    if the receipts are missing and not required, or if a contradiction has outlasted ``PATIENCE``.
    """
    if receipts is None:
        if is_required:
            raise MissingReceipts(
                f"the provider doesn't have the receipts of block {header.height}"
            )
        return logs
    fault = _other_transactions(node, header, receipts)
    is_proven = fault is None and have_root(header, receipts)
    if is_proven:
        if receipts:
            capabilities.note_root(node.network_id, header)
    elif fault is None:
        fault = _fault(node.network_id, header, receipts, scheme)
    truth = logs if fault else logs_in(header, receipts, log_filter)
    differs = not consistency.are_same(truth, logs)
    if differs and not is_proven:
        fault = "its logs and its receipts differ"
    if fault is not None:
        _doubt(node, header, fault, scheme)
        return logs
    return truth if differs else logs


def _other_transactions(node: Node, header: Header, receipts: Receipts) -> str | None:
    """Why these can't be the receipts of the block, by its transactions, which no root of receipts
    commits to. Before anything is computed of them: there may be very many."""
    if capabilities.has_unnamed_logs(node.network_id):
        return None
    hashes = node.transactions_in(header)
    is_same = len(receipts) == len(hashes) and all(
        receipt.transaction_hash == tx_hash
        for receipt, tx_hash in zip(receipts, hashes, strict=True)
    )
    return None if is_same else "its receipts are of other transactions"


def _fault(network_id: int, header: Header, receipts: Receipts, scheme: Scheme) -> str | None:
    """Why these can't be the receipts of the block, whose root they don't have."""
    if capabilities.has_unnamed_logs(network_id):
        logs = (log for receipt in receipts for log in receipt.logs)
        return None if is_complete(header, logs) else "its receipts lack logs"
    if _needs_root(network_id, header, scheme):
        return "its receipts have another root"
    if _has_no_filter(network_id, header) or have_bloom(header, receipts):
        return None
    return "its receipts have other logs"


def _needs_root(network_id: int, header: Header, scheme: Scheme) -> bool:
    """Whether receipts without the header's root are wrong, even if they fit its filter. Not where
    a sample is checked: a hard fork may have changed how receipts are encoded, and the network
    would stand still."""
    return scheme.every_block and (
        capabilities.has(network_id, "proves_receipts") or has_own_hash(header)
    )


def _doubt(node: Node, header: Header, fault: str, scheme: Scheme) -> None:
    """Raise ``Contradiction``; or log that the block is stored, after ``PATIENCE``."""
    now = monotonic()
    since = _doubted.setdefault(header.hash, now)
    while len(_doubted) > _MOST_REMEMBERED:
        _doubted.pop(next(iter(_doubted)), None)
    if _is_new(node, header):
        note_contradiction(node, header.height, fault, scheme)
    if (
        scheme.every_block
        or now - since < PATIENCE
        or capabilities.has(node.network_id, "proves_hashes")
    ):
        raise Contradiction(f"block {header.height}: {fault}")
    log.error("a block is stored that is in doubt", network=node.network_id, block=header.height)


def _is_new(node: Node, header: Header) -> bool:
    """Whether this process hasn't noted before that the provider contradicts itself about this
    block."""
    subject = (node.provider, header.hash)
    if subject in _noted:
        return False
    _noted[subject] = None
    while len(_noted) > _MOST_REMEMBERED:
        _noted.pop(next(iter(_noted)), None)
    return True


# -- Lists ----------------------------------------------------------------------------------------


def _replaced(
    logs: Sequence[Log], blocks: Sequence[Header], answers: Sequence[Sequence[Log]]
) -> list[Log]:
    """The logs, with those of these blocks replaced by the answers for each."""
    again = {header.hash for header in blocks}
    remaining = [header for header in logs if header.block_hash not in again]
    return remaining + [header for answer in answers for header in answer]


@lru_cache(maxsize=64)
def _watch(log_filter: LogFilter) -> Watch:
    return Watch(log_filter)

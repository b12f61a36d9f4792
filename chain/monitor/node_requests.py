"""What nodes are asked about transactions, in as few requests as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from chain.core.failures import NodeFailure, RangeTooLarge, Refused, TryAgain
from chain.core.node import Node, Receipt, SentTransaction
from chain.core.transactions.states import Mined, decimal, mined_by

Answers = Mapping[str, Mined | None]
"""By hash: what a receipt says, or None if there is none. Hashes without an answer are missing."""

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_receipt = msgspec.json.Decoder(Receipt | None)
_sent = msgspec.json.Decoder(SentTransaction | None)


class Unreadable(TryAgain):
    """A node has answered, and not one of its answers can be a receipt."""


def receipts(node: Node, hashes: Sequence[str]) -> Answers:
    """The receipts of transactions. One that can't be is as good as no answer.

    Raises ``Unreadable`` if that is so for all of them, and what the node raises.
    """
    calls = [("eth_getTransactionReceipt", (tx_hash,)) for tx_hash in hashes]
    results = node.batch(calls)
    results_by_hash: dict[str, Mined | None] = {}
    for tx_hash, result in zip(hashes, results, strict=True):
        if isinstance(result, NodeFailure):
            continue
        try:
            receipt = _receipt.decode(result)
        except _UNREADABLE:
            continue
        mined = None if receipt is None else _read(tx_hash, receipt)
        if receipt is None or mined is not None:
            results_by_hash[tx_hash] = mined
    if hashes and not results_by_hash:
        raise Unreadable("no receipt could be read")
    return {**results_by_hash, **_priced(node, results_by_hash)}


def receipts_at_once(node: Node, hashes: Sequence[str]) -> Answers:
    """As ``receipts``, by ``node.receipts``, for a caller who can do without them."""
    try:
        results = node.receipts(hashes)
    except (Refused, RangeTooLarge):
        return {}
    mined = {
        tx_hash: None if receipt is None else _read(tx_hash, receipt)
        for tx_hash, receipt in zip(hashes, results, strict=True)
    }
    return {**mined, **_priced(node, mined)}


def _read(tx_hash: str, receipt: Receipt) -> Mined | None:
    try:
        return mined_by(receipt) if receipt.transaction_hash.lower() == tx_hash else None
    except ValueError:
        return None


def _priced(node: Node, answers: Answers) -> dict[str, Mined | None]:
    """The receipts of nodes that don't say what was paid; before London it is what was offered."""
    unpriced = [
        mined_hash
        for mined_hash, mined in answers.items()
        if mined is not None and mined.effective_gas_price is None
    ]
    priced: dict[str, Mined | None] = {}
    if not unpriced:
        return priced
    for tx_hash, sent in transactions(node, unpriced).items():
        mined = answers[tx_hash]
        if mined is not None and sent is not None and sent.gas_price is not None:
            priced[tx_hash] = replace(mined, effective_gas_price=decimal(sent.gas_price))
    return priced


def transactions(node: Node, hashes: Sequence[str]) -> dict[str, SentTransaction | None]:
    """Transactions by hash, None for one that the node doesn't know."""
    calls = [("eth_getTransactionByHash", (tx_hash,)) for tx_hash in hashes]
    results_by_hash: dict[str, SentTransaction | None] = {}
    for tx_hash, result in zip(hashes, node.batch(calls), strict=True):
        if isinstance(result, NodeFailure):
            continue
        try:
            sent = _sent.decode(result)
        except _UNREADABLE:
            continue
        if sent is None or sent.hash.lower() == tx_hash:
            results_by_hash[tx_hash] = sent
    return results_by_hash


def final_nonces(node: Node, accounts: Sequence[str], height: int | None) -> dict[str, int]:
    """How many transactions accounts have sent up to the last final block.

    ``height`` is that block for nodes without tags; None if it isn't known.
    """
    nonces: dict[str, int] = {}
    for block in ("finalized", None if height is None else hex(height)):
        left = [account for account in accounts if account not in nonces]
        if block is None or not left:
            continue
        results = node.batch([("eth_getTransactionCount", (account, block)) for account in left])
        for account, result in zip(left, results, strict=True):
            if isinstance(result, Refused):
                continue
            try:
                nonces[account] = int(result, 16)
            except (TypeError, ValueError):
                continue
    return nonces

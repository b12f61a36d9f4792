"""How large the answer to a question may be.

The limits leave room for the largest true answer: a log costs at least a unit of gas for
each byte that it takes as JSON, so a block of 60 million gas has no more than 64 MB of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_MB: Final = 1024 * 1024
_SMALL: Final = _MB
LARGEST_RECEIPTS: Final = 96 * _MB  # of one block
_LARGER: Final = {
    "eth_getBlockByNumber": 4 * _MB,  # hashes of 60,000 transactions
    "eth_getBlockByHash": 4 * _MB,
    "eth_getTransactionByHash": 4 * _MB,
    "eth_call": 4 * _MB,
    "eth_getTransactionReceipt": 64 * _MB,  # with all of its logs
    "eth_getBlockReceipts": LARGEST_RECEIPTS,  # all of these, and what else a receipt has
}
_RANGE: Final = 16 * _MB  # logs of several blocks: fewer may be asked for
_BLOCK: Final = 64 * _MB  # logs of one, which can't be divided
_BATCH: Final = 32 * _MB


def largest(calls: Sequence[tuple[str, Sequence[Any]]]) -> int:
    """The bytes that the answer to a request of these calls may have."""
    if len(calls) == 1:
        return _largest(*calls[0])
    return min(_BATCH, sum(_largest(method, params) for method, params in calls))


def _largest(method: str, params: Sequence[Any]) -> int:
    if method != "eth_getLogs":
        return _LARGER.get(method, _SMALL)
    log_filter = params[0]
    is_one = "blockHash" in log_filter or log_filter.get("fromBlock") == log_filter.get("toBlock")
    return _BLOCK if is_one else _RANGE

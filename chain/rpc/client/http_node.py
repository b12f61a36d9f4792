"""A node behind one endpoint, as ``chain.core.node.Node`` describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec.structs import replace

from chain.core.blocks.consistency import in_order
from chain.core.failures import (
    REFUSALS_OF_LOGS,
    Moved,
    NoAnswer,
    NodeFailure,
    RangeTooLarge,
    Refused,
    TryAgain,
)
from chain.core.node import Header, Log, LogFilter, Receipt, Receipts, SentTransaction, header_in
from chain.core.ranges import Ranges
from chain.rpc.client.json_rpc import Call, Endpoint
from chain.rpc.client.receipt_lists import read_receipts
from chain.rpc.client.refusals import LOGS, is_unknown_block
from chain.rpc.client.response_sizes import LARGEST_RECEIPTS

_HIGHEST = 2**52
_MOST_RECEIPTS = 1000  # requested one by one
_MOST_TRANSACTIONS = 250_000  # hashes that are held of blocks that are requested together
_SHORTEST_CONFIRMATION: Final = 1.0  # seconds, even if none are left for the request itself
_LARGE = frozenset(
    {
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
    }
)
_TAGS = frozenset({"latest", "safe", "finalized", "earliest", "pending"})


class Confirm(Protocol):
    """Confirm a chain id within so many seconds. Raises ``TryAgain``."""

    def __call__(self, seconds: float, *, only_if_due: bool = False) -> None: ...


class HttpNode:
    """One provider, until ``deadline`` (of ``time.monotonic``). See ``Node`` for the methods.

    ``on_head`` is called with each height that the node says is its latest, and may raise.
    ``confirm`` confirms the provider's chain id: if that is due, before a response is returned.
    """

    def __init__(
        self,
        network_id: int,
        provider: str,
        endpoint: Endpoint,
        *,
        deadline: float | None = None,
        on_head: Callable[[int], None] | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self.network_id = network_id
        self.provider = provider
        self._endpoint = endpoint
        self._deadline = deadline
        self._on_head = on_head
        self._confirm = confirm

    def call(self, method: str, *params: Any) -> Any:
        return self._call(method, params, msgspec.Raw if method in _LARGE else Any)

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        types = [msgspec.Raw if method in _LARGE else Any for method, _ in calls]
        return [*self._each(calls, types)]

    def confirm_network(self) -> None:
        if self._confirm is not None:
            self._confirm(self._left() or self._endpoint.timeout)

    def header(self, block: int | str) -> Header | None:
        return _at(block, self._call(*_header_call(block), Header | None))

    def headers(self, blocks: Sequence[int | str]) -> list[Header | None]:
        headers = self._all([_header_call(block) for block in blocks], Header | None)
        return [*map(_at, blocks, headers)]

    def transactions_in(self, header: Header) -> list[str]:
        if header.transactions is not None:
            return header.transactions
        full_header = self.header(header.hash)
        if full_header is None or full_header.hash != header.hash:
            raise Moved("a block is not in the chain any more")
        if full_header.transactions is None:
            raise TryAgain("a block without a list of transactions")
        return full_header.transactions

    def logs(self, log_filter: LogFilter, first: int, last: int) -> list[Log]:
        blocks = _range(first, last)
        calls = self._log_calls(log_filter, blocks)
        try:
            parts = [*self._all(calls, list[Log])]
        except REFUSALS_OF_LOGS as refusal:
            if first < last:
                raise
            return in_order(self._by_contract(log_filter, blocks, calls[0], refusal))
        return in_order(_joined(parts))

    def logs_of(self, log_filter: LogFilter, block_hashes: Sequence[str]) -> list[list[Log]]:
        blocks = [{"blockHash": block_hash} for block_hash in block_hashes]
        calls = [self._log_calls(log_filter, block) for block in blocks]
        together = [call for some in calls for call in some]
        answers = self._each(together, [list[Log]] * len(together))
        return [
            self._of_block(log_filter, block, some, [*islice(answers, len(some))])
            for block, some in zip(blocks, calls, strict=True)
        ]

    def logs_and_receipts(
        self, log_filter: LogFilter, block_hash: str, hashes: Sequence[str]
    ) -> tuple[list[Log], list[Receipt | None]]:
        block = {"blockHash": block_hash}
        calls = self._log_calls(log_filter, block)
        types: list[Any] = [list[Log]] * len(calls) + [Receipt | None] * len(hashes)
        receipts = [("eth_getTransactionReceipt", (tx_hash,)) for tx_hash in hashes]
        answers = self._each([*calls, *receipts], types)
        logs = [*islice(answers, len(calls))]
        receipts_or_failures = [*answers]
        for receipt in receipts_or_failures:
            if isinstance(receipt, NodeFailure):
                raise receipt
        return self._of_block(log_filter, block, calls, logs), receipts_or_failures

    def _log_calls(self, log_filter: LogFilter, blocks: dict[str, str]) -> list[Call]:
        """The calls for logs, each of as many contracts as the provider accepts."""
        return [
            (LOGS, ({**blocks, **_subjects(part)},))
            for part in _parts(log_filter, self._endpoint.contracts.width)
        ]

    def _of_block(
        self,
        log_filter: LogFilter,
        block: dict[str, str],
        calls: Sequence[Call],
        answers: Sequence[list[Log] | NodeFailure],
    ) -> list[Log]:
        """The logs of a block that was requested by its hash."""
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Refused) and is_unknown_block(answer):
                raise Moved("a block is not in the chain any more")
            if isinstance(answer, REFUSALS_OF_LOGS):
                return in_order(self._by_contract(log_filter, block, call, answer))
            if isinstance(answer, NodeFailure):
                raise answer
        return in_order(_joined(cast("Sequence[list[Log]]", answers)))

    def _by_contract(
        self, log_filter: LogFilter, block: dict[str, str], call: Call, refusal: NodeFailure
    ) -> list[Log]:
        """The logs of a single block, after the refusal of a call, of fewer and fewer contracts.
        How many are answered is remembered, unless the block has too many logs. Raises what the
        refusal of a single contract means."""
        addresses = log_filter.addresses
        size = max(1, len(call[1][0].get("address", ())))
        is_full = isinstance(refusal, RangeTooLarge)
        sizes = Ranges(size) if is_full else self._endpoint.contracts
        logs: list[Log] = []
        start = 0
        while (
            size > sizes.width  # learned since the call was made
            or (sizes.too_large(size, is_structural=False) if is_full else sizes.refused(size))
        ):
            try:
                while start < len(addresses):
                    part = addresses[start : start + sizes.width]
                    size = len(part)
                    fewer = LogFilter(part, log_filter.topics)
                    logs += self._call(LOGS, ({**block, **_subjects(fewer)},), list[Log])
                    sizes.succeeded(size, 0, 0.0)
                    start += size
            except REFUSALS_OF_LOGS as again:
                refusal = again
            else:
                return logs
        raise self._endpoint.settled(refusal)

    def headers_and_logs(
        self, heights: Sequence[int], log_filter: LogFilter, first: int | None = None
    ) -> tuple[list[Header | None], list[Log]]:
        calls: list[Call] = [_header_call(height) for height in heights]
        begin = heights[0] if first is None else first
        calls += self._log_calls(log_filter, _range(begin, heights[-1]))
        types: list[Any] = [Header | None] * len(heights)
        types += [list[Log]] * (len(calls) - len(heights))
        answers = self._all_of(calls, types)
        headers = [*islice(answers, len(heights))]
        return [*map(_at, heights, headers)], in_order(_joined([*answers]))

    def block_receipts(self, headers: Sequence[Header]) -> Iterator[Receipts | None]:
        calls = [("eth_getBlockReceipts", (each.number,)) for each in headers]
        answers = self._each(calls, [list[msgspec.Raw] | None] * len(calls))
        for header in headers:
            yield self._receipts_of(header, next(answers))

    def _receipts_of(self, header: Header, answer: Any) -> Receipts | None:
        if isinstance(answer, NodeFailure):
            # Nodes without this method, and those that limit it, have the receipts one by one.
            hashes = self.transactions_in(header)
            if len(hashes) > _MOST_RECEIPTS:
                return None
            answer = self._receipts_one_by_one(hashes)
        receipts = None if answer is None else read_receipts(answer)
        if receipts is None:
            return None
        if any(receipt.block_hash.lower() != header.hash.lower() for receipt in receipts):
            raise Moved("a receipt of another block")
        return receipts

    def _receipts_one_by_one(self, hashes: Sequence[str]) -> list[msgspec.Raw]:
        calls = [("eth_getTransactionReceipt", (transaction_hash,)) for transaction_hash in hashes]
        receipts: list[msgspec.Raw] = []
        size = 0
        for transaction_hash in self._all(calls, msgspec.Raw):
            receipts.append(transaction_hash)
            size += len(transaction_hash)
            if size > LARGEST_RECEIPTS:
                raise TryAgain("larger receipts than a block can have")
        return receipts

    def receipts(self, hashes: Sequence[str]) -> list[Receipt | None]:
        calls = [("eth_getTransactionReceipt", (transaction_hash,)) for transaction_hash in hashes]
        return [*self._all(calls, Receipt | None)]

    def transactions(self, hashes: Sequence[str]) -> list[SentTransaction | None]:
        calls = [("eth_getTransactionByHash", (transaction_hash,)) for transaction_hash in hashes]
        return [*self._all(calls, SentTransaction | None)]

    def _all(self, calls: Sequence[Call], type_: Any) -> Iterator[Any]:
        return self._all_of(calls, [type_] * len(calls))

    def _all_of(self, calls: Sequence[Call], types: Sequence[Any]) -> Iterator[Any]:
        """The results. Raises the ``NodeFailure`` that came instead of one of them."""
        left = _MOST_TRANSACTIONS
        for response in self._each(calls, types):
            if isinstance(response, NodeFailure):
                raise response
            if isinstance(response, Header) and response.transactions:
                if len(response.transactions) > left:
                    yield replace(response, transactions=None)
                    continue
                left -= len(response.transactions)
            yield response

    def _call(self, method: str, params: Sequence[Any], type_: Any) -> Any:
        with self._confirmed():
            result = self._endpoint.call((method, params), type_, seconds=self._left())
        self._note_heads([(method, params)], [result])
        return result

    def _each(self, calls: Sequence[Call], types: Sequence[Any]) -> Iterator[Any]:
        """The results of calls in their order, a ``NodeFailure`` in the place of an error. None is
        referred to any more when the next one is requested."""
        if not calls:
            return
        parts = self._endpoint.parts(calls, types, seconds=self._left())
        at = 0
        while at < len(calls):
            with self._confirmed():
                part = next(parts)
            self._note_heads(calls[at : at + len(part)], part)
            at += len(part)
            part.reverse()
            while part:
                yield part.pop()

    @contextmanager
    def _confirmed(self) -> Iterator[None]:
        """For one request: nothing that comes over a new connection is believed, not even an error,
        before the chain id is confirmed."""
        try:
            yield
        except TryAgain:
            raise
        except NodeFailure:
            self._confirm_if_due()
            raise
        self._confirm_if_due()

    def _confirm_if_due(self) -> None:
        if self._confirm is not None:
            left = 0.0 if self._deadline is None else self._deadline - monotonic()
            self._confirm(max(left, _SHORTEST_CONFIRMATION), only_if_due=True)

    def _note_heads(self, calls: Sequence[Call], results: Sequence[Any]) -> None:
        if self._on_head is None:
            return
        for (method, params), result in zip(calls, results, strict=True):
            height = _height(result) if _asks_for_head(method, params) else None
            if height is not None:
                self._on_head(height)

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        left = self._deadline - monotonic()
        if left <= 0:
            raise NoAnswer("no time left")
        return left


def _asks_for_head(method: str, params: Sequence[Any]) -> bool:
    return method == "eth_blockNumber" or (
        method == "eth_getBlockByNumber" and bool(params) and params[0] == "latest"
    )


def _height(result: Any) -> int | None:
    try:
        if isinstance(result, msgspec.Raw):
            result = header_in(result)
        height = int(result.number if isinstance(result, Header) else result, 16)
    except (TryAgain, TypeError, ValueError):
        return None
    # What can't be a height mustn't make all others lag behind it.
    return height if 0 <= height < _HIGHEST else None


def _at(block: int | str, header: Header | None) -> Header | None:
    """The header of a block. Raises ``TryAgain`` if it is that of another height."""
    if header is not None and isinstance(block, int) and header.height != block:
        raise TryAgain(f"it returned block {header.height} for block {block}")
    return header


def _header_call(block: int | str) -> Call:
    if isinstance(block, int):
        return "eth_getBlockByNumber", (hex(block), False)
    if block in _TAGS:
        return "eth_getBlockByNumber", (block, False)
    return "eth_getBlockByHash", (block, False)


def _range(first: int, last: int) -> dict[str, str]:
    return {"fromBlock": hex(first), "toBlock": hex(last)}


def _parts(log_filter: LogFilter, most: int) -> list[LogFilter]:
    """The filter, as filters of so many contracts at most."""
    addresses = log_filter.addresses
    if len(addresses) <= most:
        return [log_filter]
    return [
        LogFilter(addresses[at : at + most], log_filter.topics)
        for at in range(0, len(addresses), most)
    ]


def _joined(parts: Sequence[list[Log]]) -> list[Log]:
    return parts[0] if len(parts) == 1 else [log for logs in parts for log in logs]


def _subjects(log_filter: LogFilter) -> dict[str, Any]:
    subjects: dict[str, Any] = {}
    if log_filter.addresses:
        subjects["address"] = [*log_filter.addresses]
    if log_filter.topics:
        subjects["topics"] = [[*log_filter.topics]]
    return subjects

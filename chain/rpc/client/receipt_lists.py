"""The receipts of a block as a node's answer has them.

As objects they take about four times the memory of their JSON, of which a block may have many
megabytes. So those of large blocks are decoded one at a time, each time they are iterated over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, overload

import msgspec

from chain.core.failures import TryAgain
from chain.core.node import LoggedReceipt, Receipts

_SMALL: Final = 2 * 1024 * 1024  # bytes
_decode = msgspec.json.Decoder(LoggedReceipt | None).decode


def read_receipts(answer: Sequence[msgspec.Raw]) -> Receipts | None:
    """The receipts in the node's order; None if one of them is null. Raises ``TryAgain`` if one
    isn't a receipt."""
    is_small = sum(map(len, answer)) <= _SMALL
    receipts: list[LoggedReceipt] = []
    for raw in answer:
        receipt = _read(raw)
        if receipt is None:
            return None
        if is_small:
            receipts.append(receipt)
    return receipts if is_small else _LargeReceipts(answer)


class _LargeReceipts(Sequence[LoggedReceipt]):
    """Receipts that are decoded whenever they are read."""

    def __init__(self, answer: Sequence[msgspec.Raw]) -> None:
        self._answer = answer

    def __len__(self) -> int:
        return len(self._answer)

    def __iter__(self) -> Iterator[LoggedReceipt]:
        for raw in self._answer:
            receipt = _read(raw)
            assert receipt is not None
            yield receipt

    @overload
    def __getitem__(self, at: int) -> LoggedReceipt: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[LoggedReceipt]: ...

    def __getitem__(self, at: int | slice) -> LoggedReceipt | Sequence[LoggedReceipt]:
        if isinstance(at, slice):
            return _LargeReceipts(self._answer[at])
        receipt = _read(self._answer[at])
        assert receipt is not None
        return receipt


def _read(raw: msgspec.Raw) -> LoggedReceipt | None:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TryAgain("a result that isn't a receipt") from None

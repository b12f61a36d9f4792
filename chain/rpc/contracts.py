"""Asking contracts through a node, and handing it signed transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chain.core.failures import Halted, Refused, TryAgain
from chain.core.node import Node, header_in
from chain.core.transactions import fees
from chain.core.transactions.broadcasts import Broadcast, meaning_of

_PERCENTILE: Final = 50
_HISTORY: Final = 8  # blocks
_LARGEST_NONCE: Final = 2**48  # more than there is time for


class Reverted(Exception):
    """The contract has refused a call, or the EVM has ended it: ``data`` says why (0x…), or
    ``message``, or nothing does."""

    def __init__(self, message: str, data: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a contract. ``sender`` is None where no account is involved."""

    to: str
    data: str
    sender: str | None = None
    value: int = 0

    def fields(self) -> dict[str, str]:
        """As nodes take it. ``data`` under its older name, which all of them know."""
        fields = {"to": self.to, "data": self.data}
        if self.sender is not None:
            fields["from"] = self.sender
        if self.value:
            fields["value"] = hex(self.value)
        return fields


def call(node: Node, what: Call) -> bytes:
    """What the contract answers at the newest block. ``Reverted``."""
    try:
        return _bytes(node.call("eth_call", what.fields(), "latest"))
    except Refused as refusal:
        raise _revert_or(refusal) from None


def calls(node: Node, many: Sequence[Call]) -> list[bytes | Reverted]:
    """The answers of several; a call that is refused has a ``Reverted`` in its place."""
    answers = node.batch([("eth_call", (each.fields(), "latest")) for each in many])
    results: list[bytes | Reverted] = []
    for answer in answers:
        if isinstance(answer, Refused):
            refusal = _revert_or(answer)
            if not isinstance(refusal, Reverted):
                raise refusal
            results.append(refusal)
        elif isinstance(answer, Exception):
            raise answer
        else:
            results.append(_bytes(answer))
    return results


def estimate(node: Node, what: Call) -> int:
    """The gas that a transaction would take now. ``Reverted``."""
    try:
        return _number(node.call("eth_estimateGas", what.fields()))
    except Refused as refusal:
        raise _revert_or(refusal) from None


def has_code(node: Node, address: str) -> bool:
    """Whether there is a contract at this address."""
    return len(_bytes(node.call("eth_getCode", address, "latest"))) > 0


def nonce_of(node: Node, address: str, block: str = "latest") -> int:
    """How many transactions of the account are in the chain up to this block (a tag or 0x…)."""
    return _nonce(node.call("eth_getTransactionCount", address, block))


def balance_of(node: Node, address: str) -> int:
    """What the account has, in wei."""
    return _number(node.call("eth_getBalance", address, "latest"))


@dataclass(frozen=True, slots=True)
class Prices:
    """What the network asks for at the moment. ``base_fee`` is None before EIP-1559, where
    ``price`` is the gas price, else the priority fee; ``gas_limit`` is a block's."""

    base_fee: int | None
    price: int
    gas_limit: int

    def offer(self, caps: fees.Caps) -> fees.Fees:
        """Fees with which a transaction gets in soon. ``TooExpensive``."""
        if self.base_fee is None:
            return fees.legacy_offer(self.price, caps)
        return fees.offer(self.base_fee, self.price, caps)


@dataclass(frozen=True, slots=True)
class Quote:
    """What a transaction takes: ``nonce`` is the account's next one as the node has it, what waits
    among it, ``used`` without that; ``balance`` is in wei."""

    gas: int
    prices: Prices
    nonce: int
    used: int
    balance: int


def quote(node: Node, what: Call) -> Quote:
    """Try a call of an account, and ask what it takes to send it. ``Reverted``."""
    assert what.sender is not None
    tried, estimated, nonce, used, balance, *priced = node.batch(
        [
            ("eth_call", (what.fields(), "latest")),
            ("eth_estimateGas", (what.fields(),)),
            ("eth_getTransactionCount", (what.sender, "pending")),
            ("eth_getTransactionCount", (what.sender, "latest")),
            ("eth_getBalance", (what.sender, "latest")),
            *_PRICES,
        ]
    )
    # In this order: a call's reason to fail says more than an estimate's.
    _bytes(_not_reverted(tried))
    gas = _number(_not_reverted(estimated))
    return Quote(
        gas,
        _prices(node, *priced),
        _nonce(_given(nonce)),
        _nonce(_given(used)),
        _number(_given(balance)),
    )


_PRICES: Final = (
    ("eth_getBlockByNumber", ("latest", False)),
    ("eth_gasPrice", ()),
    ("eth_feeHistory", (hex(_HISTORY), "latest", [_PERCENTILE])),
)


def prices(node: Node) -> Prices:
    """What a transaction costs now."""
    return _prices(node, *node.batch(_PRICES))


def _prices(node: Node, head: Any, gas_price: Any, history: Any) -> Prices:
    header = header_in(_given(head))
    if header is None:
        raise TryAgain("a node without a head")
    limit = _number(header.gas_limit)
    base_fee = fees.quantity(header.base_fee_per_gas)
    if base_fee is None:
        return Prices(None, _number(_given(gas_price)), limit)
    if isinstance(history, Refused):
        # Not every network has it.
        history = {"reward": [[_tip(node)]]}
    history = _given(history)
    return Prices(fees.next_base_fee(history, base_fee), fees.usual_priority(history), limit)


def _tip(node: Node) -> Any:
    try:
        return node.call("eth_maxPriorityFeePerGas")
    except Refused:
        return None


def broadcast(node: Node, raw: str) -> tuple[Broadcast, str]:
    """Hand over a signed transaction (0x…): what became of it, and the node's words for that.
    Raises an error that isn't understood: another node may take the transaction."""
    try:
        node.call("eth_sendRawTransaction", raw)
    except Refused as refusal:
        meaning = meaning_of(refusal.message)
        if meaning is Broadcast.UNCLEAR:
            raise
        return meaning, refusal.message[:200]
    return Broadcast.TAKEN, ""


def broadcast_all(node: Node, raws: Sequence[str]) -> list[tuple[Broadcast, str]]:
    """As ``broadcast``, for several in one request; an error that isn't understood is raised only
    if all of them have such errors."""
    answers = node.batch([("eth_sendRawTransaction", (raw,)) for raw in raws])
    outcomes = []
    unclear: list[Refused] = []
    for answer in answers:
        if isinstance(answer, Refused):
            outcomes.append((meaning_of(answer.message), answer.message[:200]))
            unclear += [answer] if outcomes[-1][0] is Broadcast.UNCLEAR else []
        elif isinstance(answer, Exception):
            raise answer
        else:
            outcomes.append((Broadcast.TAKEN, ""))
    if unclear and len(unclear) == len(answers):
        raise unclear[0]
    return outcomes


def _given(answer: Any) -> Any:
    """An answer of a batch that isn't an error."""
    if isinstance(answer, Exception):
        raise answer
    return answer


def _not_reverted(answer: Any) -> Any:
    if isinstance(answer, Refused):
        raise _revert_or(answer)
    return _given(answer)


def _revert_or(refusal: Refused) -> Reverted | Refused:
    data = refusal.data
    if isinstance(data, dict):
        data = data.get("data")
    is_data = isinstance(data, str) and data.startswith("0x")
    if is_data or isinstance(refusal, Halted):
        return Reverted(refusal.message, data if is_data else None)
    return refusal


def _bytes(answer: Any) -> bytes:
    if isinstance(answer, str) and answer.startswith("0x"):
        try:
            return bytes.fromhex(answer[2:])
        except ValueError:
            pass
    raise TryAgain("an answer that isn't bytes")


def _nonce(answer: Any) -> int:
    nonce = _number(answer)
    if not 0 <= nonce < _LARGEST_NONCE:
        raise TryAgain("a nonce that no account has")
    return nonce


def _number(answer: Any) -> int:
    number = fees.quantity(answer)
    if number is None:
        raise TryAgain("an answer that isn't a number")
    return number

"""What a transaction may cost: amounts in wei, never above the caps.

Networks with EIP-1559 have a base fee in their blocks; older ones have a gas price, which stands
in ``max_fee`` then, without a ``priority_fee``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import Any, Final

GWEI: Final = 10**9
_USUAL_PRIORITY: Final = 10**9  # wei, where the network says nothing
_MARGIN: Final = 120  # percent of the estimate
# Nodes refuse a replacement that doesn't raise both fees by 10 %, some by 12.5 %.
_BUMP: Final = 1125, 1000


class TooExpensive(Exception):
    """The network asks for more than the cap."""

    def __init__(self, requested: int, cap: int) -> None:
        super().__init__(
            f"the network asks for {in_gwei(requested)} gwei, and the cap is {in_gwei(cap)} gwei"
        )


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that is paid for a unit of gas, and of that to the block's producer; wei."""

    max_fee: int
    priority_fee: int


@dataclass(frozen=True, slots=True)
class Fees:
    """What is offered for a unit of gas; ``priority_fee`` is None before EIP-1559."""

    max_fee: int
    priority_fee: int | None


def in_gwei(wei: int) -> str:
    """As people read it: "1.5"."""
    return f"{(Decimal(wei) / GWEI).normalize():f}"


def offer(base_fee: int, priority: int, caps: Caps) -> Fees:
    """Fees that hold while the base fee grows by an eighth for six blocks. ``TooExpensive`` if the
    cap is below what the next block asks for."""
    tip = min(priority, caps.priority_fee, caps.max_fee)
    if base_fee + min(tip, 1) > caps.max_fee:
        raise TooExpensive(base_fee, caps.max_fee)
    return Fees(min(2 * base_fee + tip, caps.max_fee), tip)


def legacy_offer(gas_price: int, caps: Caps) -> Fees:
    """The gas price of a network without base fees, and a tenth more."""
    if gas_price > caps.max_fee:
        raise TooExpensive(gas_price, caps.max_fee)
    return Fees(min(gas_price * 11 // 10, caps.max_fee), None)


def raised(old: Fees, now: Fees, caps: Caps) -> Fees | None:
    """Fees for a replacement: at least an eighth above the old ones and not below today's, which
    nodes take in place of them. None if the caps don't allow it."""
    max_fee = max(_bumped(old.max_fee), now.max_fee)
    if max_fee > caps.max_fee:
        max_fee = caps.max_fee
        if max_fee < _bumped(old.max_fee):
            return None
    if old.priority_fee is None:
        return Fees(max_fee, None)
    tip = _bumped(old.priority_fee)
    if tip > min(caps.priority_fee, max_fee):
        return None
    return Fees(max_fee, max(tip, min(now.priority_fee or 0, caps.priority_fee, max_fee)))


def _bumped(amount: int) -> int:
    return -(-amount * _BUMP[0] // _BUMP[1]) + 1


def usual_priority(history: Any) -> int:
    """The priority fee of the middle of recent blocks, from an answer of ``eth_feeHistory``."""
    rewards = history.get("reward") if isinstance(history, dict) else None
    priorities = [
        amount
        for block in (rewards if isinstance(rewards, list) else [])
        if isinstance(block, list) and block and (amount := quantity(block[0]))
    ]
    return median_low(priorities) if priorities else _USUAL_PRIORITY


def next_base_fee(history: Any, head: int) -> int:
    """The base fee of the block to come, from ``eth_feeHistory``; else the one of the head."""
    fees = history.get("baseFeePerGas") if isinstance(history, dict) else None
    last = quantity(fees[-1]) if isinstance(fees, list) and fees else None
    return head if last is None else max(last, 0)


def gas_limit(estimate: int, most: int) -> int:
    """Gas for a transaction: a fifth above the estimate, as the state may be another one by the
    time, but not above ``most``."""
    return max(estimate, min(estimate * _MARGIN // 100, most))


def quantity(value: Any) -> int | None:
    """A number of JSON-RPC (``0x…``); None for anything else."""
    if not isinstance(value, str) or not value.startswith("0x"):
        return None
    try:
        return int(value, 16)
    except ValueError:
        return None


def cost(gas: int, fees: Fees, value: int) -> int:
    """The most that the account may lose."""
    return gas * fees.max_fee + value


__all__: Sequence[str] = (
    "GWEI",
    "Caps",
    "Fees",
    "TooExpensive",
    "cost",
    "gas_limit",
    "in_gwei",
    "legacy_offer",
    "next_base_fee",
    "offer",
    "quantity",
    "raised",
    "usual_priority",
)

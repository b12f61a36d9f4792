"""What is offered for gas, and never more than the caps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.core.transactions.fees import (
    GWEI,
    Caps,
    Fees,
    TooExpensive,
    gas_limit,
    in_gwei,
    legacy_offer,
    next_base_fee,
    offer,
    quantity,
    raised,
    usual_priority,
)

CAPS = Caps(100 * GWEI, 10 * GWEI)
AMOUNTS = st.integers(0, 10**13)


def test_an_offer_holds_while_the_base_fee_doubles() -> None:
    assert offer(20 * GWEI, 2 * GWEI, CAPS) == Fees(42 * GWEI, 2 * GWEI)


def test_the_caps_hold() -> None:
    assert offer(80 * GWEI, 50 * GWEI, CAPS) == Fees(100 * GWEI, 10 * GWEI)
    with pytest.raises(TooExpensive, match="asks for 101 gwei, and the cap is 100 gwei"):
        offer(101 * GWEI, 0, CAPS)
    with pytest.raises(TooExpensive):
        legacy_offer(101 * GWEI, CAPS)
    assert legacy_offer(95 * GWEI, CAPS) == Fees(100 * GWEI, None)
    assert legacy_offer(10 * GWEI, CAPS) == Fees(11 * GWEI, None)


@given(base=AMOUNTS, tip=AMOUNTS, cap=st.integers(1, 10**13), tips=st.integers(1, 10**13))
def test_no_offer_is_above_its_caps(base: int, tip: int, cap: int, tips: int) -> None:
    try:
        fees = offer(base, tip, Caps(cap, tips))
    except TooExpensive:
        assert base + min(tip, 1) > cap
        return
    assert base <= fees.max_fee <= cap
    assert fees.priority_fee is not None
    assert fees.priority_fee <= min(tips, fees.max_fee)


@given(old=AMOUNTS, tip=AMOUNTS, base=AMOUNTS, now=AMOUNTS, cap=AMOUNTS, tips=AMOUNTS, old_net=...)
def test_a_replacement_raises_both_by_an_eighth_or_is_none(
    old: int, tip: int, base: int, now: int, cap: int, tips: int, old_net: bool
) -> None:
    caps = Caps(cap, tips)
    before = Fees(old, None if old_net else min(tip, old))
    error = raised(before, Fees(base, None if old_net else now), caps)
    if error is None:
        assert old * 1.125 > cap - 2 or (before.priority_fee or 0) * 1.125 > min(cap, tips) - 2
        return
    assert error.max_fee <= cap
    assert error.max_fee * 1000 >= old * 1125
    if before.priority_fee is None:
        assert error.priority_fee is None
    else:
        assert error.priority_fee is not None
        assert error.priority_fee * 1000 >= before.priority_fee * 1125
        assert error.priority_fee <= min(tips, error.max_fee)


def test_the_usual_priority_is_the_middle_of_recent_blocks() -> None:
    history = {"reward": [["0x5"], ["0x1"], ["0x3"], ["0x0"]], "baseFeePerGas": ["0x7", "0x9"]}
    assert usual_priority(history) == 3
    assert next_base_fee(history, 1) == 9
    for nothing in (None, {}, {"reward": None}, {"reward": []}, {"reward": [[]]}, {"reward": [5]}):
        assert usual_priority(nothing) == GWEI
        assert next_base_fee(nothing, 4) == 4


def test_gas_has_a_margin_within_a_block() -> None:
    assert gas_limit(100_000, 30_000_000) == 120_000
    assert gas_limit(29_000_000, 30_000_000) == 30_000_000
    assert gas_limit(31_000_000, 30_000_000) == 31_000_000


def test_amounts_as_people_read_them() -> None:
    assert in_gwei(1_500_000_000) == "1.5"
    assert in_gwei(10**12) == "1000"
    assert in_gwei(0) == "0"


@pytest.mark.parametrize("value", [None, 5, "", "5", "0x", "0xzz", [], {}])
def test_what_is_no_number_of_json_rpc_is_none(value: object) -> None:
    assert quantity(value) is None

"""A transaction is suspected to be replaced only when several things come together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chain.core.node import SentTransaction
from chain.core.transactions.sightings import (
    Sighting,
    after_asking,
    is_passed,
    is_to_be_judged,
    is_worth_asking,
)

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
KNOWN = Sighting(7, ADDRESS, None)
SENT = SentTransaction("0x" + "11" * 32, "0x7", ADDRESS.lower())


def test_what_a_node_knows_is_kept() -> None:
    assert after_asking(Sighting(), SENT, 5) == KNOWN


def test_two_misses_half_a_minute_apart_let_the_nonce_decide() -> None:
    once = after_asking(KNOWN, None, 100_000)
    assert not is_to_be_judged(once, 200_000)
    twice = after_asking(once, None, 129_999)
    assert not is_to_be_judged(twice, 129_999)
    assert is_to_be_judged(twice, 130_000)
    assert not is_passed(twice, 7), "its own nonce is the next one"
    assert is_passed(twice, 8)


def test_one_whose_account_no_one_has_told_is_never_judged() -> None:
    unknown = after_asking(after_asking(Sighting(), None, 0), None, 60_000)
    assert not is_to_be_judged(unknown, 60_000)


def test_one_that_is_known_again_is_suspected_no_more() -> None:
    suspected = replace(after_asking(KNOWN, None, 0), suspected=True)
    assert after_asking(suspected, SENT, 90_000) == KNOWN


def test_asking_is_rare_unless_something_is_missing() -> None:
    numbers = [n for n in range(1, 123) if is_worth_asking(KNOWN, n)]
    assert numbers[:3] == [2, 10, 18]
    assert len(numbers) == 16
    missing = after_asking(KNOWN, None, 0)
    assert all(is_worth_asking(missing, n) for n in range(3, 10))
    assert is_worth_asking(Sighting(), 1)
    assert not is_worth_asking(after_asking(Sighting(), None, 0), 5)


@pytest.mark.parametrize("fields", [("0x" + "f" * 17, ADDRESS), ("0x1", "0x12"), ("", ADDRESS)])
def test_what_can_t_be_a_transaction_is_refused(fields: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|out of range|expected|unknown"):
        after_asking(KNOWN, SentTransaction("0x" + "11" * 32, *fields), 0)

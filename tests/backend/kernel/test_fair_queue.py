"""Queues by address, served in turn."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.limits.fair_queue import Turns

ADDRESSES = st.sampled_from("abcd")


def take(turns: Turns[int], *without: str) -> tuple[str, int] | None:
    return turns.take(lambda address: address not in without)


@given(st.lists(ADDRESSES, max_size=60))
def test_everything_is_taken_once_and_the_order_of_an_address_is_kept(came: list[str]):
    turns: Turns[int] = Turns()
    for number, address in enumerate(came):
        turns.put(address, number)
    taken = []
    while (job := take(turns)) is not None:
        taken.append(job)
    assert sorted(number for _, number in taken) == [*range(len(came))]
    for item in "abcd":
        own = [number for address, number in taken if address == item]
        assert own == sorted(own)
    assert len(turns) == 0


@given(st.lists(ADDRESSES, min_size=1, max_size=60))
def test_in_each_round_everyone_who_waits_has_one_turn(came: list[str]):
    turns: Turns[int] = Turns()
    for number, address in enumerate(came):
        turns.put(address, number)
    order = []
    while (job := take(turns)) is not None:
        order.append(job[0])
    rounds: list[list[str]] = [[]]
    for address in order:
        if address in rounds[-1]:
            rounds.append([])
        rounds[-1].append(address)
    assert {*rounds[0]} == {*came}
    for item, following in itertools.pairwise(rounds):
        assert {*following} <= {*item}


def test_who_may_have_nothing_keeps_its_place():
    turns: Turns[int] = Turns()
    for number, address in enumerate("abab"):
        turns.put(address, number)
    assert take(turns, "a") == ("b", 1)
    assert take(turns, "a") == ("b", 3)
    assert take(turns, "a") is None
    assert take(turns) == ("a", 0)


@given(st.lists(st.tuples(ADDRESSES, st.booleans()), max_size=40))
def test_what_is_removed_is_not_taken_and_everything_else_is(came: list[tuple[str, bool]]):
    turns: Turns[tuple[int, bool]] = Turns()
    for number, (address, stays) in enumerate(came):
        turns.put(address, (number, stays))
    gone = {number for number, (address, stays) in enumerate(came) if address == "a" and not stays}
    assert {number for number, _ in turns.remove(lambda item: not item[1], "a")} == gone
    assert len(turns) == len(came) - len(gone)
    assert turns.waiting_of("a") == sum(address == "a" and stays for address, stays in came)
    taken = []
    while (job := turns.take(lambda _: True)) is not None:
        taken.append(job[1][0])
    assert sorted(taken) == [number for number in range(len(came)) if number not in gone]

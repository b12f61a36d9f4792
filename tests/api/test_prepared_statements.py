"""A connection keeps statements prepared, up to a number of them."""

from __future__ import annotations

import pytest

from objects.database import MOST_PREPARED, fetch
from tests.statements import traffic

pytestmark = pytest.mark.django_db


def prepare_others(number: int) -> None:
    for one in range(number):
        fetch(f"SELECT {one}", (), prepare=True)


def kept() -> int:
    names = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'store%'"
    [(number,)] = fetch(names, (), prepare=False)
    return int(number)


def test_the_one_that_was_not_used_for_longest_makes_room():
    fetch("SELECT 'in use'", (), prepare=True)
    prepare_others(MOST_PREPARED - 1)
    fetch("SELECT 'in use'", (), prepare=True)
    fetch("SELECT 'one too many'", (), prepare=True)
    with traffic() as sent:
        fetch("SELECT 'in use'", (), prepare=True)
    assert (sent.executions, sent.round_trips) == (1, 1)


def test_no_more_are_kept_than_the_server_has_room_for():
    prepare_others(MOST_PREPARED + 20)
    assert kept() == MOST_PREPARED


def test_one_that_had_to_make_room_is_prepared_again():
    prepare_others(MOST_PREPARED + 20)
    with traffic() as sent:
        assert fetch("SELECT 0", (), prepare=True) == [("0",)]
    assert (sent.executions, sent.round_trips) == (1, 2)
    assert kept() == MOST_PREPARED


def test_nothing_is_kept_of_long_statements():
    long = "SELECT " + " + ".join(["1"] * 2000)
    before = kept()
    for _ in range(2):
        with traffic() as sent:
            assert fetch(long, (), prepare=True) == [("2000",)]
        assert (sent.executions, sent.round_trips) == (1, 1)
    assert kept() == before

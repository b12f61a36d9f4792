"""A connection keeps statements prepared, up to a number of them."""

from __future__ import annotations

import pytest
from django.db import transaction

from backend.kernel.errors import Timeout
from objects.core.names import check_class_name
from objects.database import prepared_statements
from objects.database.prepared_statements import MOST_PREPARED, SLOW
from objects.database.statements import fetch
from objects.definitions import registry
from tests.statements import traffic

pytestmark = pytest.mark.django_db


def prepare_others(number: int) -> None:
    for item in range(number):
        fetch(f"SELECT {item}", (), prepare=True)


def prepared_count() -> int:
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
    assert prepared_count() == MOST_PREPARED


def test_one_that_had_to_make_room_is_prepared_again():
    prepare_others(MOST_PREPARED + 20)
    with traffic() as sent:
        assert fetch("SELECT 0", (), prepare=True) == [("0",)]
    assert (sent.executions, sent.round_trips) == (1, 2)
    assert prepared_count() == MOST_PREPARED


def test_nothing_is_kept_of_long_statements():
    long = "SELECT " + " + ".join(["1"] * 2000)
    before = prepared_count()
    for _ in range(2):
        with traffic() as sent:
            assert fetch(long, (), prepare=True) == [("2000",)]
        assert (sent.executions, sent.round_trips) == (1, 1)
    assert prepared_count() == before


SLEEP = "SELECT pg_sleep(%s)"


def count_round_trips(seconds: float) -> int:
    with traffic() as sent:
        fetch(SLEEP, (seconds,), prepare=True)
    return sent.round_trips


def test_one_that_was_slow_is_planned_again(monkeypatch):
    monkeypatch.setattr(prepared_statements, "PLAN_AGE", 0.0)
    fetch(SLEEP, (0,), prepare=True)
    before = prepared_count()
    assert count_round_trips(2 * SLOW) == 1
    assert count_round_trips(0) == 2, "prepared, executed"
    # On a busy machine one of these may be slow as well.
    assert 1 in [count_round_trips(0) for _ in range(10)]
    assert prepared_count() == before


def test_one_that_was_slow_keeps_a_plan_that_was_made_just_now():
    fetch(SLEEP, (2 * SLOW,), prepare=True)
    assert count_round_trips(0) == 1


def test_one_that_was_stopped_is_planned_again(monkeypatch):
    monkeypatch.setattr(prepared_statements, "PLAN_AGE", 0.0)
    fetch(SLEEP, (0,), prepare=True)
    fetch("SET statement_timeout = '100ms'", (), prepare=False)
    with pytest.raises(Timeout), transaction.atomic():
        fetch(SLEEP, (5,), prepare=True)
    fetch("RESET statement_timeout", (), prepare=False)
    assert count_round_trips(0) == 2


def test_finds_with_a_usual_limit_are_planned_once(master):
    master.make("Game", name="a")
    table = registry.find(check_class_name("Game"))
    assert table is not None
    plans = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE %s"

    def planned(limit: int) -> tuple[int, int]:
        for _ in range(20):
            assert len(master.results("Game", limit=limit)) == 1
        # Of this class: other tests' finds may be prepared on this connection, too.
        pattern = f"%FROM {table.relation} %ORDER BY%LIMIT {limit})%"
        [(custom, generic)] = fetch(plans, (pattern,), prepare=False)
        return int(custom), int(generic)

    assert planned(20) == (5, 15), "PostgreSQL looks at five plans for values first"
    assert planned(100) == (5, 15)

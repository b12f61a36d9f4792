"""Operators who change the indexes of one class at the same time, and processes that are killed."""

from __future__ import annotations

import pytest
from django.db import connection

from objects.core.schema.definition import IndexDeclaration
from objects.definitions import indexes, registry
from objects.learned import schedule
from tests.objects.definitions.old_transactions import meeting, wait_until_blocked_by
from tests.polling import until
from tests.rest import MASTER, Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

DELETE = {"__op": "Delete"}
UNIQUE_NAME = {"fields": {"name": 1}, "unique": True}


@pytest.fixture
def caller(transactional_db) -> Api:
    caller = Api(MASTER)
    for n in range(3):
        caller.make("Game", score=n, level=n, name="same")
    return caller


def declare(caller, **declared):
    return caller.put("/schemas/Game", {"indexes": declared})


def shown(caller):
    return caller.get("/schemas/Game").json.get("indexes", {})


def is_consistent():
    table = registry.current("Game")
    return indexes.missing(table) == [] and indexes.undeclared(table) == []


def test_indexes_that_are_declared_at_once_are_all_built(caller):
    replies = at_once(
        [
            lambda: declare(caller, a={"score": 1}),
            lambda: declare(caller, b={"level": 1}),
            lambda: declare(caller, c={"name": 1}),
        ]
    )
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert shown(caller) == {"a": {"score": 1}, "b": {"level": 1}, "c": {"name": 1}}
    assert is_consistent()


def test_indexes_that_are_removed_at_once_are_all_dropped(caller):
    declare(caller, a={"score": 1}, b={"level": 1}, c={"name": 1})
    removals = [lambda name=name: declare(caller, **{name: DELETE}) for name in "abc"]
    assert [reply.status for reply in at_once(removals)] == [200, 200, 200]
    assert shown(caller) == {}
    assert is_consistent()


@pytest.mark.slow
def test_a_second_declaration_waits_for_a_long_build_of_the_first(caller):
    relation = registry.find("Game").relation
    write = f"UPDATE {relation} SET updated_at = now() WHERE false"
    with meeting(lambda: declare(caller, a={"score": 1}), write) as (beside, first):
        wait_until_blocked_by(beside)
        with meeting(lambda: declare(caller, b={"level": 1})) as (_, second):
            until(is_waiting_for_a_build, 30)
            assert first == second == []
            assert shown(caller) == {}  # an index is declared when it is built
            beside.execute("COMMIT")
    assert [reply.status for reply in first + second] == [200, 200]
    assert shown(caller) == {"a": {"score": 1}, "b": {"level": 1}}
    assert is_consistent()


def is_waiting_for_a_build():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%'"
            " AND state = 'idle' AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone() is not None


def test_an_index_that_fails_takes_no_other_of_its_name_with_it(caller):
    replies = at_once(
        [
            lambda: declare(caller, by_name=UNIQUE_NAME),
            lambda: declare(caller, by_name={"name": 1}),
        ]
    )
    assert replies[0].error in ((400, 137), (400, 102))
    assert replies[1].status == 200
    assert shown(caller) == {"by_name": {"name": 1}}
    assert is_consistent()
    caller.make("Game", name="same")


def test_of_two_indexes_of_one_name_the_first_is_declared(caller):
    replies = at_once(
        [lambda: declare(caller, a={"score": 1}), lambda: declare(caller, a={"level": 1})]
    )
    assert sorted(reply.status for reply in replies) == [200, 400]
    assert next(reply for reply in replies if reply.status == 400).error == (400, 102)
    assert is_consistent()


def test_an_index_that_a_killed_process_has_left_is_dropped(caller):
    table = registry.find("Game")
    leave(table, IndexDeclaration("left", (("level", 1),), unique=True))
    assert caller.post("/classes/Game", {"level": 1}).error == (400, 137)
    schedule.tidy()
    assert is_consistent()
    caller.make("Game", level=1)


def test_an_index_that_a_killed_process_has_left_can_be_declared_at_once(caller):
    leave(registry.find("Game"), IndexDeclaration("by_level", (("level", 1),)))
    assert declare(caller, by_level={"level": 1}).status == 200
    assert is_consistent()


def leave(table, index):
    """Leave an index as a process does that is killed before it declares what it has built."""
    indexes.build(table, index)


def test_a_change_drops_what_killed_processes_have_left_on_its_fields(caller):
    leave(registry.find("Game"), IndexDeclaration("left", (("level", 1),), unique=True))
    assert caller.put("/schemas/Game", {"fields": {"level": DELETE}}).status == 200
    assert is_consistent()
    caller.make("Game", level="text")

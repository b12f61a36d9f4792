"""Learned indexes and changes of their class: nothing is in the way, and nothing fails."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from backend.kernel.connections import postgres
from objects.learned import evidence, schedule
from tests.objects.learned.large_class import (
    GAME,
    ask,
    auto_indexes,
    game,
    is_building,
    make_class,
    plan,
)
from tests.polling import until
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DELETE = {"__op": "Delete"}
BY_RANK = (("rank", 1),)


@pytest.fixture
def caller(transactional_db) -> Api:
    return Api(MASTER)


@pytest.fixture
def learned(caller) -> Api:
    """A class with a learned index on rank, and one on level and rank."""
    make_class(caller, 8_000)
    for where in ({"rank": {"$gt": 1}}, {"level": 1}):
        ask(where, "rank")
        assert schedule.run()
    assert len(auto_indexes()) == 2
    return caller


def change(caller, **schema):
    reply = caller.put("/schemas/Game", schema)
    assert reply.status == 200, reply.json


def test_the_schema_shows_declared_indexes_alone(learned):
    assert "indexes" not in learned.get("/schemas/Game").json
    change(learned, indexes={"by_name": {"name": 1}})
    assert learned.get("/schemas/Game").json["indexes"] == {"by_name": {"name": 1}}
    assert len(auto_indexes()) == 2


def test_a_removed_field_takes_its_learned_indexes_along(learned):
    change(learned, fields={"rank": DELETE})
    assert auto_indexes() == {}
    assert evidence.learned(game().class_id) == []
    assert game().learned == ()


def test_a_field_that_comes_back_with_another_type_can_be_written_at_once(learned):
    change(learned, fields={"rank": DELETE})
    change(learned, fields={"rank": {"type": "String"}})
    learned.make("Game", rank="first")
    assert len(learned.results("Game", where={"rank": {"$gte": "a"}}, order="rank")) == 1


def test_fields_that_have_no_part_in_an_index_leave_it_alone(learned):
    before = auto_indexes()
    change(learned, fields={"tags": DELETE, "more": {"type": "Number"}})
    assert auto_indexes() == before
    assert len(game().learned) == 2
    learned.make("Game", another=1, rank=5)
    assert len(game().learned) == 2


def test_an_index_that_is_declared_replaces_the_learned_one(learned):
    change(learned, indexes={"by_rank": {"rank": -1}})
    assert game().learned == ((("level", 1), ("rank", 1)),)
    assert len(auto_indexes()) == 1
    assert "objects_declared" in plan({"rank": {"$gt": 7_900}}, "rank")


def test_a_declared_index_is_not_learned_again(learned):
    change(learned, indexes={"by_rank": {"rank": 1}})
    ask({"rank": {"$gt": 1}}, "rank", calls=200)
    assert not schedule.run()


def test_a_class_is_deleted_with_its_learned_indexes_and_costs(learned):
    class_id = game().class_id
    assert learned.delete("/purge/Game").status == 200
    assert learned.delete("/schemas/Game").status == 200
    assert evidence.learned(class_id) == []
    assert evidence.shapes(class_id) == []
    assert auto_indexes() == {}
    assert not schedule.run()


@pytest.mark.slow
def test_other_processes_use_the_index_as_soon_as_it_is_built(caller, other):
    make_class(caller, 8_000)
    query = '/classes/Game?where={"level":1}&order=rank&limit=5'.replace('"', "%22")
    before = other.do("GET", query)
    ask({"level": 1}, "rank")
    assert schedule.run()
    assert other.do("GET", query) == before
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
    (index,) = evidence.learned(game().class_id)
    until(lambda: evidence.learned(game().class_id)[0].scans_now > index.scans, 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "act",
    [
        lambda caller: caller.put("/schemas/Game", {"fields": {"rank": DELETE}}),
        lambda caller: caller.put("/schemas/Game", {"indexes": {"by_rank": {"rank": 1}}}),
        lambda caller: caller.delete("/purge/Game"),
    ],
    ids=["remove the field", "declare the index", "purge"],
)
def test_a_change_of_the_class_ends_a_build_under_way(caller, act):
    table = make_class(caller, 8_000)
    ask({"rank": {"$gt": 1}}, "rank")
    built: list[bool] = []

    def build() -> None:
        try:
            built.append(schedule.run())
        finally:
            connection.close()

    with postgres.connect(60) as beside:
        with beside.transaction():
            # Building waits for this transaction.
            beside.execute(f"UPDATE {table.relation} SET updated_at = now() WHERE false")
            builder = threading.Thread(target=build)
            builder.start()
            until(is_building, 30)
            changing = threading.Thread(target=lambda: replies.append(_closing(act, caller)))
            replies: list = []
            changing.start()
            until(lambda: not is_building(), 30)
        changing.join(60)
        builder.join(60)
    assert [reply.status for reply in replies] == [200]
    assert built == [False]
    schedule.tidy()
    assert auto_indexes() == {}
    assert game().learned == ()
    caller.make("Game", level=1)


def _closing(act, caller):
    try:
        return act(caller)
    finally:
        connection.close()


@pytest.mark.slow
def test_writers_never_fail_or_wait_while_an_index_is_built_and_dropped(caller):
    make_class(caller, 30_000)
    stop = threading.Event()
    problems: list[object] = []
    longest = [0.0] * 3

    def write(number: int) -> None:
        from time import perf_counter

        try:
            n = 0
            while not stop.is_set():
                begin = perf_counter()
                reply = caller.post("/classes/Game", {"rank": n, "name": f"writer {number}"})
                if reply.status == 201:
                    reply = caller.put(
                        f"/classes/Game/{reply.json['objectId']}", {"rank": n + 1, "level": 2}
                    )
                longest[number] = max(longest[number], perf_counter() - begin)
                if reply.status >= 300:
                    problems.append(reply.json)
                n += 1
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        for where, order in (({"rank": {"$gt": 1}}, "rank"), ({"name": {"$gt": "a"}}, "name")):
            ask(where, order)
            assert schedule.run()
        for index in evidence.learned(game().class_id):
            from objects.learned import drops

            drops.drop(GAME, index, "test")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert problems == []
    # Building takes a part of the processor, and no lock: LOCK_LIMIT would be ten seconds.
    assert max(longest) < 5
    assert auto_indexes() == {}
    written = caller.get("/classes/Game", where={"level": 2, "rank": {"$gt": 0}}, count=1, limit=0)
    assert written.json["count"] > 0

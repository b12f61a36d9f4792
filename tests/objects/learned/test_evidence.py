"""What queries cost: counted in processes, added up in the database, bounded."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connection

from objects.core.query.parser import parse_order, parse_where
from objects.database import maintenance
from objects.learned import evidence, shape_counts
from tests.objects.learned.large_class import ask, game, make_class
from tests.polling import until
from tests.rest import CLIENT, MASTER, Api
from tests.threads import at_once

WHERE, ORDER = parse_where({"rank": {"$gt": 1}}), parse_order("rank")


@pytest.fixture
def table(master):
    return make_class(master, 0)


def stored(table):
    return [(str(shape.shape), shape.since.calls) for shape in evidence.shapes(table.class_id)]


def test_finds_are_counted_with_what_they_took_and_returned(master, table):
    for n in range(3):
        master.make("Game", rank=n)
    for _ in range(4):
        master.results("Game", where={"rank": {"$gte": 1}}, order="rank")
    assert shape_counts.flush()
    (cost,) = [shape for shape in evidence.shapes(table.class_id) if shape.shape.conditions]
    assert (str(cost.shape), cost.recent.calls) == ("rank (range) in order of rank", 4)
    assert cost.recent.results == 8
    assert 0 < cost.recent.seconds < 10


def test_counting_objects_counts_with_the_number_of_those_that_match(master, table):
    for n in range(3):
        master.make("Game", rank=n)
    master.get("/classes/Game", where={"rank": {"$gte": 1}}, count=1, limit=0)
    assert shape_counts.flush()
    (cost,) = [shape for shape in evidence.shapes(table.class_id) if shape.shape.conditions]
    assert (str(cost.shape), cost.recent.results) == ("rank (range)", 2)


def test_queries_of_clients_count_for_the_same_shape(master, table):
    Api(CLIENT).results("Game", where={"rank": {"$gte": 1}}, order="rank")
    master.results("Game", where={"rank": {"$gte": 2}}, order="rank")
    assert shape_counts.flush()
    assert stored(table) == [("rank (range) in order of rank", 2)]


def test_no_value_of_a_query_is_stored(master, table):
    master.results("Game", where={"name": "a secret", "status": {"$regex": "^another secret"}})
    assert shape_counts.flush()
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(s::text, ' ') FROM objects_query_shape s")
        assert "secret" not in cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_counts_of_processes_that_flush_at_once_add_up(transactional_db):
    table = make_class(Api(MASTER), 0)
    shapes = [
        parse_where({"rank": {"$gt": 1}}),
        parse_where({"level": {"$gt": 1}}),
        parse_where({}),
    ]

    def count() -> bool:
        for _ in range(10):
            for where in shapes:
                shape_counts.note(table, where, ORDER, 0.01)
            shape_counts.flush()
        return True

    assert all(at_once([count] * 4))
    assert shape_counts.flush()
    assert sorted(calls for _, calls in stored(table)) == [40, 40, 40]


def test_shapes_beyond_the_limit_of_a_class_are_left_out_and_known_ones_still_count(table):
    shape_counts.note(table, WHERE, ORDER, 0.5)
    assert shape_counts.flush()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO objects_query_shape (class_id, digest, shape, version, calls, seconds,"
            " results, before_calls, before_seconds, window_start, window_calls, window_seconds,"
            " window_results, slow_calls, slow_seconds, last_at) SELECT %s, n::text, '{}', 0, 1, 0,"
            " 0, 0, 0, now(), 1, 0, 0, 0, 0, now() FROM generate_series(1, %s) n",
            [table.class_id, shape_counts.MAX_OF_CLASS],
        )
    shape_counts.note(table, WHERE, ORDER, 0.5)
    shape_counts.note(table, WHERE, (), 0.5)
    assert shape_counts.flush()
    assert stored(table) == [("rank (range) in order of rank", 2)]
    evidence.trim()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM objects_query_shape")
        assert cursor.fetchone()[0] == evidence.MAX_SHAPES
    assert stored(table) == [("rank (range) in order of rank", 2)]


def test_a_process_counts_the_costliest_shapes_of_any_number(table):
    names = [name for name in table.schema.fields if name != "tags"]
    shape_counts.note(table, WHERE, ORDER, 9.0)
    wheres = [
        {name: {"$exists": True} for place, name in enumerate(names) if number >> place & 1}
        for number in range(2 ** len(names))
    ]
    for order in ("rank", "-rank", "level", "-level", "name", "-name", "when", "-when"):
        for where in wheres:
            shape_counts.note(table, parse_where(where), parse_order(order), 0.001)
    assert len(shape_counts._counts) == shape_counts.MAX_IN_PROCESS
    assert shape_counts.flush()
    assert stored(table)[0] == ("rank (range) in order of rank", 1)


def test_queries_of_an_older_version_of_the_class_are_not_counted_any_more(master, table):
    shape_counts.note(table, WHERE, ORDER, 0.5)
    assert shape_counts.flush()
    evidence.restart(table.class_id, ["rank"], table.version + 1)
    shape_counts.note(table, WHERE, ORDER, 0.5)
    assert shape_counts.flush()
    (cost,) = evidence.shapes(table.class_id)
    assert (cost.since.calls, cost.before.calls, cost.recent.calls) == (0, 1, 0)


def test_a_restart_concerns_the_shapes_with_the_field_alone(table):
    for where in ({"rank": {"$gt": 1}}, {"level": {"$gt": 1}}):
        shape_counts.note(table, parse_where(where), (), 0.5)
    assert shape_counts.flush()
    evidence.restart(table.class_id, ["rank"], table.version)
    assert sorted(stored(table)) == [("level (range)", 1), ("rank (range)", 0)]


@pytest.mark.django_db(transaction=True)
def test_during_maintenance_counts_stay_in_the_process(transactional_db):
    table = make_class(Api(MASTER), 0)
    shape_counts.note(table, WHERE, ORDER, 0.5)
    maintenance.on()
    try:
        assert not shape_counts.flush()
        assert stored(table) == []
    finally:
        maintenance.off()
    assert shape_counts.flush()
    assert stored(table) == [("rank (range) in order of rank", 1)]


def test_classes_that_are_gone_and_shapes_that_no_one_asks_for_are_forgotten(master, table):
    ask({"rank": {"$gt": 1}}, calls=1)
    ask({"level": {"$gt": 1}}, calls=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE objects_query_shape SET last_at = now() - interval '15 days'"
            " WHERE shape LIKE '%rank%'"
        )
    evidence.trim()
    assert stored(table) == [("level (range) in order of createdAt", 1)]
    assert master.delete("/schemas/Game").status == 200
    shape_counts.note(table, WHERE, ORDER, 0.5)
    assert shape_counts.flush()
    assert stored(table) == []


def test_counting_does_no_round_trip(master, table):
    from tests.statements import traffic

    with traffic() as recorded:
        for _ in range(1000):
            shape_counts.note(table, WHERE, ORDER, 0.001, 1)
    assert recorded.round_trips == 0


def test_counting_in_many_threads_loses_nothing(table):
    def count() -> None:
        for _ in range(500):
            shape_counts.note(table, WHERE, ORDER, 0.001)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shape_counts.flush()
    assert stored(table) == [("rank (range) in order of rank", 4000)]
    assert game().class_id == table.class_id


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_another_process_stores_what_it_has_counted_within_seconds(transactional_db, other):
    table = make_class(Api(MASTER), 0)
    for _ in range(3):
        other.do("GET", "/classes/Game?order=-rank")
    until(lambda: ("all objects in order of -rank", 3) in stored(table), 30)


def test_a_slow_find_of_too_many_fields_to_be_counted_is_logged_as_well(table, capfd):
    names = [f"field{number}" for number in range(20)]
    change = Api(MASTER).put(
        "/schemas/Game", {"fields": {name: {"type": "Number"} for name in names}}
    )
    assert change.status == 200
    where = parse_where({name: {"$gt": 1} for name in names})
    shape_counts.note(game(), where, ORDER, 60.0)
    shape_counts.note(game(), WHERE, ORDER, 60.0)
    slow = [
        json.loads(line) for line in capfd.readouterr().err.splitlines() if "slow query" in line
    ]
    assert [(item["class_name"], item["duration_ms"], item["shape"]) for item in slow] == [
        ("Game", 60_000, "of too many fields to be counted"),
        ("Game", 60_000, "rank (range) in order of rank"),
    ]

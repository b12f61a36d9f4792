"""What the schedule does: limits, failures, processes that are killed, unused indexes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, connection, transaction

from backend.kernel.connections import advisory_locks, postgres
from objects.core.indexes.shapes import Shape
from objects.database import maintenance
from objects.definitions import class_locks
from objects.learned import builds, evidence, schedule, tasks
from objects.learned.models import LearnedIndex
from tests.objects.learned.large_class import ask, auto_indexes, game, is_building, make_class
from tests.other_process import ROOT, database_url
from tests.polling import until
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

BY_RANK = (("rank", 1),)


@pytest.fixture
def caller(transactional_db) -> Api:
    return Api(MASTER)


@pytest.fixture
def table(caller):
    return make_class(caller, 8_000)


@pytest.fixture
def beside(transactional_db):
    """A connection beside Django's."""
    with postgres.connect(30) as opened:
        yield opened


def rows():
    return {item.fields: item for item in evidence.learned(game().class_id)}


def change(sql: str, *params: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def ask_for_rank(**counts) -> None:
    ask({"rank": {"$gt": 1}}, "rank", **counts)


# -- When one is built ----------------------------------------------------------------------------


def test_the_task_builds_one_index_at_a_time(table):
    ask_for_rank()
    ask({"level": {"$gt": 1}}, "level", calls=100)
    tasks.learn_indexes()
    assert game().learned == ((("level", 1),),)
    tasks.learn_indexes()
    assert set(game().learned) == {(("level", 1),), BY_RANK}
    tasks.learn_indexes()
    assert len(auto_indexes()) == 2


@pytest.mark.parametrize("mode", ["suggest", "off"])
def test_nothing_is_built_unless_it_is_on(table, settings, mode):
    settings.SERVICE = {**settings.SERVICE, "AUTO_INDEX": mode}
    ask_for_rank()
    assert not schedule.run()
    assert auto_indexes() == {}


def test_few_queries_and_quick_ones_get_none(table):
    ask_for_rank(calls=5, seconds=1.0)
    assert not schedule.run()
    ask({"level": {"$gt": 1}}, "level", calls=1000, seconds=0.0012)
    assert not schedule.run()


def test_classes_with_columns_of_their_own_get_none(caller):
    from objects.core.query.parser import parse_order, parse_where
    from objects.definitions import registry
    from objects.learned import shape_counts

    users = registry.find("_User")
    assert users is not None
    change("INSERT INTO objects_class SELECT FROM objects_class WHERE false")
    for _ in range(100):
        shape_counts.note(users, parse_where({"score": {"$gt": 1}}), parse_order("-updatedAt"), 1.0)
    assert shape_counts.flush()
    assert not schedule.run()


def test_none_is_built_during_maintenance(table):
    ask_for_rank()
    maintenance.on()
    try:
        assert not schedule.run()
        assert auto_indexes() == {}
    finally:
        maintenance.off()
    assert schedule.run()


def test_only_one_process_at_a_time_builds(table, beside):
    ask_for_rank()
    beside.execute("SELECT pg_advisory_lock(%s)", advisory_locks.INDEX_UPKEEP.parameters)
    assert not schedule.run()
    beside.execute("SELECT pg_advisory_unlock(%s)", advisory_locks.INDEX_UPKEEP.parameters)
    assert schedule.run()


def test_a_class_has_at_most_eight(table):
    for number in range(8):
        LearnedIndex.objects.create(
            class_id=table.class_id,
            name=f"objects_auto_{table.class_id}_{number:016x}",
            fields=[[f"f{number}", 1]],
            state="valid",
            shape=Shape(()).encode(),
            started_at=datetime.now(UTC),
        )
    ask_for_rank()
    assert not builds.build(table, _suggestion())
    assert rows()[BY_RANK].reason == "the class has 8 learned indexes"
    assert not rows()[BY_RANK].may_retry


def test_an_index_that_is_too_large_for_its_class_is_not_built(caller):
    table = make_class(caller, 0)
    change(
        f"INSERT INTO {table.relation} (class_id, object_id, created_at, updated_at, data)"
        " SELECT %s, 'o' || n, now(), now(), jsonb_build_object('rank', n, 'level', n)"
        " FROM generate_series(1, 8000) AS n",
        table.class_id,
    )
    change(f"ANALYZE {table.relation}")
    ask({"rank": {"$gt": 1}}, "rank,level")
    assert schedule.run()
    ask({"level": {"$gt": 1}}, "level")
    assert not schedule.run()
    built, refused = evidence.learned(table.class_id)
    assert (built.state, refused.state) == ("valid", "failed")
    assert "size of the objects" in refused.reason
    assert built.size is not None
    assert built.size <= evidence.size_of(table).size / 2


def _suggestion():
    table = game()
    (suggestions,) = evidence.suggestions_for(table, evidence.shapes(table.class_id), [])
    return suggestions


# -- Failures -------------------------------------------------------------------------------------


def test_long_texts_are_indexed_by_their_beginning_and_can_still_be_written(caller):
    table = make_class(caller, 8_000)
    long = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(20_000))
    caller.make("Game", name=long + "b", status="long")
    ask({"name": {"$gt": "name 1"}}, "name")
    assert schedule.run()
    assert game().learned == ((("name", 1),),)
    caller.make("Game", name=long + "a", status="long")
    results = caller.results("Game", where={"name": {"$gt": "z"}}, order="name", limit=5)
    assert [result["name"][-1] for result in results] == ["a", "b"]
    assert caller.results("Game", where={"name": long + "a"})[0]["status"] == "long"
    assert table.class_id == game().class_id


def test_values_of_another_type_stop_the_build_and_are_remembered(table):
    change(
        f'UPDATE {table.relation} SET data = data || \'{{"rank": "text"}}\''
        " WHERE object_id = 'o1'"
    )
    ask_for_rank()
    assert not schedule.run()
    assert auto_indexes() == {}
    assert rows()[BY_RANK].reason == "there are values of another type"
    ask_for_rank()
    assert not schedule.run()
    assert rows()[BY_RANK].attempts == 1


@pytest.mark.slow
def test_an_old_transaction_delays_the_index_for_a_bounded_time(table, beside):
    ask_for_rank()
    with beside.transaction():
        beside.execute(f"UPDATE {table.relation} SET updated_at = now() WHERE false")
        assert not schedule.run()
        assert game().learned == ()
        assert "took too long" in rows()[BY_RANK].reason
    schedule.run()
    assert auto_indexes() == {}
    change("UPDATE objects_learned_index SET retry_at = now()")
    assert schedule.run()
    assert list(auto_indexes().values()) == [True]


# -- Processes that are killed --------------------------------------------------------------------


def test_an_index_that_a_killed_process_left_unfinished_is_dropped_and_built_later(table):
    ask_for_rank()
    assert schedule.run()
    (name,) = auto_indexes()
    # What is in the database while it is being built.
    change("UPDATE objects_learned_index SET state = 'building'")
    change("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", name)
    ask_for_rank(calls=100)
    assert not schedule.run()
    assert auto_indexes() == {}
    assert rows()[BY_RANK].reason == "the process that built it has ended"
    change("UPDATE objects_learned_index SET retry_at = now()")
    assert schedule.run()
    assert auto_indexes() == {name: True}


def test_an_index_that_was_finished_after_its_process_had_ended_is_put_to_use(table):
    ask_for_rank()
    assert schedule.run()
    change("UPDATE objects_learned_index SET state = 'building'")
    change("UPDATE objects_class SET version = nextval('objects_class_version')")
    assert game().learned == ()
    schedule.run()
    assert game().learned == (BY_RANK,)


def test_an_index_that_another_connection_still_builds_is_left_alone(table, beside):
    ask_for_rank()
    assert schedule.run()
    change("UPDATE objects_learned_index SET state = 'building'")
    beside.execute(
        "SELECT pg_advisory_lock(%s, %s)", advisory_locks.index_build(table.class_id).parameters
    )
    schedule.run()
    assert rows()[BY_RANK].state == "building"


def test_a_transaction_that_fails_keeps_no_index_from_being_built_later(table, beside):
    with transaction.atomic():
        class_locks.lock_indexes(table)
        with pytest.raises(DataError):
            change("SELECT 1 / 0")
        transaction.set_rollback(True)
    key = advisory_locks.index_build(table.class_id).parameters
    assert beside.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone() == (True,)


def test_an_index_without_a_row_and_a_row_without_an_index_are_removed(table):
    ask_for_rank()
    assert schedule.run()
    (name,) = auto_indexes()
    change("DELETE FROM objects_learned_index")
    schedule.tidy()
    assert auto_indexes() == {}
    ask_for_rank()
    assert schedule.run()
    change(f"DROP INDEX {name}")
    schedule.tidy()
    assert rows() == {}
    assert game().learned == ()


def test_the_service_s_own_indexes_are_never_taken_for_learned_ones(table):
    def own() -> set[str]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
                " AND indexname !~ '^objects_auto_[0-9]'"
            )
            return {name for (name,) in cursor.fetchall()}

    before = own()
    schedule.tidy()
    assert own() == before


@pytest.mark.slow
@pytest.mark.process
def test_a_builder_that_is_killed_leaves_nothing_that_the_next_run_does_not_put_in_order(
    table, beside
):
    ask_for_rank()
    with beside.transaction():
        # Building waits for this transaction.
        beside.execute(f"UPDATE {table.relation} SET updated_at = now() WHERE false")
        builder = subprocess.Popen(
            [sys.executable, "manage.py", "indexes", "Game", "--build"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database_url(), "PROCESS": "manage"},
        )
        try:
            until(is_building, 30)
        finally:
            builder.kill()
            builder.wait()
        assert not schedule.run()
        assert rows()[BY_RANK].state == "building"
    until(lambda: not is_building(), 30)
    until(lambda: schedule.run() or game().learned, 30)
    assert game().learned == (BY_RANK,)
    assert list(auto_indexes().values()) == [True]


# -- Indexes that aren't worth it -----------------------------------------------------------------


def test_an_index_that_was_not_used_for_two_weeks_is_dropped(table):
    ask_for_rank()
    assert schedule.run()
    long_ago = datetime.now(UTC) - timedelta(days=schedule.UNUSED_DAYS, minutes=1)
    change("UPDATE objects_learned_index SET built_at = %s, used_at = %s", long_ago, long_ago)
    change("DELETE FROM objects_query_shape")
    schedule.run()
    assert auto_indexes() == {}
    assert rows() == {}
    assert game().learned == ()


def test_times_in_which_the_service_did_not_run_do_not_count_as_unused(table):
    ask_for_rank()
    assert schedule.run()
    long_ago = datetime.now(UTC) - timedelta(days=30)
    change(
        "UPDATE objects_learned_index SET built_at = %s, used_at = %s, checked_at = %s",
        *[long_ago] * 3,
    )
    schedule.run()
    assert len(auto_indexes()) == 1
    assert rows()[BY_RANK].used_at > datetime.now(UTC) - timedelta(days=1)


def test_use_is_noted_by_the_counters_and_a_reset_of_them_is_no_use(table):
    ask_for_rank()
    assert schedule.run()
    long_ago = datetime.now(UTC) - timedelta(days=13)
    change("UPDATE objects_learned_index SET used_at = %s, scans = 500", long_ago)
    change("SELECT pg_stat_reset()")
    evidence.note_use()
    index = rows()[BY_RANK]
    assert (index.used_at, index.scans) == (long_ago, 0)
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(
            f"SELECT FROM {table.relation} WHERE (data->>'rank')::numeric > 7990 LIMIT 1"
        )
        cursor.execute("SET enable_seqscan = on")
        cursor.execute("SELECT pg_stat_force_next_flush()")
    evidence.note_use()
    index = rows()[BY_RANK]
    assert index.scans > 0
    assert index.used_at > long_ago


def test_an_index_that_does_not_help_is_dropped_and_not_built_again_for_a_week(table):
    ask_for_rank(seconds=0.1)
    assert schedule.run()
    ask_for_rank(seconds=0.09)
    schedule.run()
    assert auto_indexes() == {}
    index = rows()[BY_RANK]
    assert (index.state, index.may_retry) == ("failed", False)
    assert "not much faster" in index.reason
    ask_for_rank()
    assert not schedule.run()


def test_an_index_that_helps_stays_however_often_it_is_looked_at(table):
    ask_for_rank(seconds=0.1)
    assert schedule.run()
    for _ in range(3):
        ask_for_rank(seconds=0.001)
        schedule.run()
    assert len(auto_indexes()) == 1


def test_an_index_that_makes_other_queries_slower_is_dropped(table):
    ask({"rank": {"$exists": True}, "level": 3}, calls=100, seconds=0.001)
    ask_for_rank(seconds=0.1)
    assert schedule.run()
    ask_for_rank(seconds=0.001)
    ask({"rank": {"$exists": True}, "level": 3}, calls=100, seconds=0.2)
    schedule.run()
    assert auto_indexes() == {}
    assert "other queries" in rows()[BY_RANK].reason


def test_what_is_not_built_again_for_a_while_is_not_forgotten_for_others(table) -> None:
    """Otherwise a client's queries of many shapes have the same indexes built again and again."""
    ask_for_rank()
    for number in range(2 * evidence.MAX_FAILED):
        LearnedIndex.objects.create(
            class_id=table.class_id,
            name=f"failed_{number}",
            fields=[["level", 1]],
            state=LearnedIndex.FAILED,
            shape="",
            started_at=datetime.now(UTC) - timedelta(hours=number),
            retry_at=datetime.now(UTC) + timedelta(days=1 if number % 2 else -1),
        )
    schedule.tidy()
    failed = evidence.learned(table.class_id)
    assert sum(not index.may_retry for index in failed) == evidence.MAX_FAILED
    assert not schedule.build_next()
    LearnedIndex.objects.filter(name="failed_1").update(retry_at=datetime.now(UTC))
    assert schedule.build_next()
    assert rows()[BY_RANK].state == "valid"

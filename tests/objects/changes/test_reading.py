"""Each committed change is read once, under all concurrency."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connections, transaction

from backend.kernel.errors import ServiceUnavailable
from objects.changes import Reader
from objects.changes.reader import _LOOK as LOOK
from objects.database import maintenance
from tests.objects.changes.concurrent_writes import age_of_marks, elsewhere, sql, uncommitted, until
from tests.objects.changes.recorder import Watch, everything, recorded
from tests.other_process import database_url
from tests.people import sign_up
from tests.rest import MASTER, Api

# -- Transactions ---------------------------------------------------------------------------------


def test_what_is_committed_late_is_read_then_and_holds_no_one_up(watch: Watch, master: Api) -> None:
    master.make("Game", n="first")
    reader = watch("Game")
    with uncommitted(lambda: master.make("Game", n="late")) as commit:
        master.make("Game", n="early")
        assert recorded(reader) == [(None, {"n": "early"})]
        master.make("Game", n="also early")
        assert recorded(reader) == [(None, {"n": "also early"})]
        commit()
    assert recorded(reader) == [(None, {"n": "late"})]
    assert recorded(reader) == []


def test_every_reader_has_everything_once(watch: Watch, master: Api) -> None:
    first = watch("Game")
    master.make("Game", n=1)
    second = watch("Game")
    master.make("Game", n=2)
    assert [after["n"] for _, after in recorded(first)] == [1, 2]
    assert [after["n"] for _, after in recorded(second)] == [2]
    master.make("Game", n=3)
    assert recorded(second) == recorded(first) == [(None, {"n": 3})]


def test_a_look_with_much_that_was_read_goes_along_indexes_and_alone(
    watch: Watch, master: Api
) -> None:
    master.make("Game", n=1)
    sql(
        "INSERT INTO objects_change (class_id, object_id, after, size)"
        " SELECT c.id, 'x', to_jsonb(repeat('x', 600)), 600"
        " FROM objects_class c, generate_series(1, 30000) WHERE c.name = 'Game'"
    )
    sql("ANALYZE objects_change")
    reader = watch("Game")
    assert recorded(reader) == []
    names = "'{Game}'::text[]"
    request = ("'{}'", "'{}'", "'3'", "'{}'", names, "'1000'")
    plan = "\n".join(row[0] for row in sql("EXPLAIN " + LOOK.replace("%s", "{}").format(*request)))
    assert "Gather" not in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize("table", ["objects_change", "objects_class"])
def test_a_reading_whose_connection_is_lost_is_repeated_whole(
    watch: Watch, master: Api, table: str
) -> None:
    reader = watch("Game")
    master.make("Game", n=1)
    with elsewhere() as do, ThreadPoolExecutor(1) as pool, psycopg.connect(database_url()) as other:
        pid = do(lambda: sql("SELECT pg_backend_pid()")[0][0])
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        reading = pool.submit(do, reader.read)
        # Of the reading's own: others wait for locks in other databases of the server.
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND pid = %s"
        until(lambda: other.execute(waiting, (pid,)).fetchone() is not None)
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        with pytest.raises(ServiceUnavailable):
            reading.result(20)
    assert recorded(reader) == [(None, {"n": 1})]


def test_who_began_to_write_before_a_class_was_wanted_is_waited_for(db: None, master: Api) -> None:
    master.make("Game", n=0)
    reader = Reader()
    with uncommitted(lambda: master.make("Game", n=1)) as commit:

        def commit_when_wanted() -> None:
            until(lambda: sql("SELECT FROM objects_interest WHERE class_name = 'Game'") != [])
            commit()
            connections.close_all()

        with ThreadPoolExecutor(1) as pool:
            committed = pool.submit(commit_when_wanted)
            reader.want({"Game"})
            assert sql("SELECT FROM objects_object WHERE data = '{\"n\": 1}'") != []
            committed.result(20)
    assert everything(reader) == []


def test_who_has_written_for_long_before_a_class_was_wanted_leaves_a_gap(
    db: None, master: Api
) -> None:
    master.make("Game", n=0)
    reader = Reader()
    reader.want({"Other"})
    with uncommitted(lambda: master.make("Game", n=1)) as commit:
        reader.want({"Game", "Other"})
        assert everything(reader) == []
        commit()
    everything(reader, gap={"Game"})
    assert everything(reader) == []


def test_a_class_that_is_being_made_is_waited_for_too(db: None, master: Api) -> None:
    reader = Reader()
    with uncommitted(lambda: master.make("Unborn", n=1)) as commit:
        reader.want({"Unborn"})
        commit()
    everything(reader, gap={"Unborn"})
    master.make("Unborn", n=2)
    assert recorded(reader) == [(None, {"n": 2})]


def test_ends_of_sessions_come_before_much_else(watch: Watch, master: Api) -> None:
    """Numbers aren't in the order of commits: what was written before may be committed later."""
    game = master.make("Game", n=0)
    ann = sign_up("ann")
    reader = watch("Game", "_Session")

    def make_many() -> None:
        sql(
            "INSERT INTO objects_object (class_id, object_id, created_at, updated_at, data)"
            f" SELECT class_id, 'many' || n, created_at, updated_at, data FROM objects_object,"
            f" generate_series(1, 1500) n WHERE object_id = '{game}'"
        )

    with uncommitted(make_many) as commit:
        assert ann.post("/logout").status == 200
        commit()
    first = reader.read().changes
    assert [(item.table.class_name, item.after) for item in first if item.after is None] == [
        ("_Session", None)
    ]
    assert len(first) + len(everything(reader)) == 1501


@pytest.mark.slow
def test_more_than_can_be_kept_in_mind_is_a_gap(watch: Watch, master: Api) -> None:
    master.make("Game", n=1)
    reader = watch("Game")
    sql(
        "INSERT INTO objects_change (class_id, object_id, size)"
        " SELECT id, 'many', 0 FROM objects_class, generate_series(1, 200001) WHERE name = 'Game'"
    )
    assert everything(reader, gap={"Game"}) == []
    master.make("Game", n=2)
    assert recorded(reader) == [(None, {"n": 2})]


# -- Where it works -------------------------------------------------------------------------------


def test_readers_work_in_maintenance_mode(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    maintenance.on()
    try:
        assert master.post("/classes/Game", {}).error == (400, 119)
        reader.want({"Game", "Other"})
        reader.trim()
        assert everything(reader) == []
        age_of_marks(61)
        reader.trim()
        assert everything(reader) == []
        with maintenance.own_records():
            master.make("Game")
        assert len(everything(reader)) == 1
    finally:
        maintenance.off()


def test_every_class_of_a_model_is_captured(db: None) -> None:
    from objects.changes import capture
    from objects.definitions import registry

    def lacking() -> set[str]:
        return {
            relation
            for relation, _ in registry.model_storage().values()
            if sql(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(%s)"
                " AND tgname LIKE 'objects_change_%%'",
                relation,
            )
            != [(3,)]
        }

    assert lacking() == set()
    sql("DROP TRIGGER objects_change_update ON catalogue_book")
    assert lacking() == {'"catalogue_book"'}
    capture.install()
    assert lacking() == set()


def test_classes_of_all_ages_have_the_trigger(db: None, master: Api) -> None:
    master.make("Game")
    partitions = "SELECT inhrelid FROM pg_inherits WHERE inhparent = 'objects_object'::regclass"
    assert sql(
        f"SELECT count(*) FROM ({partitions}) p WHERE NOT EXISTS (SELECT FROM pg_trigger t"
        " WHERE t.tgrelid = p.inhrelid AND t.tgname = 'objects_change')"
    ) == [(0,)]


# -- Everything at once ---------------------------------------------------------------------------

_WRITERS = 4
_TRANSACTIONS = int(os.environ.get("CHANGES_STRESS", "40"))


@pytest.mark.slow
def test_under_concurrent_writers_each_change_is_read_once_and_follows_the_one_before(
    watch: Watch, master: Api
) -> None:
    """Writers change the same few objects, in transactions of several changes, some rolled back
    and some of them long; two readers, one of which restarts now and then."""
    from random import Random

    class_name, objects = "Counter", 6
    ids = [master.make(class_name, n=0) for _ in range(objects)]
    reader, other = watch(class_name, "Book"), watch(class_name)
    over = threading.Event()

    def write(number: int) -> int:
        random, committed = Random(number), 0
        api = Api(MASTER)
        try:
            for turn in range(_TRANSACTIONS):
                fails = random.random() < 0.25
                chosen = sorted(random.sample(ids, random.randint(1, 3)))
                with transaction.atomic():
                    for item in chosen:
                        path = f"/classes/{class_name}/{item}"
                        body = {"n": {"__op": "Increment", "amount": 1}, "by": f"{number}/{turn}"}
                        assert api.put(path, body).status == 200
                    if random.random() < 0.2:
                        api.make(class_name, n=0, by=f"{number}/{turn}")
                        committed += not fails
                    if random.random() < 0.1:
                        sql("SELECT pg_sleep(0.01)")
                    transaction.set_rollback(fails)
                committed += 0 if fails else len(chosen)
            return committed
        finally:
            connections.close_all()

    def read(entry: Reader) -> list[Any]:
        observed = []
        try:
            while True:
                was_over = over.is_set()
                batch = entry.read()
                assert not batch.gap
                observed += batch.changes
                if not batch.changes:
                    if was_over:
                        return observed
                    pause = entry.sleep()
                    over.wait(min(pause, 0.01))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(_WRITERS + 2) as pool:
        readings = [pool.submit(read, element) for element in (reader, other)]
        writings = [pool.submit(write, number) for number in range(_WRITERS)]
        committed = sum(element.result(120) for element in writings)
        over.set()
        first, second = (element.result(60) for element in readings)
    for results in (first, second):
        assert len(results) == committed
        last = dict.fromkeys(ids, 0)
        for change in results:
            assert change.after is not None
            before = change.before.object()["n"] if change.before else None
            assert last.get(change.object_id) == before
            last[change.object_id] = change.after.object()["n"]
        for element, number in last.items():
            assert Api(MASTER).get(f"/classes/{class_name}/{element}").json["n"] == number

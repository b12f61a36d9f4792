"""Changes of classes that old transactions are using: others go on, and the change succeeds."""

from __future__ import annotations

import pytest
from django.db import connection

from objects.definitions import class_locks, registry
from objects.definitions.class_locks import ClassInUse
from tests.objects.definitions.old_transactions import (
    meeting,
    old_transaction,
    wait_until_blocked_by,
)
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db(transaction=True)

DELETE = {"__op": "Delete"}
FIELDS = {
    "score": {"type": "Number"},
    "name": {"type": "String", "unique": True},
    "level": {"type": "Number"},
}


@pytest.fixture
def caller(transactional_db) -> Api:
    caller = Api(MASTER)
    schema = {"fields": FIELDS, "indexes": {"by_level": {"level": 1}}}
    assert caller.post("/schemas/Game", schema).status == 200
    caller.make("Other", a=1)
    return caller


def read(relation: str) -> str:
    return f"SELECT count(*) FROM {relation}"


def write(relation: str) -> str:
    return f"UPDATE {relation} SET updated_at = now()"


def remove_plain_field(caller):
    return caller.put("/schemas/Game", {"fields": {"score": DELETE}})


def remove_unique_field(caller):
    return caller.put("/schemas/Game", {"fields": {"name": DELETE}})


def remove_index(caller):
    return caller.put("/schemas/Game", {"indexes": {"by_level": DELETE}})


def purge(caller):
    return caller.delete("/purge/Game")


def remove_class(caller):
    return caller.delete("/schemas/Game")


@pytest.mark.parametrize(
    ("change", "statement"),
    [
        (remove_plain_field, write),
        (remove_unique_field, read),
        (remove_unique_field, write),
        (remove_index, read),
        (remove_index, write),
        (purge, write),
        (remove_class, write),
    ],
)
def test_a_change_waits_for_an_old_transaction_while_others_go_on(caller, change, statement):
    relation = registry.find("Game").relation
    if change is not remove_class:
        caller.make("Game", score=1, name="a", level=1)
    with meeting(lambda: change(caller), statement(relation)) as (beside, replies):
        for n in range(2):
            wait_until_blocked_by(beside)
            # Behind a waiting change they would end with 124 after LOCK_TIMEOUT.
            assert caller.get("/classes/Game").status == 200
            assert caller.get("/classes/Other").status == 200
            if change is not remove_class:
                caller.make("Game", name=f"new {n}")
            caller.make("Other", a=n)
        assert replies == []
        if change in (remove_unique_field, remove_index):
            schema = caller.get("/schemas/Game").json
            assert schema["fields"]["name"]["unique"] is True
            assert schema["indexes"] == {"by_level": {"level": 1}}
            assert caller.post("/classes/Game", {"name": "new 0"}).error == (400, 137)
    assert [reply.status for reply in replies] == [200], replies[0].json


@pytest.mark.parametrize(
    ("change", "statement"),
    [(remove_plain_field, read), (purge, read), (remove_class, read)],
)
def test_a_change_that_readers_are_not_in_the_way_of_does_not_wait_for_them(
    caller, change, statement
):
    if change is not remove_class:
        caller.make("Game", score=1, name="a", level=1)
    with old_transaction(statement(registry.find("Game").relation), read("objects_object")):
        assert change(caller).status == 200
        caller.make("Another", a=1)
    assert caller.results("Game") == [] or change is remove_plain_field


def test_what_an_old_reader_has_seen_stays_until_it_ends(caller):
    caller.make("Game", score=1)
    relation = registry.find("Game").relation
    with old_transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", read(relation)) as old:
        assert purge(caller).status == 200
        assert caller.results("Game") == []
        assert old.execute(read(relation)).fetchone() == (1,)


def test_a_change_that_can_not_get_its_locks_is_refused_and_names_who_has_them(caller):
    relation = registry.find("Game").relation

    def lock_out_readers(table):
        class_locks.lock_table(table, "ACCESS EXCLUSIVE")

    with old_transaction(read(relation)) as beside:
        pid = beside.info.backend_pid
        with pytest.raises(ClassInUse) as refused:
            class_locks.alter("Game", lock_out_readers, patience=0)
    assert f"The class Game is in use by pid {pid} (" in refused.value.message
    assert refused.value.status == 503
    assert refused.value.headers == {"Retry-After": "1"}


def test_a_field_of_a_large_class_is_removed_in_batches_and_for_all_objects(caller):
    table = registry.find("Game")
    fill(table, 6_000)
    assert remove_plain_field(caller).status == 200
    assert caller.get("/classes/Game", count=1, limit=0).json["count"] == 6_000
    assert rows(f"SELECT count(*) FROM {table.relation} WHERE data ? 'score'") == [(0,)]


def test_a_large_class_that_is_read_is_purged_in_batches(caller):
    table = registry.find("Game")
    fill(table, 6_000)
    with old_transaction(read(table.relation)):
        assert purge(caller).status == 200
    assert caller.results("Game") == []


def fill(table, count):
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table.relation} (class_id, object_id, created_at, updated_at, data)"
            " SELECT %s, 'o' || n, now(), now(), jsonb_build_object('score', n, 'name', n::text)"
            " FROM generate_series(1, %s) AS n",
            [table.class_id, count],
        )
        cursor.execute(f"ANALYZE {table.relation}")


def rows(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_a_removal_that_is_stopped_at_the_time_limit_leaves_field_and_index(caller):
    caller.make("Game", name="a", score=1)
    relation = registry.find("Game").relation
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION test_sleep() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'"
        )
        cursor.execute(
            f"CREATE TRIGGER slow BEFORE UPDATE ON {relation} FOR EACH ROW"
            " EXECUTE FUNCTION test_sleep()"
        )
        cursor.execute("SET statement_timeout = '1s'")
        try:
            assert remove_unique_field(caller).error == (400, 124)
        finally:
            cursor.execute("RESET statement_timeout")
            cursor.execute("DROP FUNCTION test_sleep CASCADE")
    assert caller.get("/schemas/Game").json["fields"]["name"]["unique"] is True
    assert caller.post("/classes/Game", {"name": "a"}).error == (400, 137)
    assert remove_unique_field(caller).status == 200
    caller.make("Game", name=5)

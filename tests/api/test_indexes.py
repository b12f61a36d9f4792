"""Declared indexes: built, used, unique, and taken back where they can't be built."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from objects.database import maintenance
from objects.definitions import indexes, registry
from tests.objects.definitions.old_transactions import meeting, wait_until_blocked_by
from tests.rest import MASTER, Api

TEXT, NUMBER = {"type": "String"}, {"type": "Number"}
DELETE = {"__op": "Delete"}


def make(master, **schema):
    reply = master.post("/schemas/Game", schema)
    assert reply.status == 200, reply.json


def change(master, **schema):
    return master.put("/schemas/Game", schema)


def stored_indexes():
    """Names and definitions of the declared indexes in the database, with their validity."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.indisvalid, i.indisunique FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN objects_class o ON i.indrelid = to_regclass('objects_object_' || o.id)"
            " WHERE c.relname LIKE 'objects_declared%'"
        )
        return cursor.fetchall()


def plan_of(**options):
    """PostgreSQL's plan for a find, with little to be gained by reading the whole table."""
    from objects.core.query.parser import parse_order, parse_where
    from objects.sql.compiler import compile_query, order_by
    from objects.sql.fragments import Sql

    table = registry.find("Game")
    where = parse_where(options.get("where"))
    condition = compile_query(where, table, "t")
    order = Sql("")
    if "order" in options:
        order = order_by(parse_order(options["order"]), table, "t", where)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) SELECT * FROM {table.relation} t WHERE {condition.text}"
            f" {order.text} LIMIT 5",
            [*condition.params, *order.params],
        )
        return json.dumps(cursor.fetchone()[0])


def test_a_declared_index_serves_ranges_orders_and_equality(master):
    make(
        master,
        fields={"score": NUMBER, "name": TEXT, "when": {"type": "Date"}},
        indexes={
            "by_score": {"score": 1},
            "by_name": {"name": -1},
            "by_both": {"name": 1, "score": -1},
            "by_when": {"when": 1},
        },
    )
    master.make("Game", score=1, name="a")
    assert len(stored_indexes()) == 4
    for options in (
        {"where": {"score": {"$gt": 1, "$lt": 5}}},
        {"order": "score"},
        {"order": "-score"},
        {"where": {"score": 3}},
        {"where": {"name": {"$gte": "a", "$lt": "b"}}},
        {"where": {"name": {"$regex": "^abc"}}},
        {"order": "name,-score"},
        {"where": {"when": {"$gt": {"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"}}}},
    ):
        assert "objects_declared" in plan_of(**options), options


def test_equality_on_any_field_is_served_without_a_declared_index(master):
    make(master, fields={"score": NUMBER, "tags": {"type": "Array"}})
    for where in ({"score": 3}, {"tags": "a"}, {"tags": {"$all": ["a", "b"]}}):
        assert "_fields_1" in plan_of(where=where), where


def test_newest_first_is_served_by_an_index(master):
    make(master)
    assert "created_at" in plan_of(order="-createdAt")
    assert "Sort Key" not in plan_of(order="-createdAt")


@pytest.mark.django_db(transaction=True)
class TestIndexesOutsideOfTransactions:
    @pytest.fixture(autouse=True)
    def _master(self, transactional_db):
        self.master = Api(MASTER)

    def test_an_index_is_built_and_dropped_on_demand(self):
        self.master.make("Game", score=1)
        assert change(self.master, indexes={"by_score": {"score": 1}}).status == 200
        ((_, valid, unique),) = stored_indexes()
        assert (valid, unique) == (True, False)
        shown = self.master.get("/schemas/Game").json["indexes"]
        assert shown == {"by_score": {"score": 1}}
        assert change(self.master, indexes={"by_score": DELETE}).status == 200
        assert stored_indexes() == []
        assert "indexes" not in self.master.get("/schemas/Game").json

    def test_a_declared_index_can_not_be_declared_again(self):
        self.master.make("Game", score=1)
        change(self.master, indexes={"by_score": {"score": 1}})
        reply = change(self.master, indexes={"by_score": {"score": -1}})
        assert reply.error == (400, 102)

    def test_a_unique_field_takes_a_value_once_and_the_error_names_it(self):
        make(self.master, fields={"name": {**TEXT, "unique": True}})
        first = self.master.make("Game", name="a")
        other = self.master.make("Game", name="b")
        for reply in (
            self.master.post("/classes/Game", {"name": "a"}),
            self.master.put(f"/classes/Game/{other}", {"name": "a"}),
        ):
            assert reply.error == (400, 137)
            assert reply.json["error"] == (
                "A duplicate value for a field with unique values was provided: name"
            )
        assert self.master.put(f"/classes/Game/{first}", {"name": "a"}).status == 200
        assert len(self.master.results("Game")) == 2

    def test_missing_values_are_never_duplicates(self):
        make(self.master, fields={"name": {**TEXT, "unique": True}})
        for _ in range(2):
            self.master.make("Game")
            self.master.make("Game", name=None)
        assert len(self.master.results("Game")) == 4

    def test_a_unique_index_over_several_fields_takes_a_combination_once(self):
        unique = {"fields": {"name": 1, "level": 1}, "unique": True}
        make(self.master, fields={"name": TEXT, "level": NUMBER}, indexes={"both": unique})
        self.master.make("Game", name="a", level=1)
        self.master.make("Game", name="a", level=2)
        reply = self.master.post("/classes/Game", {"name": "a", "level": 1})
        assert reply.error == (400, 137)
        assert reply.json["error"].endswith("name, level")

    def test_a_unique_index_that_can_not_be_built_is_taken_back(self):
        for _ in range(2):
            self.master.make("Game", name="same", score=1)
        expected = {
            "by_name": {"fields": {"name": 1}, "unique": True},
            "by_score": {"score": 1},
        }
        reply = change(self.master, indexes=expected, fields={"level": NUMBER})
        assert reply.error == (400, 137)
        schema = self.master.get("/schemas/Game").json
        assert set(schema["indexes"]) == {"by_score"}
        assert "level" in schema["fields"]
        assert [valid for _, valid, _ in stored_indexes()] == [True]
        self.master.make("Game", name="same")

    def test_a_field_that_can_not_become_unique_stays_as_it_was(self):
        for _ in range(2):
            self.master.make("Game", name="same")
        reply = change(self.master, fields={"name": {**TEXT, "unique": True}})
        assert reply.error == (400, 137)
        assert self.master.get("/schemas/Game").json["fields"]["name"] == TEXT
        assert stored_indexes() == []
        self.master.make("Game", name="same")

    def test_an_index_that_a_stored_text_is_too_long_for_is_taken_back(self):
        self.master.make("Game", name="".join(chr(0x4E00 + n * 7 % 20_000) for n in range(20_000)))
        reply = change(self.master, indexes={"by_name": {"name": 1}})
        assert reply.error == (400, 255)
        assert "indexes" not in self.master.get("/schemas/Game").json
        assert stored_indexes() == []

    def test_a_removed_field_takes_its_index_along(self):
        make(self.master, fields={"name": {**TEXT, "unique": True}}, indexes={"n": {"name": 1}})
        assert len(stored_indexes()) == 2
        change(self.master, fields={"name": DELETE})
        assert stored_indexes() == []
        assert "indexes" not in self.master.get("/schemas/Game").json

    def test_a_field_is_removed_together_with_its_index_when_no_reader_is_left(self):
        with self.removing_the_score() as replies:
            assert self.master.post("/classes/Game", {"score": "text"}).error == (400, 111)
            assert self.master.post("/classes/Game", {"score": 1}).error == (400, 137)
            assert "score" in self.master.get("/schemas/Game").json["fields"]
            assert "by_score" in self.master.get("/schemas/Game").json["indexes"]
        assert [reply.status for reply in replies] == [200]
        assert stored_indexes() == []
        self.master.make("Game", score="text")

    def test_an_index_stays_if_its_field_can_not_be_removed(self):
        try:
            with self.removing_the_score() as replies:
                maintenance.on()  # waits for the attempt that is under way
        finally:
            maintenance.off()
        assert [reply.error for reply in replies] == [(400, 119)]
        ((_, valid, unique),) = stored_indexes()
        assert (valid, unique) == (True, True)
        assert self.master.post("/classes/Game", {"score": 1}).error == (400, 137)

    @contextmanager
    def removing_the_score(self):
        """While a request that removes a field waits for a reader, to drop the field's index."""
        unique = {"fields": {"score": 1}, "unique": True}
        make(self.master, fields={"score": NUMBER}, indexes={"by_score": unique})
        self.master.make("Game", score=1)
        read = f"SELECT count(*) FROM {registry.find('Game').relation}"
        removal = partial(change, self.master, fields={"score": DELETE})
        with meeting(removal, read) as (reader, replies):
            wait_until_blocked_by(reader)
            yield replies

    def test_a_text_and_a_geo_index_are_built(self):
        make(
            self.master,
            fields={"name": TEXT, "spot": {"type": "GeoPoint"}},
            indexes={"words": {"name": "text"}, "places": {"spot": "2dsphere"}},
        )
        assert [valid for _, valid, _ in stored_indexes()] == [True, True]


# -- Several fields -------------------------------------------------------------------------------

COMPOUND = {
    "by_score": {"score": -1, "code": 1},
    "words": {"title": "text", "code": "text"},
    "pairs": {"fields": {"title": 1, "code": 1}, "unique": True},
}


def make_compound(master):
    fields = {"score": NUMBER, "code": TEXT, "title": TEXT}
    make(master, fields=fields, indexes=COMPOUND)
    # What every other process reads: the definition that is stored.
    registry.forget_all()
    return registry.find("Game")


def test_the_fields_of_an_index_keep_their_order(master):
    table = make_compound(master)
    assert indexes.missing(table) == []
    shown = master.get("/schemas/Game").json["indexes"]
    assert [[*shown[name]] for name in ("by_score", "words")] == [
        ["score", "code"],
        ["title", "code"],
    ]
    assert [*shown["pairs"]["fields"]] == ["title", "code"]


def test_an_index_of_several_fields_is_removed_from_every_process(master):
    make_compound(master)
    assert len(stored_indexes()) == 3
    removed = dict.fromkeys(COMPOUND, DELETE)
    assert change(master, indexes=removed).status == 200
    assert stored_indexes() == []


def test_an_update_finds_the_order_of_indexes_that_are_older_than_it(master):
    expected = make_compound(master).schema
    with connection.cursor() as cursor:
        cursor.execute("UPDATE objects_class SET definition = definition - 'indexOrders'")
    registry.forget_all()
    assert registry.find("Game").schema != expected
    migration = import_module("objects.migrations.0015_index_orders")
    migration.keep_orders(apps, connection.schema_editor())
    registry.forget_all()
    assert registry.find("Game").schema == expected


@pytest.mark.parametrize(
    "index", [{"title": "text", "score": 1}, {"place": "2dsphere", "score": -1}]
)
def test_words_and_places_need_indexes_of_their_own(master, index):
    make(master, fields={"score": NUMBER, "title": TEXT, "place": {"type": "GeoPoint"}})
    assert change(master, indexes={"mixed": index}).error == (400, 102)
    assert stored_indexes() == []

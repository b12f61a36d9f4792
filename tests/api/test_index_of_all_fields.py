"""The index of all fields: what of a large object is in it, and how a former one is replaced."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from objects.database import catalog
from objects.definitions import class_rows, registry
from objects.learned import replacements
from objects.sql.tables import ClassTable
from tests.callers import MASTER
from tests.rest import Api

FORMER = "USING gin (data jsonb_path_ops)"
LONG = [number * 7919 for number in range(20_000)]


def indexed(value: dict[str, Any]) -> dict[str, Any]:
    """What the index has of an object."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT objects_indexed_1(%s::jsonb)::text", [json.dumps(value)])
        result: dict[str, Any] = json.loads(cursor.fetchone()[0])
        return result


@pytest.mark.django_db
def test_an_object_of_up_to_8_kib_is_in_the_index_whole():
    value = {"list": LONG[:500], "text": "a", "nested": {"a": [1, {"b": None}]}}
    assert indexed(value) == value
    long_text = {"text": "a" * 100_000, "list": LONG[:500]}
    assert indexed(long_text) == long_text


@pytest.mark.django_db
def test_the_largest_lists_and_objects_are_left_out():
    pointer = {"__type": "Pointer", "className": "Other", "objectId": "o1"}
    value = {
        "long": LONG,
        "tags": ["a", "b"],
        "large": {f"key{number}": number for number in range(2_000)},
        "small": {"a": {"b": 1}},
        "text": "a" * 10_000,
        "owner": pointer,
        "number": 1,
        "missing": None,
    }
    left_out = {"long": "(left out)", "large": "(left out)"}
    assert indexed(value) == value | left_out


@pytest.mark.django_db
def test_many_lists_together_are_bounded_and_pointers_stay():
    pointer = {"__type": "Pointer", "className": "Other", "objectId": "o1"}
    lists = {f"list{number}": LONG[:90] for number in range(300)}
    pointers = {f"pointer{number}": pointer for number in range(300)}
    result = indexed(lists | pointers)
    assert len(result) == 600
    assert {name: result[name] for name in pointers} == pointers
    assert sum(result[name] != "(left out)" for name in lists) < 12


def test_equality_finds_what_is_left_out(master: Api):
    fields = {"name": {"type": "String"}, "list": {"type": "Array"}, "info": {"type": "Object"}}
    master.post("/schemas/Long", {"fields": fields})
    long = master.make("Long", name="long", list=LONG, info={"a": LONG, "b": 5})
    short = master.make("Long", name="short", list=LONG[:3], info={"a": LONG[:3], "b": 5})
    both = {long, short}
    for where, expected in (
        ({"list": LONG[1]}, both),
        ({"list": LONG[-1]}, {long}),
        ({"list": {"$all": [LONG[0], LONG[-1]]}}, {long}),
        ({"list": {"$in": [LONG[-1], "none"]}}, {long}),
        ({"list": "(left out)"}, set()),
        ({"info.a": LONG[1]}, both),
        ({"info.a": LONG[-1]}, {long}),
        ({"info.b": 5}, both),
        ({"info": {"a": LONG[:3], "b": 5}}, {short}),
        ({"info": "(left out)"}, set()),
        ({"name": "long", "list": LONG[0]}, {long}),
    ):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        results = master.get(f"/classes/Long?where={quote(json.dumps(where))}").json["results"]
        assert {obj["objectId"] for obj in results} == expected, where


def test_a_lookup_finds_what_is_left_out(master: Api):
    long = master.make("Long", list=LONG)
    short = master.make("Long", list=LONG[:3])
    for number in (LONG[1], LONG[-1], 5):
        master.make("Other", number=number)
    lookup = {"from": "Long", "localField": "number", "foreignField": "list", "as": "longs"}
    pipeline = [{"$lookup": lookup}, {"$project": {"number": 1, "longs.objectId": 1}}]
    reply = master.get(f"/aggregate/Other?pipeline={quote(json.dumps(pipeline))}")
    results = {
        obj["number"]: {each["objectId"] for each in obj["longs"]} for obj in reply.json["results"]
    }
    assert results == {LONG[1]: {long, short}, LONG[-1]: {long}, 5: set()}


@pytest.mark.django_db(transaction=True)
class TestReplacement:
    """Indexes that an earlier version has made."""

    @pytest.fixture(autouse=True)
    def _former(self, transactional_db: None) -> None:
        self.master = Api(MASTER)
        self.master.post("/schemas/Former", {"fields": {"list": {"type": "Array"}}})
        self.object_id = self.master.make("Former", list=["a", *LONG[:2_000]])
        for name in ("Former", "_User"):
            table = self.table(name)
            with connection.cursor() as cursor:
                cursor.execute(f"DROP INDEX IF EXISTS {class_rows.index_of_all(table.storage)}")
                if not catalog.index_names_of(table.storage, FORMER):
                    cursor.execute(f"CREATE INDEX ON {table.storage} {FORMER}")
                cursor.execute(
                    "UPDATE objects_class SET index_version = 0,"
                    " version = nextval('objects_class_version') WHERE name = %s",
                    [name],
                )
            registry.forget(table.class_name)

    def table(self, name: str) -> ClassTable:
        registry.forget_outdated()
        table = registry.find(name)  # type: ignore[arg-type]
        assert table is not None
        return table

    def find(self) -> list[str]:
        where = quote(json.dumps({"list": "a"}))
        results = self.master.get(f"/classes/Former?where={where}").json["results"]
        return [obj["objectId"] for obj in results]

    def indexes(self, name: str) -> tuple[int, int]:
        """Former and current indexes of all fields."""
        storage = self.table(name).storage
        current = f"USING gin ({class_rows.INDEXED[-1]}(data) jsonb_path_ops)"
        return (
            len(catalog.index_names_of(storage, FORMER)),
            len(catalog.index_names_of(storage, current)),
        )

    def test_queries_use_the_former_index_until_the_other_is_built(self):
        assert self.table("Former").indexed == ""
        assert self.find() == [self.object_id]
        assert {table.class_name for table in replacements.outdated()} >= {"Former", "_User"}
        assert replacements.run(60) == 0
        assert replacements.outdated() == []
        for name in ("Former", "_User"):
            assert self.indexes(name) == (0, 1)
            assert self.table(name).indexed == "objects_indexed_1"
        assert self.find() == [self.object_id]

    def test_a_replacement_that_was_killed_is_taken_up_again(self):
        table = self.table("Former")
        name = class_rows.index_of_all(table.storage)
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE INDEX {name} ON {table.storage} {class_rows.INDEX_OF_ALL}")
            cursor.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name]
            )
        assert replacements.replace(table)
        assert self.indexes("Former") == (0, 1)
        (state,) = catalog.index_states([name[1:-1]]).values()
        assert state.is_valid

    def test_one_that_was_killed_before_the_former_index_was_dropped_drops_it(self):
        assert replacements.replace(self.table("Former"))
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE INDEX ON {self.table('Former').storage} {FORMER}")
        assert self.indexes("Former") == (1, 1)
        replacements.run(60)
        assert self.indexes("Former") == (0, 1)

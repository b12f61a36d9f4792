"""Objects that are imported thousands at a time are those that would be stored one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError
from django.db import transaction

from backend.kernel.errors import DuplicateValue, ServiceError
from backend.kernel.principal import MASTER
from objects import service, triggers
from objects.core.names import ClassName
from objects.definitions import registry
from objects.definitions.models import ImportProgress
from objects.exchange.checkpoint import Checkpoint, identity
from objects.exchange.destinations import Database
from objects.exchange.imports import Import
from objects.exchange.prefetch import ahead
from objects.exchange.row_files import Row
from objects.exchange.row_objects import RowMapping
from objects.service import bulk, classes
from tests.backend.commands.conftest import run
from tests.backend.commands.instances import FIRST_KEYS, Instance, new_database
from tests.backend.operations.service import ROOT
from tests.rest import Api

SCHEMA = {
    "className": "Like",
    "fields": {
        "code": {"type": "String", "unique": True},
        "needed": {"type": "String", "required": True},
        "level": {"type": "Number", "defaultValue": 3},
        "members": {"type": "Relation", "targetClass": "Other"},
        "place": {"type": "GeoPoint"},
    },
    "classLevelPermissions": {
        **{action: {"*": True} for action in ("find", "get", "create", "update", "addField")},
        "ACL": {"*": {"read": True}},
    },
}
POINTER = {"__type": "Pointer", "className": "Other", "objectId": "abc"}

BODIES: list[dict[str, Any]] = [
    {"code": "a", "text": 'tab\t, "quotes", \\, {braces}, NULL, \\N, line\nend, é, 😀'},
    {"code": "b", "level": None, "nothing": None, "list": [1, [2, {"a": None}], "x"]},
    {"code": "c", "level": 0, "big": 10**300, "small": -1.5e-300, "whole": 1e20},
    {"code": "d", "needed": ""},
    {"code": "e", "needed": None},
    {"code": "a", "text": "taken"},
    {"code": "f", "text": 5},
    {"code": "g", "fresh": 1},
    {"code": "h", "fresh": "now a text"},
    {"code": "i", "ACL": {"u1": {"read": True, "write": True}, "role:R": {"write": True}}},
    {"code": "j", "ACL": {}},
    {"code": "k", "ACL": None},
    {"code": "l", "ACL": {"*": {"read": "yes"}}},
    {"code": "m", "members": {"__op": "AddRelation", "objects": [POINTER]}},
    {"code": "n", "members": {"__type": "Relation", "className": "Other"}},
    {"code": "o", "members": {"__op": "AddRelation", "objects": [{**POINTER, "className": "X"}]}},
    {"code": "p", "friends": {"__op": "AddRelation", "objects": [POINTER]}},
    {"code": "q", "n": {"__op": "Increment", "amount": 2}, "l": {"__op": "Add", "objects": [1]}},
    {"code": "r", "l": {"__op": "AddUnique", "objects": [1, 1]}, "gone": {"__op": "Delete"}},
    {"code": "s", "l": {"__op": "Multiply"}},
    {"code": "t", "place": {"__type": "GeoPoint", "latitude": 47.4, "longitude": 8.5}},
    {"code": "u", "place": {"__type": "GeoPoint", "latitude": 91, "longitude": 0}},
    {"code": "v", "second": {"__type": "GeoPoint", "latitude": 1, "longitude": 1}},
    {"code": "w", "at": {"__type": "Date", "iso": "2026-01-01"}, "by": POINTER},
    {"code": "x", "at": {"__type": "Date", "iso": "never"}},
    {"code": "y", "inner": {"a.b": 1}},
    {"code": "z", "inner": {"$a": 1}},
    {"code": "aa", "nul": "\0"},
    {"code": "ab", "half": "\ud800"},
    {"code": "ac", "inner": {"__type": "Strange"}},
    {"code": "ad", "deep": json.loads("[" * 60 + "]" * 60)},
    {"code": "ae", "n": 10**1000},
    {"code": "af", "constructor": 1},
    {"code": "ag", "inner": {"a": {"b": ["c", {"d": 1.0}]}}},
    {"code": "x" * 5000},  # too long for an index
    {"code": "ah", "large": "x" * (17 << 20)},
    {"code": "ai", "big": 1},
]


def outcome(body: dict[str, Any], object_id: str) -> str | None:
    try:
        with transaction.atomic():
            service.create(MASTER, ClassName("Like"), {"needed": "x", **body}, object_id=object_id)
    except ServiceError as error:
        return str(error)
    return None


def contents(master: Api) -> list[dict[str, Any]]:
    """All objects without their times, and the members of their relations."""
    results = master.results("Like", order="objectId", limit=1000)
    for obj in results:
        del obj["createdAt"], obj["updatedAt"]
        for name, value in obj.items():
            if isinstance(value, dict) and value.get("__type") == "Relation":
                owner = {"__type": "Pointer", "className": "Like", "objectId": obj["objectId"]}
                related = {"$relatedTo": {"object": owner, "key": name}}
                obj[name] = [
                    result["objectId"] for result in master.results("Other", where=related)
                ]
    return results


def schema(master: Api) -> dict[str, Any]:
    answer: dict[str, Any] = master.get("/schemas/Like").json
    return answer


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_in_bulk_objects_errors_and_fields_are_those_of_one_after_the_other(
    master, write, batch_size
):
    def fresh() -> None:
        master.delete("/purge/Like")
        master.delete("/schemas/Like")
        assert master.post("/schemas/Like", SCHEMA).status == 200

    service.create(MASTER, ClassName("Other"), {}, object_id="abc")
    ids = [f"id{number:03}" for number in range(len(BODIES))]
    fresh()
    expected = [outcome(*each) for each in zip(BODIES, ids, strict=True)]
    one_by_one, fields = contents(master), schema(master)
    assert expected.count(None) > len(expected) / 3
    assert len(set(expected)) > len(expected) / 3
    fresh()
    rows = [
        {"objectId": object_id, "needed": "x", **body}
        for object_id, body in zip(ids, BODIES, strict=True)
    ]
    path = write("rows.ndjson", rows)
    output = run(
        "import_objects", "Like", str(path), "--on-error=skip", f"--batch-size={batch_size}"
    )
    assert output.err.splitlines() == [
        f"{path}:{line}: {error}" for line, error in enumerate(expected, 1) if error
    ]
    assert contents(master) == one_by_one
    assert schema(master) == fields


@pytest.mark.django_db
def test_taken_values_stop_an_import_right_before_them(master, write):
    unique = {"code": {"type": "String", "unique": True}}
    master.post("/schemas/Thing", {"className": "Thing", "fields": unique})
    master.make("Thing", code="7")
    path = write("rows.ndjson", [{"code": str(number)} for number in range(12)])
    with pytest.raises(CommandError, match="7 objects are stored, 0 rows"):
        run("import_objects", "Thing", str(path))
    assert len(master.results("Thing")) == 8
    output = run("import_objects", "Thing", str(path), "--resume", "--on-error=skip")
    assert output.out == "Thing: 11 objects stored, 1 rows left out\n"
    assert output.err.startswith(f"{path}:8: A duplicate value")


@pytest.mark.django_db
def test_a_file_imported_twice_reports_each_id_that_is_taken(master, write):
    path = write("rows.ndjson", [{"objectId": f"o{number}", "n": number} for number in range(20)])
    run("import_objects", "Thing", str(path))
    more = write(
        "more.ndjson",
        [{"objectId": f"o{number}", "n": number} for number in [25, *range(15, 25), 24]],
    )
    output = run("import_objects", "Thing", str(more), "--on-error=skip")
    assert [line.split(":")[1] for line in output.err.splitlines()] == [
        "2",
        "3",
        "4",
        "5",
        "6",
        "12",
    ]
    assert output.out == "Thing: 6 objects stored, 6 rows left out\n"
    with pytest.raises(CommandError, match="0 objects are stored"):
        run("import_objects", "Thing", str(path))


@pytest.mark.django_db
def test_a_batch_that_was_committed_right_before_a_crash_is_known(master, write):
    path = write("rows.ndjson", [{"objectId": f"o{number}"} for number in range(6)])
    checkpoint = Checkpoint("Thing", identity(path), rows=2, stored=2)
    checkpoint.save(path.with_name("rows.ndjson.import.json"))
    for number in range(4):
        service.create(MASTER, ClassName("Thing"), {}, object_id=f"o{number}")
    # The transaction of the second batch has noted it; the process died before the file did.
    counts = {"rows": 4, "stored": 4, "refused": 0, "updated_at": "2026-01-01T00:00:00Z"}
    ImportProgress.objects.create(key=checkpoint.key, **counts)
    output = run("import_objects", "Thing", str(path), "--resume", "--batch-size=2")
    assert (output.out, output.err) == ("Thing: 6 objects stored, 0 rows left out\n", "")
    assert not ImportProgress.objects.exists()


class Rows:
    """An import of numbered rows, with something done after its first batch."""

    def __init__(self, path: Path, rows: int, **fields: Any) -> None:
        self.reported: list[tuple[int, str]] = []
        path.write_text("")
        class_name = ClassName("Thing")
        self._rows = [Row(number, {"n": number, **fields}) for number in range(1, rows + 1)]
        self._job = Import(
            RowMapping(),
            Database(class_name),
            Checkpoint("Thing", "file"),
            path,
            10,
            False,
            lambda line, reason: self.reported.append((line, reason)),
        )

    def run(self, then: Callable[[], None]) -> None:
        first = True

        def advanced(position: int) -> None:
            nonlocal first
            if first:
                first = False
                then()

        self._job.run(self._rows, lambda: 0, advanced)


@pytest.mark.django_db
def test_what_a_class_demands_meanwhile_holds_for_the_rows_after_it(master, tmp_path):
    def demand() -> None:
        field = {"label": {"type": "String", "required": True}}
        classes.change(MASTER, ClassName("Thing"), {"fields": field})
        registry.forget_all()  # as in a process that hasn't read it

    rows = Rows(tmp_path / "state", 60)
    rows.run(demand)
    assert rows.reported == [(number, "label is required") for number in range(11, 61)]
    assert len(master.results("Thing")) == 10


@pytest.mark.django_db
def test_a_class_removed_meanwhile_is_made_again(master, tmp_path):
    def remove() -> None:
        classes.purge(MASTER, ClassName("Thing"))
        classes.delete(MASTER, ClassName("Thing"))

    rows = Rows(tmp_path / "state", 30)
    rows.run(remove)
    assert rows.reported == []
    assert [result["n"] for result in master.results("Thing", order="n")] == [*range(11, 31)]


@pytest.mark.django_db
def test_a_trigger_added_meanwhile_is_called_for_the_rows_after_it(master, tmp_path):
    observed: list[Any] = []

    def called(occasion: triggers.Occasion) -> None:
        assert occasion.object is not None
        observed.append(occasion.object["n"])
        if occasion.object["n"] == 15:
            raise DuplicateValue("no fifteen")

    rows = Rows(tmp_path / "state", 30)
    try:
        rows.run(lambda: triggers.register("before_save", ClassName("Thing"), called))
    finally:
        triggers.unregister("before_save", ClassName("Thing"), called)
    assert {*observed} == {*range(11, 31)}
    assert rows.reported == [(15, "no fifteen")]
    assert len(master.results("Thing")) == 29
    assert not triggers.has(ClassName("Thing"), "before_save")
    assert bulk.serves(ClassName("Thing"))


def test_what_is_read_ahead_comes_in_order_and_its_error_at_its_place():
    def made() -> Iterator[int]:
        yield from range(100)
        raise ValueError("broken")

    observed: list[int] = []
    with ahead(made(), 2) as items, pytest.raises(ValueError, match="broken"):
        observed.extend(items)
    assert observed == [*range(100)]


def test_reading_ahead_ends_with_its_block():
    made = iter(range(1_000_000))
    with ahead(made, 2) as items:
        assert next(items) == 0
    assert next(made) < 10


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["made", "given"])
def test_an_import_killed_again_and_again_stores_each_row_once(prepared, tmp_path, ids):
    rows = 30_000
    path = tmp_path / "rows.ndjson"
    with path.open("w") as file:
        for number in range(rows):
            value = {"objectId": f"o{number}"} if ids == "given" else {}
            file.write(f"{json.dumps({**value, 'n': number, 'text': 'x' * 200})}\n")
    with new_database("killed", like=prepared) as url:
        instance = Instance(tmp_path / "data", url)
        instance.has_keys(FIRST_KEYS)
        command = [sys.executable, "manage.py", "import_objects", "Thing", str(path), "--resume"]
        command.append("--batch-size=500")
        environment = {**instance.environment, **FIRST_KEYS}
        kills = 0
        with psycopg.connect(url, autocommit=True) as database:

            def committed() -> int:
                row = database.execute("SELECT sum(rows) FROM objects_import").fetchone()
                return int(row[0] or 0) if row else 0

            while True:
                before = committed()
                process = subprocess.Popen(
                    command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
                )
                while process.poll() is None and committed() < before + 4_000:
                    pass
                if process.poll() is not None:
                    break
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                kills += 1
            out, _ = process.communicate()
            assert out == f"Thing: {rows:,} objects stored, 0 rows left out\n"
            assert process.returncode == 0
            assert kills > 2
            counted = database.execute(
                "SELECT count(*), count(DISTINCT data -> 'n') FROM objects_object"
            ).fetchone()
            assert counted == (rows, rows)
            left = database.execute("SELECT count(*) FROM objects_import").fetchone()
            assert left == (0,)

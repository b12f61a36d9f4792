"""``manage.py export_objects``: what is exported is imported as the same objects."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError

from tests.backend.commands.conftest import run
from tests.rest import Api

pytestmark = pytest.mark.django_db

RICH = {
    "text": 'a, "b"\nc é 𝄞',
    "digits": "007",
    "whole": 2**70,
    "real": 0.1,
    "flag": False,
    "when": {"__type": "Date", "iso": "2026-01-02T03:04:05.678Z"},
    "list": [1, "two", None, {"three": 3}],
    "nested": {"a": {"b": [True]}},
    "friend": {"__type": "Pointer", "className": "Person", "objectId": "abcdefghij"},
    "place": {"__type": "GeoPoint", "latitude": 47.4, "longitude": -8.5},
    "bytes": {"__type": "Bytes", "base64": "aGVsbG8="},
    "ACL": {"*": {"read": True}},
}


def contents(api: Api, class_name: str) -> dict[str, dict[str, object]]:
    """All objects by their ids, without the times that the service sets."""
    return {
        result["objectId"]: {
            name: value for name, value in result.items() if name not in ("createdAt", "updatedAt")
        }
        for result in api.results(class_name, limit=1000)
    }


@pytest.mark.parametrize("ending", ["ndjson", "json", "csv"])
def test_a_round_trip_gives_the_same_objects(master, tmp_path, ending):
    master.make("Thing", **RICH)
    master.make("Thing", text="only this")
    before = contents(master, "Thing")
    path = tmp_path / f"things.{ending}"
    output = run("export_objects", "Thing", str(path))
    assert output.err == "Thing: 2 objects written\n"
    assert master.delete("/purge/Thing").status == 200
    run("import_objects", "Thing", str(path))
    assert contents(master, "Thing") == before


def test_all_pages_are_exported_once_and_sorted_by_id(master, tmp_path):
    for number in range(30):
        master.make("Thing", n=number)
    path = tmp_path / "things.ndjson"
    run("export_objects", "Thing", str(path), "--batch-size=7")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(row["n"] for row in rows) == list(range(30))
    assert [row["objectId"] for row in rows] == sorted(row["objectId"] for row in rows)


def test_only_what_satisfies_a_query_is_exported(master, tmp_path):
    for number in range(5):
        master.make("Thing", n=number)
    path = tmp_path / "things.json"
    run("export_objects", "Thing", str(path), '--where={"n": {"$gt": 2}}')
    assert sorted(row["n"] for row in json.loads(path.read_text())) == [3, 4]


def test_a_csv_file_has_a_column_for_every_field(master, tmp_path):
    master.make("Thing", b=1)
    master.make("Thing", a="x")
    path = tmp_path / "things.csv"
    run("export_objects", "Thing", str(path))
    assert path.read_text().splitlines()[0] == "objectId,createdAt,updatedAt,ACL,a,b"


def test_no_objects_make_an_empty_array(master, tmp_path):
    master.post("/schemas/Thing", {"className": "Thing"})
    path = tmp_path / "things.json"
    run("export_objects", "Thing", str(path))
    assert json.loads(path.read_text()) == []


def test_a_failed_export_leaves_the_older_file_as_it_was(master, tmp_path):
    master.make("Thing", n=1)
    path = tmp_path / "things.json"
    path.write_text("older")
    with pytest.raises(CommandError, match=r"where"):
        run("export_objects", "Thing", str(path), '--where={"n": {"$what": 2}}')
    assert [results.name for results in tmp_path.iterdir()] == ["things.json"]
    assert path.read_text() == "older"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Missing", "x.json"], "there is no class Missing"),
        (["Thing", "x.txt"], "--format"),
        (["Thing", "x.json", "--where=nonsense"], "--where"),
        (["Thing", "no/such/folder/x.json"], "No such file"),
    ],
)
def test_what_can_t_be_exported_is_one_sentence(master, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    master.make("Thing", n=1)
    with pytest.raises(CommandError, match=message):
        run("export_objects", *arguments)

"""Exports that are empty, damaged or hold more than classes are imported as far as possible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from tests.backend.operations.parse_import.exported import (
    HASH,
    PASSWORD,
    PICTURE,
    SCHEMAS,
    TIMES,
    note,
    problems,
)
from tests.rest import Api


@pytest.mark.parametrize("content", ["", "\n", " \n\n", "[]"])
def test_a_collection_without_objects_is_an_empty_class(
    master: Api, export: Callable[..., Path], run: Callable[..., str], content: str
) -> None:
    path = export()
    (path / "Note.json").write_text(content)
    (path / "_Hooks.json").write_text(content)
    assert "Everything at the source is here." in run(path)
    assert "Note" in [each["className"] for each in master.get("/schemas").json["results"]]


def test_blank_lines_around_objects_are_ignored(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    path = export()
    file = path / "Note.json"
    file.write_text("\n \n" + file.read_text().replace("\n", "\n\n") + "\n\n")
    run(path)
    assert len(master.get("/classes/Note").json["results"]) == 3


def test_collections_that_are_no_classes_are_skipped_and_named(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    path = export(
        **{
            "fs.files": [{"_id": {"$oid": "0" * 24}, "filename": PICTURE}],
            "fs.chunks": [{"_id": {"$oid": "1" * 24}, "data": {"$binary": {"base64": "AA=="}}}],
            "reports": [],
            "_Idempotency": [{"_id": "a", "reqId": "b", "expire": {"$date": 0}}],
        }
    )
    out = run(path)
    for name in ("fs.files", "fs.chunks", "reports"):
        assert f"{name}: not a class of the Parse Server" in out
    assert {each["place"] for each in problems(tmp_path)} == {"fs.files", "fs.chunks", "reports"}
    assert "Everything at the source is here." in out
    names = [each["className"] for each in master.get("/schemas").json["results"]]
    assert not {"fs.files", "reports"} & set(names)


@pytest.mark.parametrize(
    "place",
    [
        {"_id": "a", **TIMES},
        {"objectId": "a", "_rperm": None, "createdAt": "2020-01-01", "updatedAt": "2020-01-01"},
    ],
)
def test_an_object_with_a_field_results_is_one_object(
    master: Api, export: Callable[..., Path], run: Callable[..., str], place: dict[str, Any]
) -> None:
    schema = {"_id": "Survey", "results": "array"}
    run(export(_SCHEMA=[*SCHEMAS, schema], Survey=[{**place, "results": [{"n": 1}]}]))
    assert master.get("/classes/Survey/a").json["results"] == [{"n": 1}]


def test_a_parameter_that_cant_be_read_is_reported_and_the_others_are_imported(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    params = {"a": 1, "b": {"$date": {"$numberLong": "253402300800000"}}}
    run(export(_GlobalConfig=[{"_id": 1, "params": params}]))
    assert [each["place"] for each in problems(tmp_path)] == ["config b"]
    assert master.get("/config").json["params"] == {"a": 1}


def test_one_unreadable_object_leaves_the_others(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    late = {"_updated_at": {"$date": {"$numberLong": "253402300800000"}}}
    with pytest.raises(CommandError, match="1 of the classes and relations differ"):
        run(export(Note=[note(1), note(2, **late), note(3)]))
    (problem,) = problems(tmp_path)
    assert problem["place"] == "Note/Note.json, object 2"
    assert "years 1 to 9999" in problem["reason"]
    assert len(master.get("/classes/Note").json["results"]) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"objectId": "a"}\n{"objectId": ', "not JSON"),
        ('{"_id": "a"}', "export the collection _SCHEMA"),
    ],
)
def test_a_file_that_cant_be_read_ends_the_import_and_is_named(
    master: Api, run: Callable[..., str], tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "Note.json").write_text(content)
    with pytest.raises(CommandError, match=message):
        run(tmp_path / "export")


def test_parse_com_exports_are_read_without_schemas(
    master: Api, client: Api, run: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "export"
    path.mkdir()
    times = {"createdAt": "2014-01-01T00:00:00.000Z", "updatedAt": "2014-01-01T00:00:00.000Z"}
    users = [{"objectId": "ann", "username": "ann", "bcryptPassword": HASH, **times}]
    games = [
        {
            "objectId": "g1",
            "score": 1.5,
            "when": {"__type": "Date", "iso": times["createdAt"]},
            **times,
        }
    ]
    (path / "_User.json").write_text(json.dumps({"results": users}, indent=1))
    (path / "Game.json").write_text(json.dumps({"results": games}))
    assert "Everything at the source is here." in run(path)
    assert client.post("/login", {"username": "ann", "password": PASSWORD}).status == 200
    fields = master.get("/schemas/Game").json["fields"]
    assert (fields["score"]["type"], fields["when"]["type"]) == ("Number", "Date")

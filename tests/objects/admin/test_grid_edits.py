"""Edits in cells of the grid: by type, by version, each object on its own, and undone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from backend.kernel.principal import MASTER as MASTER_KEY
from objects import service
from objects.admin.grid.texts import text_of, value_of
from objects.core.query.tree import Everything
from objects.core.schema.definition import FieldType
from objects.service import classes
from tests.objects.admin.games import FIELDS, GAME, make, make_class, send, stored_object
from tests.objects.admin.staff import logged_in
from tests.people import sign_up

pytestmark = pytest.mark.django_db

DELETE = {"__op": "Delete"}
DAY = "2024-05-04T10:30:00.000Z"


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def edit(object_id: str, cells: dict[str, Any], version: str = "") -> dict[str, Any]:
    return {
        "id": object_id,
        "version": version or stored_object(object_id)["updatedAt"],
        "cells": cells,
    }


def save(staff: Client, *changes: dict[str, Any], columns: str = "") -> list[dict[str, Any]]:
    body = {"changes": list(changes), "columns": columns}
    response = send(staff, "POST", f"{GAME}cells/", body)
    assert response.status_code == 200, response.json()
    results: list[dict[str, Any]] = response.json()["results"]
    return results


VALUES: list[tuple[str, str | None, Any]] = [
    ("String", "a\ttext", "a\ttext"),
    ("String", "", ""),
    ("String", None, DELETE),
    ("Number", "-2.50", -2.5),
    ("Number", " ", DELETE),
    ("Boolean", "TRUE", True),
    ("Boolean", "0", False),
    ("Boolean", "", DELETE),
    ("Date", "2024-05-04 10:30:00", {"__type": "Date", "iso": DAY}),
    ("GeoPoint", "48.2, 16", {"__type": "GeoPoint", "latitude": 48.2, "longitude": 16}),
    ("Bytes", "aGVsbG8=", {"__type": "Bytes", "base64": "aGVsbG8="}),
    ("Array", '[1,"a"]', [1, "a"]),
    ("Object", '{"a":null}', {"a": None}),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_texts_are_values_of_the_field(kind, text, value):
    assert value_of("f", FieldType(kind), text) == value


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_the_text_of_a_value_means_the_value(kind, text, value):
    if value != DELETE:
        assert value_of("f", FieldType(kind), text_of(value)) == value


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("score", "12x", "expected a number"),
        ("won", "maybe", "expected true or false"),
        ("playedAt", "tomorrow", ""),
        ("place", "48.2", "expected latitude, longitude"),
        ("place", "148, 16", ""),
        ("player", "no id!", ""),
        ("tags", "{}", "expected an array"),
        ("details", "[", ""),
        ("picture", "a.png", "a file is chosen on the page of the object"),
        ("fans", "x", "can't be edited"),
        ("createdAt", DAY, "can't be edited"),
        ("nothing", "x", "can't be edited"),
        ("__proto__", "x", "can't be edited"),
    ],
)
def test_what_isn_t_a_value_is_an_error_of_its_field_and_nothing_is_saved(
    staff, field, text, message
):
    object_id = make(title="old")
    before = stored_object(object_id)
    change = edit(object_id, {"title": {"text": "new"}, field: {"text": text}})
    (result,) = save(staff, change)
    assert (result["status"], result["field"]) == ("error", field)
    assert message in result["error"]
    assert stored_object(object_id) == before


def test_a_saved_edit_shows_what_is_stored_and_what_was_before(staff):
    object_id = make(title="old", score=1)
    change = edit(object_id, {"score": {"text": "2"}, "won": {"text": "true"}})
    (result,) = save(staff, change, columns="title,score")
    assert result["status"] == "saved"
    assert result["version"] == stored_object(object_id)["updatedAt"]
    assert {name: cell["text"] for name, cell in result["cells"].items()} == {
        "title": "old",
        "score": "2",
    }
    assert result["before"] == {"score": {"value": 1}, "won": {"text": None}}
    assert stored_object(object_id)["won"] is True


def test_an_edit_is_undone_by_what_was_before(staff):
    ann = sign_up("ann")
    point = {"__type": "GeoPoint", "latitude": 1, "longitude": 2}
    values = {"title": "", "place": point, "player": ann.pointer, "tags": [None, {"a": 1}]}
    object_id = make(**values)
    before = stored_object(object_id)
    (result,) = save(staff, edit(object_id, {name: {"text": None} for name in [*values, "won"]}))
    assert "place" not in stored_object(object_id)
    (undone,) = save(staff, edit(object_id, result["before"]))
    assert undone["status"] == "saved"
    after = stored_object(object_id)
    assert {name: after.get(name) for name in FIELDS} == {name: before.get(name) for name in FIELDS}


def test_an_undo_carries_values_and_no_operators(staff):
    object_id = make(score=1)
    increment = {"__op": "Increment", "amount": 5}
    (result,) = save(staff, edit(object_id, {"score": {"value": increment}}))
    assert result["status"] == "error"
    assert stored_object(object_id)["score"] == 1


def test_an_object_that_was_changed_meanwhile_is_a_conflict_with_both_values(staff):
    object_id = make(title="first")
    mine = edit(object_id, {"title": {"text": "mine"}})
    save(staff, edit(object_id, {"title": {"text": "theirs"}}))
    (result,) = save(staff, mine, columns="title")
    assert result["status"] == "conflict"
    assert result["cells"]["title"]["text"] == "theirs"
    assert stored_object(object_id)["title"] == "theirs"
    (result,) = save(staff, {**mine, "version": result["version"]})
    assert result["status"] == "saved"
    assert stored_object(object_id)["title"] == "mine"


def test_each_object_of_a_paste_has_a_result_of_its_own(staff):
    ids = [make(score=number) for number in range(4)]
    stale = edit(ids[1], {"score": {"text": "9"}}, "2024-01-01T00:00:00.000Z")
    changes = [
        edit(ids[0], {"score": {"text": "9"}}),
        stale,
        edit(ids[2], {"score": {"text": "x"}}),
        edit("missing123", {"score": {"text": "9"}}, "x"),
        edit(ids[3], {"score": {"text": "9"}}),
    ]
    results = save(staff, *changes)
    assert [result["status"] for result in results] == [
        *("saved", "conflict", "error", "error", "saved")
    ]
    assert [stored_object(item)["score"] for item in ids] == [9, 1, 2, 9]


def test_rules_of_the_class_are_errors_in_words(staff):
    classes.change(MASTER_KEY, "Game", {"fields": {"code": {"type": "String", "unique": True}}})
    make(code="a")
    other = make(code="b")
    (result,) = save(staff, edit(other, {"code": {"text": "a"}}))
    assert result["status"] == "error"
    assert result["code"] == 137


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"changes": []},
        {"changes": [{"id": "a", "version": "b", "cells": {}}]},
        {"changes": [{"id": "a", "version": "b", "cells": {"score": 1}}]},
        {"changes": [{"id": "a", "version": "b"}]},
        {"changes": [{"id": "a", "version": "b", "cells": {"a": {"text": "1"}}}] * 21},
        {"changes": [], "columns": 5},
    ],
)
def test_bodies_that_mean_no_edits_are_refused(staff, body):
    response = send(staff, "POST", f"{GAME}cells/", body)
    assert response.status_code == 400
    assert set(response.json()) == {"code", "error"}


def test_a_text_of_another_type_is_an_error(staff):
    object_id = make(score=1)
    (result,) = save(staff, edit(object_id, {"score": {"text": 5}}))
    assert result["status"] == "error"


def test_selected_objects_are_deleted_each_on_its_own(staff):
    ids = [make(), make()]
    path = f"{GAME}deletions/"
    response = send(staff, "POST", path, {"ids": [ids[0], "<b>", "missing123", ids[1]]})
    statuses = [result["status"] for result in response.json()["results"]]
    assert statuses == ["deleted", "error", "error", "deleted"]
    assert service.count(MASTER_KEY, "Game", Everything()) == 0
    for wrong in ({}, {"ids": []}, {"ids": ["a"] * 21}, {"ids": [None]}, {"ids": "a"}):
        assert send(staff, "POST", path, wrong).status_code == 400

"""Schemas in the admin: fields, permissions, indexes, removing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from backend.kernel.principal import CLIENT, MASTER
from objects import service
from objects.core.query.parser import parse_where
from objects.core.query.tree import Everything, FindOptions, OrderKey
from objects.definitions import registry
from objects.learned import overview, shape_counts
from objects.learned.advice import advice
from objects.service import classes
from objects.sql.tables import ClassTable
from tests.objects.admin.games import GAME, make, make_class, stored_object
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

FIELDS, PERMISSIONS, INDEXES, REMOVE = (
    f"{GAME}{page}/" for page in ("fields", "permissions", "indexes", "remove")
)
ACTIONS = ("find", "get", "count", "create", "update", "delete", "addField")


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def schema() -> dict[str, Any]:
    return classes.schema(MASTER, "Game")


def test_a_field_is_added_with_its_options(staff):
    form = {"name": "level", "type": "Number", "default": "5", "required": "on"}
    assert staff.post(FIELDS, form).status_code == 302
    assert schema()["fields"]["level"] == {"type": "Number", "defaultValue": 5, "required": True}
    form = {"name": "team", "type": "Pointer", "target": "_Role"}
    assert staff.post(FIELDS, form).status_code == 302
    assert schema()["fields"]["team"] == {"type": "Pointer", "targetClass": "_Role"}


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"name": "<b>", "type": "String"},
        {"name": "level", "type": "Nothing"},
        {"name": "team", "type": "Pointer"},
        {"name": "level", "type": "Number", "default": "five"},
        {"name": "level", "type": "Number", "default": '"five"'},
        {"name": "fans2", "type": "Relation", "target": "_User", "required": "on"},
        {"name": "score", "type": "String"},
        {"name": "score", "type": "Number"},
        {"name": "objectId", "type": "String"},
    ],
)
def test_a_field_that_can_t_be_is_refused_in_place(staff, form):
    before = schema()
    page = staff.post(FIELDS, form)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "<b>" not in page.text
    assert schema() == before


def test_options_of_a_field_change_and_its_type_stays(staff):
    page = f"{FIELDS}score/"
    assert staff.post(page, {"required": "on", "default": "1", "unique": "on"}).status_code == 302
    assert schema()["fields"]["score"] == {
        "type": "Number",
        "required": True,
        "defaultValue": 1,
        "unique": True,
    }
    assert 'name="required" checked' in staff.get(page).text
    assert staff.post(page, {}).status_code == 302
    assert schema()["fields"]["score"] == {"type": "Number"}
    assert staff.get(f"{FIELDS}nothing/").status_code == 404


def test_a_field_that_only_clients_made_gets_another_type(staff):
    service.create(CLIENT, "Game", {"theirs": "text"})
    page = staff.get(FIELDS).text
    assert page.count("added by clients") == 1
    form = {"retype": "1", "type": "Pointer", "target": "Game"}
    assert staff.post(f"{FIELDS}theirs/", form).status_code == 400
    assert schema()["fields"]["theirs"] == {"type": "String"}
    assert staff.post(f"{FIELDS}theirs/", form | {"typed": "theirs"}).status_code == 302
    assert schema()["fields"]["theirs"] == {"type": "Pointer", "targetClass": "Game"}
    assert "added by clients" not in staff.get(FIELDS).text
    refused = staff.post(f"{FIELDS}score/", {"retype": "1", "type": "String", "typed": "score"})
    assert refused.status_code == 400


def test_a_field_is_deleted_by_typing_its_name(staff):
    object_id = make(score=1, title="a")
    page = staff.post(f"{FIELDS}score/", {"delete": "1", "typed": "scor"})
    assert page.status_code == 400
    assert "Type score to confirm" in page.text
    assert staff.post(f"{FIELDS}score/", {"delete": "1", "typed": "score"}).status_code == 302
    assert "score" not in schema()["fields"]
    assert "score" not in stored_object(object_id)


def test_fields_of_the_service_can_t_be_deleted(staff):
    page = staff.post("/admin/data/_User/fields/email/", {"delete": "1", "typed": "email"})
    assert page.status_code == 400
    assert "Change or delete" not in staff.get("/admin/data/_Role/fields/").text.replace("\n", "")


def permission_form(**changed: Any) -> dict[str, Any]:
    table = registry.find("Game")
    assert table is not None
    everybody = {f"{action}.public": "on" for action in ACTIONS}
    return {"version": str(table.version), **everybody, **changed}


def test_permissions_are_a_table(staff):
    form = permission_form(
        **{
            "update.others": "role:Judges, someone123",
            "update.pointerFields": "player",
            "delete.loggedIn": "on",
            "readUserFields": "player",
            "protected.group": ["*", "role:Judges", ""],
            "protected.fields": ["score, key", "", "ignored"],
            "defaultACL": '{"currentUser": {"read": true}}',
        }
    )
    for name in ("update.public", "delete.public", "addField.public"):
        del form[name]
    assert staff.post(PERMISSIONS, form).status_code == 302
    permissions = schema()["classLevelPermissions"]
    assert permissions == {
        **{action: {"*": True} for action in ("find", "get", "count", "create")},
        "update": {"role:Judges": True, "someone123": True, "pointerFields": ["player"]},
        "delete": {"requiresAuthentication": True},
        "addField": {},
        "readUserFields": ["player"],
        "protectedFields": {"*": ["key", "score"], "role:Judges": []},
        "ACL": {"currentUser": {"read": True}},
    }
    page = staff.get(PERMISSIONS).text
    assert 'value="role:Judges, someone123"' in page
    assert 'name="delete.loggedIn" checked' in page


def test_permissions_are_json_as_well(staff):
    wire = {"find": {"role:Judges": True}}
    form = {**permission_form(), "kind": "json", "json": json.dumps(wire)}
    assert staff.post(PERMISSIONS, form).status_code == 302
    assert schema()["classLevelPermissions"]["find"] == {"role:Judges": True}
    assert schema()["classLevelPermissions"]["get"] == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"update.others": "role:"},
        {"update.others": "<b>"},
        {"update.pointerFields": "score"},
        {"readUserFields": "nothing"},
        {"protected.group": ["*"], "protected.fields": ["nothing"]},
        {"protected.group": ["<b>"], "protected.fields": ["score"]},
        {"defaultACL": "{"},
        {"defaultACL": '{"x": 1}'},
        {"kind": "json", "json": "{"},
        {"kind": "json", "json": '{"fly": {}}'},
        {"version": "1"},
        {"version": ""},
    ],
)
def test_permissions_that_mean_nothing_are_refused_and_stay_to_be_corrected(staff, changed):
    before = schema()
    page = staff.post(PERMISSIONS, permission_form(**changed))
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "<b>" not in page.text
    assert schema() == before


def test_indexes_are_declared_and_removed(staff):
    form = {"field": ["score", "title", "", ""], "direction": ["-1", "1", "1", "1"]}
    assert staff.post(INDEXES, form).status_code == 302
    assert schema()["indexes"] == {"by_score_title": {"score": -1, "title": 1}}
    page = staff.get(INDEXES).text
    assert "score descending, title ascending" in page
    assert "not built" not in page
    assert staff.post(INDEXES, {"remove": "by_score_title"}).status_code == 302
    assert "indexes" not in schema()


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"field": ["score"], "direction": ["text"]},
        {"field": ["nothing"], "direction": ["1"]},
        {"field": ["tags"], "direction": ["1"]},
        {"field": ["score"], "direction": ["1"], "name": "<b>"},
        {"remove": "nothing"},
    ],
)
def test_an_index_that_can_t_be_is_refused_in_place(staff, form):
    page = staff.post(INDEXES, form)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "<b>" not in page.text


@pytest.mark.django_db(transaction=True)
def test_a_unique_index_over_values_that_aren_t_is_refused(staff):
    make(score=1)
    make(score=1)
    page = staff.post(INDEXES, {"field": ["score"], "direction": ["1"], "unique": "on"})
    assert page.status_code == 400
    assert "error 137" in page.text
    assert "indexes" not in schema()


def test_slow_queries_advise_the_indexes_that_they_had_no_use_of(staff, settings):
    settings.SERVICE = {**settings.SERVICE, "SLOW_QUERY": 1}
    table = registry.find("Game")
    assert table is not None
    where = parse_where({"score": {"$gt": 1}, "title": "equality", "won": True})
    shape_counts.note(table, where, (OrderKey(("title",)),), 1.5)
    shape_counts.note(table, where, (), 0.25)
    shape_counts.note(table, where, (), 0.0001)
    results = advice(table)
    assert results is not None
    assert [(item.field, item.uses, item.queries, item.seconds) for item in results] == [
        ("score", ("range",), 2, 1.75),
        ("title", ("order",), 1, 1.5),
    ]
    page = staff.get(INDEXES).text
    assert "Build an index" in page
    staff.post(INDEXES, {"field": "score", "direction": "1"})
    table = registry.find("Game")
    assert table is not None
    left = advice(table)
    assert left is not None
    assert [item.field for item in left] == ["title"]


def test_finds_are_timed(staff, settings):
    settings.SERVICE = {**settings.SERVICE, "SLOW_QUERY": 1}
    for number in range(200):
        make(title="x" * 20_000, score=number)  # more than a millisecond for the expression
    options = FindOptions(
        where=parse_where({"title": {"$regex": "^x*y"}}), limit=1, order=(OrderKey(("score",)),)
    )
    for _ in range(20):
        service.find(MASTER, "Game", options)
    table = registry.find("Game")
    assert table is not None
    results = advice(table)
    assert results is not None
    assert "score" in {item.field for item in results}


def test_learned_indexes_are_shown_with_their_evidence(staff):
    table = fill()
    shape_counts_of(table, 40, 0.25)
    page = staff.get(INDEXES).text
    assert "score (range) in order of score" in page
    assert "40 \u00d7 250.0 ms" in page
    assert "is built next" in page
    assert "objects_auto" in page  # what its button sends


@pytest.mark.django_db(transaction=True)
def test_a_suggested_index_is_built_and_dropped_in_the_admin(staff):
    table = fill()
    shape_counts_of(table, 40, 0.25)
    (suggestion,) = overview.overview(table).suggestions
    assert staff.post(INDEXES, {"build": suggestion.key}).status_code == 302
    page = staff.get(INDEXES).text
    assert "in use, used last" in page
    assert "40 \u00d7 250.0 ms" in page
    assert "indexes" not in schema()
    again = staff.post(INDEXES, {"build": suggestion.key})
    assert (again.status_code, "not suggested any more" in again.text) == (400, True)
    assert staff.post(INDEXES, {"drop": suggestion.key}).status_code == 302
    assert "not built: dropped by hand" in staff.get(INDEXES).text
    for name in (suggestion.key, "objects_class_pkey", "<b>"):
        refused = staff.post(INDEXES, {"drop": "nothing" if name == suggestion.key else name})
        assert (refused.status_code, "<b>" in refused.text) == (400, False)


def test_those_who_may_only_look_have_no_buttons_for_learned_indexes(staff):
    table = fill()
    shape_counts_of(table, 40, 0.25)
    viewer = logged_in("Viewers")
    page = viewer.get(INDEXES)
    assert page.status_code == 200
    assert "score (range)" in page.text
    assert 'name="build"' not in page.text
    assert viewer.post(INDEXES, {"build": "objects_auto_1_0000000000000000"}).status_code == 403


def fill() -> ClassTable:
    """The class with more objects than an index is built from."""
    table = registry.find("Game")
    assert table is not None
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table.relation} (class_id, object_id, created_at, updated_at, data)"
            " SELECT %s, 'o' || n, now(), now(), jsonb_build_object('score', n, 'title',"
            " repeat('x', 100)) FROM generate_series(1, 8000) AS n",
            [table.class_id],
        )
        cursor.execute(f"ANALYZE {table.relation}")
    return table


def shape_counts_of(table: ClassTable, calls: int, seconds: float) -> None:
    """So many queries by range and order of the score."""
    shape_counts.forget()
    where = parse_where({"score": {"$gt": 1}})
    for _ in range(calls):
        shape_counts.note(table, where, (OrderKey(("score",)),), seconds, 20)


def test_purging_and_deleting_take_the_class_s_name(staff):
    make()
    for what in ("objects", "class"):
        page = staff.post(REMOVE, {"what": what, "typed": "game"})
        assert page.status_code == 400
        assert "Type Game to confirm" in page.text
    page = staff.post(REMOVE, {"what": "class", "typed": "Game"})
    assert "not empty" in page.text
    assert staff.post(REMOVE, {"what": "objects", "typed": "Game"}).status_code == 302
    assert service.count(MASTER, "Game", Everything()) == 0
    assert staff.post(REMOVE, {"what": "class", "typed": "Game"}).status_code == 302
    registry.forget_all()
    assert registry.find("Game") is None


def test_classes_of_the_service_aren_t_deleted(staff):
    page = staff.post("/admin/data/_Role/remove/", {"what": "class", "typed": "_Role"})
    assert page.status_code == 400
    assert "Delete the class" not in staff.get("/admin/data/_Role/remove/").text
    assert registry.find("_Role") is not None

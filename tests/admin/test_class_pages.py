"""Schemas in the admin: fields, permissions, indexes, removing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from backend.principal import CLIENT, MASTER
from objects import classes, registry, service, slow_queries
from objects.core.query import Everything, FindOptions, OrderKey
from objects.core.query_parser import parse_where
from tests.admin.games import GAME, make, make_class, stored_object
from tests.admin.staff import logged_in

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
    slow_queries.note(table, where, (OrderKey(("title",)),), 1.5)
    slow_queries.note(table, where, (), 0.25)
    slow_queries.note(table, where, (), 0.0001)
    found = slow_queries.advice(table)
    assert found is not None
    assert [(one.field, one.uses, one.queries, one.seconds) for one in found] == [
        ("score", ("range",), 2, 1.75),
        ("title", ("order",), 1, 1.5),
    ]
    page = staff.get(INDEXES).text
    assert "Build an index" in page
    staff.post(INDEXES, {"field": "score", "direction": "1"})
    table = registry.find("Game")
    assert table is not None
    left = slow_queries.advice(table)
    assert left is not None
    assert [one.field for one in left] == ["title"]


def test_finds_are_timed(staff, settings):
    settings.SERVICE = {**settings.SERVICE, "SLOW_QUERY": 1}
    for number in range(200):
        make(title="x" * 1000, score=number)
    options = FindOptions(
        where=parse_where({"title": {"$regex": "^x*y"}}), limit=1, order=(OrderKey(("score",)),)
    )
    for _ in range(20):
        service.find(MASTER, "Game", options)
    table = registry.find("Game")
    assert table is not None
    found = slow_queries.advice(table)
    assert found is not None
    assert "score" in {one.field for one in found}


def test_no_advice_where_redis_is_away(staff, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    slow_queries._client.cache_clear()
    try:
        settings.SERVICE = {**settings.SERVICE, "SLOW_QUERY": 1}
        table = registry.find("Game")
        assert table is not None
        slow_queries.note(table, parse_where({"score": {"$gt": 1}}), (), 1.0)
        assert "Redis doesn" in staff.get(INDEXES).text
    finally:
        slow_queries._client.cache_clear()


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

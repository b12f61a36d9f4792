"""Objects are what the document says they are: as they are read, created and changed."""

from __future__ import annotations

import jsonschema_rs
import pytest

from tests.backend.openapi.document import closed, document, schema
from tests.backend.openapi.test_validity import EVERY_KIND
from tests.people import sign_up

pytestmark = pytest.mark.django_db


def pointer(class_name, object_id):
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def is_valid(api, name, value):
    return jsonschema_rs.Draft202012Validator(closed(api, name)).is_valid(value)


@pytest.fixture
def owner():
    return sign_up("ann", ACL={"*": {"read": True}})


@pytest.fixture
def everything(owner):
    """An object with a value of every kind."""
    return {
        "text": "a",
        "number": 1.5,
        "flag": True,
        "thing": {"a": [1]},
        "list": [1, "a", pointer("_User", owner.user_id)],
        "day": {"__type": "Date", "iso": "2020-01-31T12:00:00.000Z"},
        "owner": owner.pointer,
        "parent": pointer("Everything", "abcdefghij"),
        "place": {"__type": "GeoPoint", "latitude": 1, "longitude": 2.5},
        "raw": {"__type": "Bytes", "base64": "YQ=="},
        "picture": {"__type": "File", "name": "a.png"},
        "area": {"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 0]]},
        "friends": {"__op": "AddRelation", "objects": [owner.pointer]},
        "ACL": {"*": {"read": True, "write": True}},
    }


@pytest.fixture
def api(master):
    reply = master.post("/schemas/Everything", {"fields": EVERY_KIND})
    assert reply.status == 200, reply.json
    return document(master)


def test_a_new_object_and_what_is_read_of_it_are_as_described(api, master, everything):
    assert is_valid(api, "EverythingCreate", everything)
    object_id = master.make("Everything", **everything)
    body = master.get(f"/classes/Everything/{object_id}").json
    assert set(everything) <= set(body)
    assert is_valid(api, "Everything", body)
    assert is_valid(api, "EverythingResults", master.get("/classes/Everything", count="1").json)


def test_an_included_object_is_described(api, master, everything):
    object_id = master.make("Everything", **everything)
    body = master.get(f"/classes/Everything/{object_id}", include="owner").json
    assert body["owner"]["username"] == "ann"
    assert is_valid(api, "Everything", body)
    del body["owner"]["objectId"]
    assert not is_valid(api, "Everything", body)


def test_every_field_may_be_null_that_isn_t_required(api, master, everything):
    missing = {name: None for name, field in EVERY_KIND.items() if not field.get("required")}
    del missing["friends"]
    body = {**everything, **missing}
    assert is_valid(api, "EverythingCreate", body)
    results = master.get(f"/classes/Everything/{master.make('Everything', **body)}").json
    assert is_valid(api, "Everything", results)


@pytest.mark.parametrize(
    "change",
    [
        {"number": {"__op": "Increment", "amount": 2}},
        {"number": {"__op": "Delete"}},
        {"list": {"__op": "Add", "objects": [1]}},
        {"list": {"__op": "AddUnique", "objects": ["x"]}},
        {"list": {"__op": "Remove", "objects": [1]}},
        {"list": []},
        {"text": {"__op": "SetOnInsert", "amount": "x"}},
        {"thing": None},
        {"place": {"__op": "Delete"}},
        {"friends": {"__op": "RemoveRelation", "objects": [pointer("_User", "a")]}},
        {
            "friends": {
                "__op": "Batch",
                "ops": [{"__op": "AddRelation", "objects": [pointer("_User", "a")]}],
            }
        },
        {"owner": pointer("_User", "abcdefghij")},
    ],
)
def test_changes_are_described(api, master, everything, change):
    assert is_valid(api, "EverythingUpdate", change)
    object_id = master.make("Everything", **everything)
    reply = master.put(f"/classes/Everything/{object_id}", change)
    assert reply.status == 200, reply.json
    assert is_valid(api, "UpdatedAnswer", reply.json)


@pytest.mark.parametrize(
    "change",
    [
        {"number": "1"},
        {"number": {"__op": "Add", "objects": [1]}},
        {"text": 1},
        {"flag": {"__op": "Increment", "amount": 1}},
        {"day": "2020-01-31T12:00:00.000Z"},
        {"owner": pointer("Everything", "abcdefghij")},
        {"place": {"__type": "GeoPoint", "latitude": 91, "longitude": 0}},
        {"ACL": {"*": {"read": "yes"}}},
    ],
)
def test_what_isn_t_described_is_refused(api, master, everything, change):
    assert not is_valid(api, "EverythingUpdate", change)
    object_id = master.make("Everything", **everything)
    assert master.put(f"/classes/Everything/{object_id}", change).status == 400


def test_what_a_new_object_needs_is_described(api, master, everything):
    create = schema(api, "EverythingCreate")
    assert set(create["required"]) == {"text", "day", "parent"}
    assert create["properties"]["code"]["default"] == "x"
    assert create["properties"]["number"]["default"] == 3
    for name in create["required"]:
        body = {key: value for key, value in everything.items() if key != name}
        assert not is_valid(api, "EverythingCreate", body)
        assert master.post("/classes/Everything", body).error == (400, 142)


def test_new_fields_are_described_at_once(master):
    master.make("Project", name="a")
    assert "stars" not in schema(document(master), "Project")["properties"]
    master.make("Project", stars=1)
    assert schema(document(master), "Project")["properties"]["stars"] == {
        "type": ["number", "null"]
    }


def test_an_account_is_described_as_its_owner_sees_it(master, client, owner):
    api = document(client)
    assert "password" not in schema(api, "User")["properties"]
    assert "password" in schema(api, "UserCreate")["properties"]
    assert "email" not in schema(api, "User")["properties"]
    assert "email" in schema(api, "OwnUser")["properties"]
    assert is_valid(api, "OwnUser", owner.get("/users/me").json)
    assert is_valid(api, "Session", owner.get("/sessions/me").json)


def test_the_codes_of_errors_are_described(api):
    described = schema(api, "ErrorAnswer")["description"]
    assert "| 101 | 404 | ObjectNotFound |" in described
    assert "| 119 | 403 | MasterKeyRequired |" in described

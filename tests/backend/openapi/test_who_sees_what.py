"""The document tells a caller no more than the caller's rights do."""

from __future__ import annotations

import json

import pytest

from tests.backend.openapi.document import document, operations, schema
from tests.people import make_role, sign_up
from tests.rest import Api

pytestmark = pytest.mark.django_db
EVERYBODY = {"*": True}
EVERY = ("find", "get", "count", "create", "update", "delete", "addField")


def permit(master, name, fields=None, **permissions):
    body = {"fields": fields or {"word": {"type": "String"}}, "classLevelPermissions": permissions}
    reply = master.post(f"/schemas/{name}", body)
    assert reply.status == 200, reply.json


def text(caller):
    return json.dumps(document(caller))


@pytest.fixture
def people(master):
    """The owner, a role member, a stranger."""
    ann, ben, eve = sign_up("ann"), sign_up("ben"), sign_up("eve")
    make_role(master, "Editors", [ben])
    return ann, ben, eve


def test_a_class_is_shown_to_whom_it_lets_in(master, reader, client, people):
    ann, ben, eve = people
    permit(master, "Plans", find={ann.user_id: True, "role:Editors": True})
    assert all("Plans" in text(caller) for caller in (master, reader, ann, ben))
    assert all("Plans" not in text(caller) for caller in (client, eve))


def test_a_class_for_users_is_shown_to_users(master, client, people):
    permit(master, "Members", find={"requiresAuthentication": True})
    assert "Members" in text(people[2])
    assert "Members" not in text(client)


def test_a_class_that_opens_by_its_objects_is_shown_to_users(master, client, people):
    fields = {"owner": {"type": "Pointer", "targetClass": "_User"}}
    permit(master, "Diary", fields, get={"pointerFields": ["owner"]})
    assert "Diary" in text(people[0])
    assert "Diary" not in text(client)


def test_only_what_the_caller_may_do_is_offered(master, client):
    permit(master, "Notes", find=EVERYBODY, get=EVERYBODY, create={})
    paths = document(client)["paths"]
    assert "get" in paths["/classes/Notes"]
    assert "post" not in paths["/classes/Notes"]
    assert not {"put", "delete"} & set(paths["/classes/Notes/{objectId}"])
    paths = document(master)["paths"]
    assert {"get", "post"} <= set(paths["/classes/Notes"])
    assert {"get", "put", "delete"} <= set(paths["/classes/Notes/{objectId}"])


def test_a_class_that_no_one_may_use_is_shown_to_the_master_keys_alone(
    master, reader, client, people
):
    permit(master, "Vault", addField=EVERYBODY)
    assert all("Vault" in text(caller) for caller in (master, reader))
    assert all("Vault" not in text(caller) for caller in (client, *people))


def test_a_pointer_into_a_class_that_the_caller_may_not_know_doesn_t_name_it(master, client):
    permit(master, "Vault")
    fields = {
        "door": {"type": "Pointer", "targetClass": "Vault"},
        "doors": {"type": "Relation", "targetClass": "Vault"},
    }
    permit(master, "House", fields, **dict.fromkeys(EVERY, EVERYBODY))
    assert "Vault" in text(master)
    assert "Vault" not in text(client)
    door = schema(document(client), "House")["properties"]["door"]
    assert {"$ref": "#/components/schemas/PointerValue"} in door["anyOf"]


def test_a_default_value_doesn_t_name_a_class_that_the_caller_may_not_know(master, client):
    permit(master, "Vault")
    pointer = {"__type": "Pointer", "className": "Vault", "objectId": "abcdefghij"}
    fields = {
        "door": {"type": "Pointer", "targetClass": "Vault", "defaultValue": pointer},
        "list": {"type": "Array", "defaultValue": [pointer]},
    }
    permit(master, "House", fields, **dict.fromkeys(EVERY, EVERYBODY))
    assert "Vault" not in text(client)


def test_protected_fields_are_shown_to_those_who_see_them(master, reader, client, people):
    ann, ben, eve = people
    fields = {"word": {"type": "String"}, "salary": {"type": "Number", "required": True}}
    protected = {"*": ["salary"], "role:Editors": [], ann.user_id: []}
    permit(master, "Staff", fields, **dict.fromkeys(EVERY, EVERYBODY), protectedFields=protected)
    assert all("salary" in text(caller) for caller in (master, reader, ann, ben))
    assert all("salary" not in text(caller) for caller in (client, eve))
    assert "word" in schema(document(client), "Staff")["properties"]


def test_a_field_that_only_named_users_see_isn_t_reported(master, people):
    fields = {
        "owner": {"type": "Pointer", "targetClass": "_User"},
        "secret": {"type": "String"},
    }
    protected = {"*": ["secret"], "userField:owner": []}
    permit(master, "Box", fields, **dict.fromkeys(EVERY, EVERYBODY), protectedFields=protected)
    assert "secret" not in text(people[0])


def test_of_routes_for_the_master_key_clients_learn_that_they_are_there(client, master):
    api = document(client)
    results = [
        (path, operation)
        for path, _, operation in operations(api)
        if operation.get("security") == [{"applicationId": [], "masterKey": []}]
    ]
    assert {"/schemas", "/purge/{className}", "/loginAs"} <= {path for path, _ in results}
    for _, operation in results:
        assert set(operation) == {"operationId", "tags", "security", "summary", "responses"}
        assert all(status >= "400" for status in operation["responses"])
    hidden = set(document(master)["components"]["schemas"]) - set(api["components"]["schemas"])
    assert {"ClassSchema", "LogInAsForm", "AggregateResults"} <= hidden


def test_the_services_own_classes_are_shown_to_the_master_keys_alone(master, client):
    master.post("/schemas/_JobStatus", {})
    assert "_JobStatus" in text(master)
    assert "_JobStatus" not in text(client)


def test_sessions_are_offered_to_users(client, people):
    assert "/sessions" not in document(client)["paths"]
    assert "/sessions" in document(people[0])["paths"]


def test_the_document_needs_a_client_key(application):
    assert application.get("/openapi.json").error == (403, 262)
    assert Api({}).get("/openapi.json").error == (403, 260)


def test_a_session_that_has_ended_gets_nothing(people):
    ann = people[0]
    ann.post("/logout")
    assert ann.get("/openapi.json").error == (400, 209)


def test_it_can_be_requested_in_a_batch(client):
    body = {"requests": [{"method": "GET", "path": "/api/openapi.json"}]}
    (reply,) = client.post("/batch", body).json
    assert reply["success"] == document(client)

"""The document is valid OpenAPI 3.1, for every caller and every class name."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.backend.openapi.document import document, schema
from tests.people import sign_up

pytestmark = pytest.mark.django_db
EVERY_KIND = {
    "text": {"type": "String", "required": True},
    "code": {"type": "String", "required": True, "defaultValue": "x"},
    "number": {"type": "Number", "defaultValue": 3},
    "flag": {"type": "Boolean"},
    "thing": {"type": "Object"},
    "list": {"type": "Array"},
    "day": {"type": "Date", "required": True},
    "owner": {"type": "Pointer", "targetClass": "_User"},
    "parent": {"type": "Pointer", "targetClass": "Everything", "required": True},
    "place": {"type": "GeoPoint"},
    "raw": {"type": "Bytes"},
    "picture": {"type": "File"},
    "area": {"type": "Polygon"},
    "friends": {"type": "Relation", "targetClass": "_User"},
}


@pytest.fixture
def everything(master):
    reply = master.post("/schemas/Everything", {"fields": EVERY_KIND})
    assert reply.status == 200, reply.json


@pytest.mark.slow
@pytest.mark.usefixtures("everything")
def test_the_document_of_every_caller_is_valid(master, reader, client):
    for caller in (master, reader, client, sign_up("ann")):
        OpenAPIV31SpecValidator(document(caller)).validate()


def test_every_operation_describes_its_own_response(master):
    vague = [
        f"{method} {path}"
        for path, operations in document(master)["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
        for response in operation["responses"].values()
        if response.get("description") == "The result."
    ]
    assert vague == []


@pytest.mark.slow
def test_classes_with_names_of_components_are_distinguished(master):
    names = (
        *("User", "Session", "OwnUser", "DateValue", "ErrorAnswer"),
        *("Project", "ProjectCreate", "project"),
    )
    for name in names:
        master.make(name, mark=name)
    api = document(master)
    OpenAPIV31SpecValidator(api).validate()
    observed = set()
    for name in names:
        create = api["paths"][f"/classes/{name}"]["post"]
        observed.add(create["requestBody"]["content"]["application/json"]["schema"]["$ref"])
    assert len(observed) == len(names)
    assert "iso" in schema(api, "DateValue")["properties"]
    assert "code" in schema(api, "ErrorAnswer")["properties"]
    assert "username" in schema(api, "User")["properties"]
    assert "sessionToken" in schema(api, "OwnUser")["properties"]
    assert "expiresAt" in schema(api, "Session")["properties"]


def test_a_service_without_classes_has_a_document(client):
    OpenAPIV31SpecValidator(document(client)).validate()

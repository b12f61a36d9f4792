"""Functions in the document: their parameters, what they return, and who may know of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, TypedDict

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from functions import Meta, Pointer, Request, function
from functions.runtime.registry import registry
from tests.backend.openapi.document import document
from tests.people import make_role, sign_up

pytestmark = pytest.mark.django_db


class Receipt(TypedDict):
    number: int
    notes: list[str]


@pytest.fixture(autouse=True)
def some_functions() -> Iterator[None]:
    with registry.temporarily():

        @function()
        def pay(
            request: Request,
            amount: Annotated[int, Meta(ge=1), "In cents."],
            currency: Literal["EUR", "USD"] = "EUR",
            note: str | None = None,
            when: datetime | None = None,
            project: Pointer | None = None,
        ) -> Receipt:
            """Pay for a project.

            What is paid is never paid back.
            """
            return {"number": amount, "notes": [currency]}

        @function("plain")
        def without_anything(request):
            return 1

        @function(require_user=True)
        def whoAmI(request: Request) -> str:
            return request.user.id

        @function(require_any_role=["Editors"])
        def publish(request: Request) -> None: ...

        @function(require_master=True)
        def recount(request: Request) -> int:
            return 1

        yield


def described(caller, name):
    return document(caller)["paths"].get(f"/functions/{name}", {}).get("post")


def parameters(caller, name):
    return described(caller, name)["requestBody"]["content"]["application/json"]["schema"]


def test_parameters_come_from_the_signature(client):
    OpenAPIV31SpecValidator(document(client)).validate()
    schema = parameters(client, "pay")
    assert schema["required"] == ["amount"]
    properties = schema["properties"]
    assert properties["amount"] == {"type": "integer", "minimum": 1, "description": "In cents."}
    assert properties["currency"]["default"] == "EUR"
    assert described(client, "pay")["requestBody"]["required"] is True
    assert described(client, "plain")["requestBody"]["required"] is False


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ({"amount": 1}, True),
        ({}, False),
        ({"amount": 0}, False),
        ({"amount": "1"}, False),
        ({"amount": 1, "currency": "GBP"}, False),
        ({"amount": 1, "note": None}, True),
        ({"amount": 1, "note": 1}, False),
        ({"amount": 1, "when": {"__type": "Date", "iso": "2020-01-31T12:00:00.000Z"}}, True),
        ({"amount": 1, "when": 1}, False),
        ({"amount": 1, "project": {"__type": "Pointer", "className": "A", "objectId": "b"}}, True),
        ({"amount": 1, "project": {"className": "A"}}, False),
    ],
)
def test_what_is_described_is_what_is_taken(client, body, is_right):
    api = document(client)
    schema = {**parameters(client, "pay"), "components": api["components"]}
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(body) is is_right
    reply = client.post("/functions/pay", body)
    if is_right:
        assert reply.status == 200, reply.json
    else:
        assert reply.error == (400, 141)


def test_what_comes_back_is_described(client):
    api = document(client)
    answer = described(client, "pay")["responses"]["200"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.Draft202012Validator({**answer, "components": api["components"]})
    assert validator.is_valid(client.post("/functions/pay", {"amount": 5}).json)
    assert not validator.is_valid({"result": {"number": "5", "notes": []}})
    assert set(api["components"]["schemas"]["Receipt"]["required"]) == {"number", "notes"}


def test_the_docstring_is_shown(client):
    operation = described(client, "pay")
    assert operation["summary"] == "Pay for a project."
    assert operation["description"] == "What is paid is never paid back."


def test_a_function_is_shown_to_whom_it_would_answer(client, master, reader):
    ann, ben = sign_up("ann"), sign_up("ben")
    make_role(master, "Editors", [ben])
    event = {
        name: {
            who
            for who, caller in {
                "master": master, "reader": reader, "client": client, "ann": ann, "ben": ben
            }.items()
            if described(caller, name)
        }
        for name in ("pay", "whoAmI", "publish", "recount")
    }  # fmt: skip
    assert event == {
        "pay": {"master", "reader", "client", "ann", "ben"},
        "whoAmI": {"master", "reader", "ann", "ben"},
        "publish": {"master", "reader", "ben"},
        "recount": {"master", "reader"},
    }


def test_what_a_function_asks_of_its_caller_is_described(master):
    api = document(master)["paths"]
    assert {"applicationId": []} in api["/functions/pay"]["post"]["security"]
    assert {"applicationId": []} not in api["/functions/whoAmI"]["post"]["security"]
    assert api["/functions/recount"]["post"]["security"] == [{"applicationId": [], "masterKey": []}]

"""A client that has the document already gets 304, and a change of a class makes a new one."""

from __future__ import annotations

import pytest

from tests.people import sign_up
from tests.statements import traffic

pytestmark = pytest.mark.django_db


def request_document(caller, etag):
    return caller.call("GET", "/openapi.json", headers={"If-None-Match": etag})


def test_the_same_document_isn_t_sent_again(master, client):
    master.make("Project", name="a")
    first = client.get("/openapi.json")
    again = request_document(client, first.headers["ETag"])
    assert (again.status, again.json) == (304, None)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert request_document(client, f'"other", W/{first.headers["ETag"]}').status == 304
    assert request_document(client, '"other"').status == 200


@pytest.mark.parametrize(
    "change",
    [
        {"fields": {"stars": {"type": "Number"}}},
        {"classLevelPermissions": {"get": {"*": True}}},
        {"fields": {"name": {"__op": "Delete"}}},
    ],
)
def test_a_change_of_a_class_makes_another_document(master, client, change):
    master.make("Project", name="a")
    etag = client.get("/openapi.json").headers["ETag"]
    assert master.put("/schemas/Project", change).status == 200
    assert request_document(client, etag).status == 200


def test_callers_with_the_same_rights_have_the_same_document(master, client):
    master.make("Project", name="a")
    ann, ben = sign_up("ann"), sign_up("ben")
    assert ann.get("/openapi.json").headers["ETag"] == ben.get("/openapi.json").headers["ETag"]
    assert request_document(client, ann.get("/openapi.json").headers["ETag"]).status == 200
    assert request_document(client, master.get("/openapi.json").headers["ETag"]).status == 200


def test_a_document_that_is_kept_costs_one_statement(master, client):
    for number in range(5):
        master.make(f"Project{number}", name="a")
    for caller in (master, client):
        etag = caller.get("/openapi.json").headers["ETag"]
        with traffic() as recorded:
            assert request_document(caller, etag).status == 304
        assert recorded.executions == 1


def test_caches_keep_it_for_one_caller_alone(client):
    assert client.get("/openapi.json").headers["Cache-Control"] == "private, no-cache"

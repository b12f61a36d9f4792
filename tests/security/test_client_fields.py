"""Clients can't fill a class with fields, nor fix the type of a field for its owner."""

from __future__ import annotations

import pytest

from backend.kernel.principal import CLIENT, MASTER
from functions import before_save
from functions.runtime.registry import registry as functions
from objects import service
from objects.definitions import registry
from objects.service import classes
from tests.rest import Api
from tests.threads import at_once

pytestmark = pytest.mark.usefixtures("few_fields")
LIMIT = 20


@pytest.fixture
def few_fields(settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_FIELD_LIMIT": LIMIT}


@pytest.fixture
def own_registrations():
    with functions.temporarily():
        yield


def body(names):
    return dict.fromkeys(names, 1)


def numbered(prefix, count):
    return body(f"{prefix}{number}" for number in range(count))


def client_fields(class_name="Game"):
    registry.forget(class_name)
    return registry.find(class_name).schema.client_fields


def test_clients_add_fields_up_to_their_limit_and_the_owner_adds_more(master, client, game, send):
    assert send(client, "POST", "/classes/Game", numbered("a", LIMIT)).status in (200, 201)
    for method, path in (("POST", "/classes/Game"), ("PUT", f"/classes/Game/{game}")):
        refused = send(client, method, path, {"one_more": 1})
        assert refused.json["code"] == 116
        assert (
            f"clients add at most {LIMIT} fields to a class; Game has {LIMIT}"
            in (refused.json["error"])
        )
    assert "one_more" not in master.get("/schemas/Game").json["fields"]
    assert master.post("/classes/Game", numbered("mine", 200)).status == 201
    assert len(client_fields()) == LIMIT


def test_a_refused_write_stores_nothing(master, client, game):
    before = master.get("/schemas/Game").json
    assert client.post("/classes/Game", numbered("a", LIMIT + 1)).error == (413, 116)
    assert client.put(f"/classes/Game/{game}", numbered("a", LIMIT + 1)).error == (413, 116)
    assert master.get("/schemas/Game").json == before
    assert len(master.results("Game")) == 1


def test_one_object_adds_at_most_a_hundred_fields(client, game, settings):
    settings.SERVICE = {**settings.SERVICE, "CLIENT_FIELD_LIMIT": 2_000}
    refused = client.post("/classes/Game", numbered("a", 101))
    assert refused.error == (413, 116)
    assert "at most 100 fields" in refused.json["error"]
    assert client.post("/classes/Game", numbered("a", 100)).status == 201


def test_a_batch_can_not_pass_the_limit(client, game):
    for together in (False, True):
        prefix = "t" if together else "s"
        requests = [
            {"method": "POST", "path": "/api/classes/Game", "body": numbered(f"{prefix}{n}x", 8)}
            for n in range(3)
        ]
        client.post("/batch", {"requests": requests, "transaction": together})
        assert len(client_fields()) == 16


def test_every_class_that_clients_write_has_the_limit(client, master, db):
    signed = client.post("/users", {"username": "u", "password": "p", **numbered("a", LIMIT)})
    assert signed.status == 201
    assert len(client_fields("_User")) == LIMIT
    user = Api({**client.headers, "X-Svc-Session-Token": signed.json["sessionToken"]})
    own = f"/users/{signed.json['objectId']}"
    assert user.put(own, {"b": 1}).error == (413, 116)
    assert client.post("/users", {"username": "v", "password": "p", "b": 1}).error == (413, 116)
    installation = {"installationId": "i", "deviceType": "ios"}
    assert client.post("/installations", {**installation, **numbered("a", LIMIT)}).status == 201
    again = client.post("/installations", {**installation, "installationId": "j", "b": 1})
    assert again.error == (413, 116)
    session = user.get("/sessions/me").json["objectId"]
    assert user.put(f"/sessions/{session}", numbered("a", LIMIT + 1)).error == (413, 116)
    acl = {"ACL": {"*": {"read": True}}}
    open_to_all = {"create": {"*": True}, "addField": {"*": True}}
    master.put("/schemas/_Role", {"classLevelPermissions": open_to_all})
    role = {"name": "r", **acl}
    assert client.post("/roles", {**role, **numbered("a", LIMIT + 1)}).error == (413, 116)
    assert client.post("/roles", {**role, **numbered("a", LIMIT)}).status == 201


def test_what_the_owner_writes_becomes_the_owners(master, client, game):
    client.post("/classes/Game", numbered("a", LIMIT))
    assert master.put(f"/classes/Game/{game}", {"a0": {"__op": "Delete"}}).status == 200
    assert len(client_fields()) == LIMIT
    assert master.put(f"/classes/Game/{game}", {"a0": 5}).status == 200
    assert master.post("/classes/Game", {"a1": 5}).status == 201
    items = [{"method": "POST", "path": "/api/classes/Game", "body": {"a2": 1}}] * 2
    assert master.post("/batch", {"requests": items}).status == 200
    declared = {"fields": {"a3": {"type": "Number"}}}
    assert master.put("/schemas/Game", declared).status == 200
    assert client_fields() == {f"a{number}" for number in range(4, LIMIT)}
    assert client.post("/classes/Game", numbered("b", 4)).status == 201
    assert client.post("/classes/Game", {"c": 1}).error == (413, 116)


def test_the_owner_changes_the_type_of_a_field_that_only_clients_made(master, client, game):
    client.put(f"/classes/Game/{game}", {"level": "high", "other": 1})
    declared = {"fields": {"level": {"type": "Number", "defaultValue": 3}}}
    reply = master.put("/schemas/Game", declared)
    assert reply.status == 200
    assert reply.json["fields"]["level"] == {"type": "Number", "defaultValue": 3}
    stored = master.get(f"/classes/Game/{game}").json
    assert "level" not in stored
    assert stored["other"] == 1
    assert client.put(f"/classes/Game/{game}", {"level": 4}).status == 200
    assert client.put(f"/classes/Game/{game}", {"level": "x"}).error == (400, 111)
    assert client_fields() == {"other"}


def test_a_field_of_the_owner_keeps_its_type(master, client, game):
    master.put(f"/classes/Game/{game}", {"level": "high"})
    client.put(f"/classes/Game/{game}", {"level": "low"})
    refused = master.put("/schemas/Game", {"fields": {"level": {"type": "Number"}}})
    assert refused.error == (400, 255)
    assert client_fields() == frozenset()


def test_a_relation_made_by_clients_becomes_another_field(master, client, game):
    pointer = {"__type": "Pointer", "className": "Game", "objectId": game}
    add = {"__op": "AddRelation", "objects": [pointer]}
    client.put(f"/classes/Game/{game}", {"friends": add})
    assert master.put("/schemas/Game", {"fields": {"friends": {"type": "Number"}}}).status == 200
    assert client.put(f"/classes/Game/{game}", {"friends": 2}).status == 200
    assert client.get(f"/classes/Game/{game}").json["friends"] == 2


def test_a_field_with_a_new_type_stays_protected_and_loses_its_indexes(master, client, game):
    client.put(f"/classes/Game/{game}", {"level": "high"})
    permissions = master.get("/schemas/Game").json["classLevelPermissions"]
    permissions["protectedFields"] = {"*": ["level"]}
    indexed = {"classLevelPermissions": permissions, "indexes": {"by_level": {"level": 1}}}
    assert master.put("/schemas/Game", indexed).status == 200
    changed = master.put("/schemas/Game", {"fields": {"level": {"type": "Array"}}}).json
    assert changed["classLevelPermissions"]["protectedFields"] == {"*": ["level"]}
    assert "indexes" not in changed


def test_the_owner_removes_a_field_and_frees_its_place(master, client, game):
    client.post("/classes/Game", numbered("a", LIMIT))
    assert master.put("/schemas/Game", {"fields": {"a0": {"__op": "Delete"}}}).status == 200
    assert len(client_fields()) == LIMIT - 1
    assert client.post("/classes/Game", {"b": 1}).status == 201


def test_the_mark_is_not_shown(master, client, game):
    client.put(f"/classes/Game/{game}", {"level": 1})
    shown = master.get("/schemas/Game").json
    assert set(shown) <= {"className", "fields", "classLevelPermissions", "indexes"}
    assert shown["fields"]["level"] == {"type": "Number"}
    registry.forget_all()
    assert client_fields() == {"level"}


def test_fields_of_a_trigger_are_the_owners(client, game, own_registrations):
    @before_save("Game")
    def stamp(request):
        request.object["stamp"] = "x"

    assert client.put(f"/classes/Game/{game}", {"mine": 1}).status == 200
    assert client_fields() == {"mine"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_clients_that_add_fields_at_once_do_not_pass_the_limit(emptied):
    classes.create(MASTER, "Crowd", {})

    def add(number):
        try:
            service.create(CLIENT, "Crowd", numbered(f"f{number}x", 8))
        except Exception as error:
            return getattr(error, "code", error)
        return 0

    outcomes = at_once([lambda number=number: add(number) for number in range(6)])
    assert sorted(outcomes) == [0, 0, 116, 116, 116, 116]
    assert len(client_fields("Crowd")) == 16

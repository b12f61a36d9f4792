"""E-mail addresses are shown to their users and the master key, on every path that shows a user.

Live queries: tests/objects/access/test_over_live_queries.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import setting_changed
from django.db import connection

from functions import FunctionRequest, function
from functions.runtime.registry import registry
from objects import doctor
from objects.definitions import registry as classes
from tests.objects.access.tables import PUBLIC
from tests.objects.access.transports import TRANSPORTS
from tests.people import PASSWORD, User, as_user, log_in, make_role, sign_up
from tests.rest import Api, Reply

ADDRESS = "ann@example.org"
NAMES = ("master", "reader", "owner", "member", "stranger", "client")
SEE = frozenset({"master", "reader", "owner"})
OTHERS = sorted(set(NAMES) - SEE - {"owner"})
ROUTES = ("/users", "/classes/_User")


@pytest.fixture
def callers(master, reader, client) -> dict[str, Api]:
    """All callers; everybody may read the owner's account."""
    owner, member = sign_up("ann", email=ADDRESS), sign_up("member")
    make_role(master, "Team", [owner, member])
    acl = {
        "*": {"read": True},
        "role:Team": {"read": True, "write": True},
        owner.user_id: {"read": True, "write": True},
    }
    assert master.put(f"/users/{owner.user_id}", {"ACL": acl}).status == 200
    return {
        "master": master,
        "reader": reader,
        "owner": owner,
        "member": member,
        "stranger": sign_up("stranger"),
        "client": client,
    }


@pytest.fixture
def owner(callers) -> User:
    results = callers["owner"]
    assert isinstance(results, User)
    return results


def permit(master: Api, **protection: Any) -> None:
    body = {"classLevelPermissions": {**PUBLIC, **protection}}
    assert master.put("/schemas/_User", body).status == 200


# -- What is shown --------------------------------------------------------------------------------


@pytest.fixture
def places(callers, owner) -> dict[str, tuple[str, Any]]:
    """Requests that lead to the owner's account, each with a way into its answer."""
    master = callers["master"]
    team = master.results("_Role", where={"name": "Team"})[0]["objectId"]
    note = master.make("Note", by=owner.pointer, readers=[owner.pointer], word="x")
    far = master.make("Far", to={"__type": "Pointer", "className": "Note", "objectId": note})
    mine = {"where": {"objectId": owner.user_id}}
    role = {"__type": "Pointer", "className": "_Role", "objectId": team}
    members = {"$relatedTo": {"object": role, "key": "users"}}
    by_id: dict[str, tuple[str, Any]] = {}
    for route in ROUTES:
        item = f"{route}/{owner.user_id}"
        by_id |= {
            f"get {route}": (item, {}),
            f"keys of a get {route}": (item, {"keys": "email,username"}),
            f"find {route}": (route, mine),
            f"keys of a find {route}": (route, {**mine, "keys": "email"}),
            f"excludeKeys {route}": (route, {**mine, "excludeKeys": "username"}),
            f"members of a role {route}": (route, {"where": {**members, **mine["where"]}}),
            f"$inQuery {route}": (
                route,
                {
                    "where": {
                        **mine["where"],
                        "username": {
                            "$select": {
                                "query": {"className": "_User", "where": {"username": "ann"}},
                                "key": "username",
                            }
                        },
                    }
                },
            ),
        }
    return {
        **by_id,
        "include": (f"/classes/Note/{note}", {"include": "by"}),
        "include all": (f"/classes/Note/{note}", {"include": "*"}),
        "include in a list": (f"/classes/Note/{note}", {"include": "readers"}),
        "include in a find": ("/classes/Note", {"include": "by"}),
        "include twice": (f"/classes/Far/{far}", {"include": "to.by"}),
        "keys of an include": (f"/classes/Note/{note}", {"keys": "by.email"}),
        "redirect": ("/roles", {**mine, "redirectClassNameForKey": "users"}),
    }


@pytest.mark.slow
def test_an_address_is_shown_to_its_user_and_the_master_key_alone(callers, places):
    for send in TRANSPORTS:
        for name, api in callers.items():
            for place, (path, params) in places.items():
                reply = send(api, "GET", path, params)
                assert reply.status == 200, (send, name, place, reply.json)
                # Members of a role aren't looked for by name: the redirect is to all classes.
                text = json.dumps(reply.json)
                assert (ADDRESS in text) == (name in SEE), (send.__name__, name, place)


def test_functions_return_what_their_caller_may_see(callers, owner):
    with registry.temporarily():

        @function("people")
        def people(request: FunctionRequest) -> Any:
            users = request.objects("_User")
            return {"all": users.find(), "one": users.get(owner.user_id)}

        @function("everything")
        def everything(request: FunctionRequest) -> Any:
            return request.objects.as_master("_User").get(owner.user_id)

        for name, api in callers.items():
            text = json.dumps(api.post("/functions/people").json)
            assert (ADDRESS in text) == (name in SEE), name
        # What a function reads with the master key is its own to return.
        assert ADDRESS in json.dumps(callers["client"].post("/functions/everything").json)


def test_answers_to_signing_in_show_it_to_the_user(callers, owner, client, master):
    value = {"username": "ann", "password": PASSWORD}
    answers: list[Reply] = [
        log_in("ann"),
        client.post("/verifyPassword", value),
        master.post("/loginAs", {"userId": owner.user_id}),
        owner.get("/users/me"),
        owner.get(f"/users/{owner.user_id}"),
        owner.get("/sessions/me", include="user"),
    ]
    for answer in answers[:5]:
        assert answer.json["email"] == ADDRESS
    sessions = owner.get("/sessions", include="user").json["results"]
    assert {session["user"]["email"] for session in sessions} == {ADDRESS}
    for name in OTHERS:
        if name != "client":
            assert ADDRESS not in str(callers[name].get("/sessions", include="user").json)


def test_answers_to_writes_show_others_nothing(callers, owner):
    """The role that the access list names changes the account, and doesn't see the address."""
    for name in OTHERS:
        for send in TRANSPORTS:
            reply = send(callers[name], "PUT", f"/users/{owner.user_id}", {"colour": "red"})
            assert reply.json.get("code") == (None if name == "member" else 206)
            assert ADDRESS not in str(reply.json)


# -- Queries --------------------------------------------------------------------------------------

QUESTIONS: list[dict[str, Any]] = [
    {"where": {"email": ADDRESS}},
    {"where": {"email": {"$exists": True}}},
    {"where": {"email": {"$regex": "^ann"}}},
    {"where": {"email": {"$in": [ADDRESS]}}},
    {"where": {"email": {"$ne": None}}},
    {"where": {"email": {"$gt": "a"}}},
    {"where": {"email.length": 1}},
    {"where": {"email": {"$text": {"$search": {"$term": "ann"}}}}},
    {"where": {"$text": {"$search": {"$term": "ann"}}}},
    {"where": {"$or": [{"username": "x"}, {"$and": [{"$nor": [{"email": ADDRESS}]}]}]}},
    {"order": "email"},
    {"order": "username,-email"},
]


def asking(question: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The requests that ask this about users, directly and from other classes."""
    query = {"className": "_User", **question, "limit": 1}
    return [
        *((route, question) for route in ROUTES),
        *((route, {**question, "count": 1, "limit": 0}) for route in ROUTES),
        ("/roles", {**question, "redirectClassNameForKey": "users"}),
        ("/classes/Note", {"where": {"by": {"$inQuery": query}}}),
        ("/classes/Note", {"where": {"by": {"$notInQuery": query}}}),
        ("/classes/Note", {"where": {"$or": [{"word": 1}, {"by": {"$inQuery": query}}]}}),
        ("/classes/Note", {"where": {"word": {"$select": {"query": query, "key": "username"}}}}),
        (
            "/classes/Note",
            {"where": {"word": {"$dontSelect": {"query": query, "key": "username"}}}},
        ),
    ]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_other_caller_asks_by_an_address(callers, places, question):
    for send in TRANSPORTS:
        # Also its user: the answer would be about all users.
        for name in ("owner", *OTHERS):
            for path, params in asking(question):
                reply = send(callers[name], "GET", path, params)
                assert reply.json.get("code") == 119, (send.__name__, name, path, params)


def test_no_other_caller_compares_or_groups_addresses(callers, places):
    users = {"className": "_User", "where": {}}
    selected = {"word": {"$select": {"query": users, "key": "email"}}}
    query = {"word": {"$dontSelect": {"query": users, "key": "email"}}}
    for send in TRANSPORTS:
        for name in ("owner", *OTHERS):
            for where in (selected, query):
                reply = send(callers[name], "GET", "/classes/Note", {"where": where})
                assert reply.json["code"] == 119
            for params in (
                {"distinct": "email"},
                {"pipeline": json.dumps([{"$group": {"_id": "$email"}}])},
            ):
                assert send(callers[name], "GET", "/aggregate/_User", params).json["code"] == 119
    master = callers["master"]
    assert master.get("/aggregate/_User", distinct="email").json["results"] == [ADDRESS]
    assert master.get("/users", where={"email": ADDRESS}).json["results"][0]["email"] == ADDRESS


# -- Instances from before, and permissions of the owner's own -------------------------------------


def sees(api: Api, owner: User) -> bool:
    reply = api.get(f"/users/{owner.user_id}")
    assert reply.status == 200, reply.json
    return "email" in reply.json


def store(definition: dict[str, Any]) -> None:
    """The definition of ``_User`` as a former version may have left it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE objects_class SET definition = %s::jsonb,"
            " version = nextval('objects_class_version') WHERE name = '_User'",
            [json.dumps(definition)],
        )
    classes.forget_all()


@pytest.mark.parametrize(
    ("protection", "is_shown"),
    [
        ({}, False),
        ({"protectedFields": {}}, False),
        ({"protectedFields": {"role:Team": []}}, False),
        ({"protectedFields": {"*": []}}, False),
        ({"protectedFields": {"authenticated": []}}, False),
    ],
)
def test_a_class_that_is_stored_already_is_protected_unless_its_owner_has_said_otherwise(
    callers, owner, protection, is_shown
):
    store({"fields": {}, "classLevelPermissions": {**PUBLIC, **protection}})
    assert sees(callers["client"], owner) == is_shown
    assert [finding.level for finding in doctor.addresses_of_users()] == [
        "warn" if is_shown else "ok"
    ]


def test_permissions_open_it_to_whom_they_name(callers, owner):
    master = callers["master"]

    def who() -> set[str]:
        return {name for name, api in callers.items() if sees(api, owner)}

    assert who() == SEE
    permit(master, protectedFields={"role:Team": []})
    assert who() == SEE | {"member"}
    permit(master, protectedFields={"authenticated": []})
    assert who() == SEE | {"member", "stranger"}
    permit(master, protectedFields={"*": []})  # what SDKs send; the setting opens it to everybody
    assert who() == SEE
    permit(master)
    assert who() == SEE


def test_the_permissions_that_schemas_show_can_be_sent_back(callers, owner, master):
    shown = master.get("/schemas/_User").json["classLevelPermissions"]
    assert shown["protectedFields"] == {"*": ["email"]}
    assert master.put("/schemas/_User", {"classLevelPermissions": shown}).status == 200
    assert not sees(callers["client"], owner)


# -- The setting ----------------------------------------------------------------------------------


@pytest.fixture
def protect(settings) -> Iterator[Any]:
    def set_up(**by_class: dict[str, tuple[str, ...]]) -> None:
        settings.SERVICE = {**settings.SERVICE, "PROTECTED_FIELDS": by_class}

    yield set_up
    settings.SERVICE = {
        name: value for name, value in settings.SERVICE.items() if name != "PROTECTED_FIELDS"
    }
    setting_changed.send(None, setting="SERVICE", value=None, enter=False)


def test_the_setting_protects_further_fields_and_other_classes(callers, owner, master, protect):
    note = master.make("Diary", secret="s", title="t")
    owner.put(f"/users/{owner.user_id}", {"phone": "555"})
    protect(_User={"*": ("email", "phone", "later")}, Diary={"*": ("secret",)})
    for name, api in callers.items():
        user = api.get(f"/users/{owner.user_id}").json
        assert ("email" in user, "phone" in user) == (name in SEE, name in SEE), name
        diary = api.get(f"/classes/Diary/{note}").json
        assert ("secret" in diary) == (name in ("master", "reader")), name
    assert callers["client"].get("/classes/Diary", where={"secret": "s"}).error == (400, 119)
    # Fields may be named before they are there, and permissions can be sent back as they are shown.
    shown = master.get("/schemas/_User").json["classLevelPermissions"]
    assert shown["protectedFields"] == {"*": ["email", "later", "phone"]}
    assert master.put("/schemas/_User", {"classLevelPermissions": shown}).status == 200
    owner.put(f"/users/{owner.user_id}", {"later": 1})
    assert "later" not in callers["client"].get(f"/users/{owner.user_id}").json


def test_the_setting_opens_addresses(callers, owner, protect):
    protect(_User={"*": ()})
    assert sees(callers["client"], owner)
    assert [finding.level for finding in doctor.addresses_of_users()] == ["warn"]


def start(value: str) -> subprocess.CompletedProcess[str]:
    code = (
        "from backend.settings import django as settings;"
        "print(settings.SERVICE['PROTECTED_FIELDS'])"
    )
    environment = {**os.environ, "PROTECTED_FIELDS": value}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_setting_is_json_and_keeps_addresses_protected_where_it_does_not_name_users():
    default = {"_User": {"*": ("email",)}}
    assert start("").stdout.strip() == str(default)
    text = json.dumps({"Doc": {"role:X": ["a"]}})
    assert start(text).stdout.strip() == str({**default, "Doc": {"role:X": ("a",)}})
    assert start('{"_User": {"*": []}}').stdout.strip() == str({"_User": {"*": ()}})
    for wrong in (
        "[]",
        "x",
        '{"_User": ["email"]}',
        '{"_User": {"*": "email"}}',
        '{"A": {"*": ["a b"]}}',
    ):
        done = start(wrong)
        assert done.returncode == 1
        assert "PROTECTED_FIELDS must be a JSON object" in done.stderr


def test_a_sign_up_shows_the_new_user_nothing_of_others(callers, client):
    new = as_user("new", client.post("/users", {"username": "new", "password": PASSWORD}))
    assert ADDRESS not in str(new.get("/users").json)

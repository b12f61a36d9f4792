"""Classes of people and of the service: what is theirs stays theirs, by every route to them."""

from __future__ import annotations

from itertools import product

import pytest

from objects.access.policy import MASTER_ONLY_CLASSES
from tests.objects.access.tables import (
    MISSING,
    NO,
    NOT_MASTERS,
    OWNER_ID,
    PUBLIC,
    STRANGER_ID,
    YES,
)
from tests.objects.access.transports import TRANSPORTS, batched, directly
from tests.objects.access.world import outcome_over_rest, permit, pointer, stored_or_named
from tests.people import PASSWORD, log_in

# -- Users ----------------------------------------------------------------------------------------

OPEN = {"ACL": {"*": {"read": True, "write": True}}}
DEVICE = "device-00000000000001"


@pytest.fixture
def account(people, settings):
    """The owner's account, open to all as far as an access list can open it."""
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    body = {"email": "owner@example.org", "authData": {"anonymous": {"id": DEVICE}}, **OPEN}
    reply = people["owner"].put(f"/users/{OWNER_ID}", body)
    assert reply.status == 200, reply.json
    return people


ROUTES = ["/users", "/classes/_User"]


@pytest.mark.parametrize("route", ROUTES)
def test_address_and_proofs_of_a_user_are_shown_to_the_user_and_the_master_key(
    account, send, route
):
    ref = account["master"].make("Ref", to=pointer("_User", OWNER_ID))
    for name in ("master", "reader", "owner", "member", "stranger", "client"):
        sees = name in ("master", "reader", "owner")
        listed = send(account[name], "GET", route, {"where": {"objectId": OWNER_ID}}).json
        shown = {
            "list": listed["results"][0],
            "get": send(account[name], "GET", f"{route}/{OWNER_ID}", None).json,
            "keys": send(account[name], "GET", f"{route}/{OWNER_ID}", {"keys": "email"}).json,
            "include": send(account[name], "GET", f"/classes/Ref/{ref}", {"include": "to"}).json[
                "to"
            ],
        }
        for path, user in shown.items():
            assert ("email" in user) == sees, (name, path)
            assert ("authData" in user) == (sees and path != "keys"), (name, path)
            assert DEVICE not in str(user) or sees


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "params",
    [
        {"where": {"email": "owner@example.org"}},
        {"where": {"email": {"$regex": "^owner"}}},
        {"where": {"$or": [{"email": {"$gt": "o"}}, {"username": "x"}]}},
        {"where": {"authData.anonymous.id": DEVICE}},
        {"where": {"authData": {"anonymous": {"id": DEVICE}}}},
        {"where": {"authData.anonymous.id": {"$exists": True}}},
        {"where": {"$nor": [{"authData.anonymous": None}]}},
        {"where": {"$text": {"$search": {"$term": "owner"}}}},
        {"order": "email"},
        {"order": "-authData.anonymous.id"},
    ],
)
def test_no_one_asks_by_address_or_proof_but_the_master_key(account, route, params):
    inner = {"user": {"$inQuery": {"className": "_User", **params, "limit": 1}}}
    for send, name in product(TRANSPORTS, sorted(NOT_MASTERS)):
        assert outcome_over_rest(send(account[name], "GET", route, params)) == NO
        counted = {**params, "count": 1, "limit": 0}
        assert outcome_over_rest(send(account[name], "GET", route, counted)) == NO
        if name != "client":
            assert (
                outcome_over_rest(send(account[name], "GET", "/sessions", {"where": inner})) == NO
            )
    assert account["master"].get(route, **params).status == 200


@pytest.mark.parametrize("word", ["_hashed_password", "_auth_data_google", "_email_verify_token"])
def test_parse_servers_inner_columns_are_no_fields(account, send, word):
    for params in ({"where": {word: "x"}}, {"order": word}, {"keys": word}):
        assert send(account["stranger"], "GET", "/users", params).json["code"] == 105


def test_a_custom_permission_that_is_silent_about_it_keeps_addresses_protected(account, send):
    for permissions in (PUBLIC, {**PUBLIC, "protectedFields": {"role:Team": ["email"]}}):
        permit("_User", **permissions)
        wire = account["master"].get("/schemas/_User").json["classLevelPermissions"]
        assert wire["protectedFields"]["*"] == ["email"]
        body = send(account["stranger"], "GET", f"/users/{OWNER_ID}", None).json
        assert "email" not in body
        assert "authData" not in body
    for group, is_shown in (("*", False), ("authenticated", True)):
        permit("_User", **PUBLIC, protectedFields={group: []})
        body = send(account["stranger"], "GET", f"/users/{OWNER_ID}", None).json
        assert ("email" in body) == is_shown
        assert "authData" not in body


@pytest.mark.parametrize("route", ROUTES)
def test_an_account_is_changed_by_its_user_whatever_its_list_says(account, send, route):
    for name in ("member", "stranger", "client"):
        for method, body in (
            ("PUT", {"nick": "x"}),
            ("PUT", {"password": "another one"}),
            ("PUT", {"ACL": {}}),
            ("DELETE", None),
        ):
            reply = send(account[name], method, f"{route}/{OWNER_ID}", body)
            assert reply.json["code"] == 206, (name, method, body)
            missing = send(account[name], method, f"{route}/nobody0001", body)
            assert missing.json["code"] == 206
    assert log_in("owner").status == 200
    assert (
        outcome_over_rest(send(account["owner"], "PUT", f"{route}/{OWNER_ID}", {"nick": "x"}))
        == YES
    )
    assert outcome_over_rest(send(account["owner"], "DELETE", f"{route}/{OWNER_ID}", None)) == YES


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "body",
    [
        {"authData.google.id": "1"},
        {"authData.anonymous": {"id": "x"}},
        {"authData": {"__op": "Delete"}},
        {"authData": {"__op": "SetOnInsert", "amount": {"google": {"id": "1"}}}},
        {"emailVerified": True},
        {"emailVerified": {"__op": "SetOnInsert", "amount": True}},
        {"username": {"__op": "Delete"}},
        {"createdAt": "2020-01-01T00:00:00Z"},
    ],
)
def test_a_user_says_nothing_of_themselves_that_has_to_be_proven(account, route, body):
    before = account["master"].get(f"/users/{OWNER_ID}").json
    for send in TRANSPORTS:
        assert send(account["owner"], "PUT", f"{route}/{OWNER_ID}", body).status == 400, send
    assert account["master"].get(f"/users/{OWNER_ID}").json == before


def test_permissions_of_the_class_of_users_count_on_its_own_routes(people, send):
    new = {"username": "new", "password": PASSWORD}
    owner, client = people["owner"], people["client"]
    permit("_User", find={"*": True})
    for route in ROUTES:
        assert outcome_over_rest(send(client, "POST", route, new)) == NO
        assert outcome_over_rest(send(owner, "GET", f"{route}/{OWNER_ID}", None)) == NO
        assert outcome_over_rest(send(owner, "PUT", f"{route}/{OWNER_ID}", {"nick": "x"})) == NO
        assert outcome_over_rest(send(owner, "DELETE", f"{route}/{OWNER_ID}", None)) == NO
        assert outcome_over_rest(send(owner, "GET", route, None)) == YES
    assert outcome_over_rest(send(owner, "GET", "/users/me", None)) == NO
    # Who has an account can still sign in to it.
    assert log_in("owner").status == 200
    people["master"].post("/users", new)
    assert log_in("new").status == 200


@pytest.mark.parametrize("class_name", ["_Join:users:_Role", "_Join:roles:_Role", "_SCHEMA"])
def test_what_is_no_class_is_no_class_in_sub_queries_either(people, send, class_name):
    query = {"className": class_name, "where": {}}
    for where in (
        {"to": {"$inQuery": query}},
        {"to": {"$notInQuery": query}},
        {"to": {"$select": {"query": query, "key": "relatedId"}}},
        {"$relatedTo": {"object": pointer(class_name, "abcdefghij"), "key": "users"}},
    ):
        reply = send(people["owner"], "GET", "/users", {"where": where})
        assert reply.json["code"] in (102, 103, 106, 107, 111, 119), reply.json


# -- Sessions -------------------------------------------------------------------------------------


@pytest.fixture
def session_ids(people):
    results = people["master"].get("/sessions").json["results"]
    return {result["user"]["objectId"]: result["objectId"] for result in results}


@pytest.mark.parametrize("route", ["/sessions", "/classes/_Session"])
def test_sessions_are_met_by_their_users(people, session_ids, send, route):
    mine, other = session_ids[OWNER_ID], session_ids[STRANGER_ID]
    people["master"].put(f"/sessions/{other}", OPEN)
    owner, client = people["owner"], people["client"]
    results = send(owner, "GET", route, {"count": 1}).json
    assert ([result["objectId"] for result in results["results"]], results["count"]) == ([mine], 1)
    assert results["results"][0].get("sessionToken", owner.token) == owner.token
    for where in ({"objectId": other}, {"user": pointer("_User", STRANGER_ID)}, {"$nor": []}):
        reply = send(owner, "GET", route, {"where": where})
        assert reply.status != 200 or other not in str(reply.json)
    for method, body in (("GET", None), ("PUT", {"note": "x"}), ("DELETE", None)):
        assert outcome_over_rest(send(owner, method, f"{route}/{other}", body)) == MISSING
        assert send(client, method, f"{route}/{other}", body).json["code"] == 209
    assert send(client, "GET", route, None).json["code"] == 209
    ref = people["master"].make(
        "Ref", to=pointer("_Session", other), mine=pointer("_Session", mine)
    )
    shown = send(owner, "GET", f"/classes/Ref/{ref}", {"include": "to,mine"}).json
    assert "to" not in shown
    assert shown["mine"]["__type"] == "Object"
    assert "to" not in send(client, "GET", f"/classes/Ref/{ref}", {"include": "to"}).json
    inner = {"to": {"$inQuery": {"className": "_Session", "where": {}}}}
    assert send(owner, "GET", "/classes/Ref", {"where": inner}).json["results"] == []
    assert send(client, "GET", "/classes/Ref", {"where": inner}).json["code"] == 209


# -- Installations --------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["/installations", "/classes/_Installation"])
def test_installations_are_listed_and_removed_by_the_master_key(people, send, route):
    body = {"deviceType": "ios", "installationId": "00000000-0000-0000-0000-000000000001"}
    device = people["client"].post(route, body).json["objectId"]
    people["master"].make("Ref", to=pointer("_Installation", device))
    inner = {"to": {"$inQuery": {"className": "_Installation", "where": {}}}}
    for name in sorted(NOT_MASTERS):
        for params in ({}, {"count": 1, "limit": 0}, {"where": {"deviceType": "ios"}}):
            assert outcome_over_rest(send(people[name], "GET", route, params)) == NO
        assert outcome_over_rest(send(people[name], "DELETE", f"{route}/{device}", None)) == NO
        assert outcome_over_rest(send(people[name], "GET", "/classes/Ref", {"where": inner})) == NO
    assert outcome_over_rest(send(people["reader"], "DELETE", f"{route}/{device}", None)) == NO
    assert outcome_over_rest(send(people["master"], "DELETE", f"{route}/{device}", None)) == YES


# -- The service's own classes --------------------------------------------------------------------


@pytest.mark.parametrize("class_name", sorted(MASTER_ONLY_CLASSES))
def test_internal_classes_are_closed_regardless_of_their_permissions(people, class_name):
    doc = stored_or_named(class_name)
    permit(class_name, **PUBLIC)
    to = pointer(class_name, doc)
    ref = people["master"].make(
        "Ref", to=to, members={"__op": "AddRelation", "objects": [to]}, name="ref"
    )
    related = {"$relatedTo": {"object": pointer("Ref", ref), "key": "members"}}
    requests = [
        ("GET", f"/classes/{class_name}", None),
        ("GET", f"/classes/{class_name}", {"where": related, "count": 1, "limit": 0}),
        ("GET", f"/classes/{class_name}/{doc}", None),
        ("POST", f"/classes/{class_name}", {}),
        ("PUT", f"/classes/{class_name}/{doc}", {"note": "x"}),
        ("DELETE", f"/classes/{class_name}/{doc}", None),
        ("GET", "/classes/Ref", {"where": {"to": {"$inQuery": {"className": class_name}}}}),
        ("GET", "/classes/Ref", {"where": {"to": {"$notInQuery": {"className": class_name}}}}),
        (
            "GET",
            "/classes/Ref",
            {"where": {"name": {"$select": {"query": {"className": class_name}, "key": "x"}}}},
        ),
        ("GET", "/classes/Ref", {"redirectClassNameForKey": "members"}),
        ("GET", f"/aggregate/{class_name}", {"distinct": "name"}),
        ("GET", f"/schemas/{class_name}", None),
    ]
    for send in (directly, batched):
        for name in ("owner", "client"):
            for request in requests:
                reply = send(people[name], *request)
                assert reply.json["code"] == 119, (request, reply.json)
            shown = send(people[name], "GET", f"/classes/Ref/{ref}", {"include": "to"}).json
            assert "to" not in shown
    path = f"/classes/{class_name}/{doc}"
    assert people["reader"].get(path).status == people["master"].get(path).status


# -- The read-only master key ---------------------------------------------------------------------


def test_the_read_only_master_key_writes_nothing_of_people(account, session_ids, send):
    """vc89-5g3r-cmhh, 79wj-8rqv-jvp5 and their kind: also a session is something written."""
    master, reader = account["master"], account["reader"]
    role = master.results("_Role")[0]["objectId"]
    session = session_ids[OWNER_ID]
    new = {"username": "new", "password": PASSWORD}
    acl = {"*": {"read": True}}
    device = {"deviceType": "ios", "installationId": "00000000-0000-0000-0000-000000000001"}
    requests = [
        ("POST", "/users", new),
        ("POST", "/classes/_User", new),
        ("POST", "/users", {"authData": {"anonymous": {"id": DEVICE}}}),
        ("POST", "/users", {"authData": {"anonymous": {"id": "another-device-0001"}}}),
        ("POST", "/login", {"username": "owner", "password": PASSWORD}),
        ("POST", "/loginAs", {"userId": OWNER_ID}),
        ("PUT", f"/users/{OWNER_ID}", {"nick": "x"}),
        ("PUT", f"/users/{OWNER_ID}", {"password": "another one"}),
        ("DELETE", f"/users/{OWNER_ID}", None),
        ("POST", "/sessions", {"user": pointer("_User", OWNER_ID)}),
        ("PUT", f"/sessions/{session}", {"note": "x"}),
        ("DELETE", f"/sessions/{session}", None),
        ("POST", "/roles", {"name": "New", "ACL": acl}),
        (
            "PUT",
            f"/roles/{role}",
            {"users": {"__op": "AddRelation", "objects": [pointer("_User", STRANGER_ID)]}},
        ),
        ("DELETE", f"/roles/{role}", None),
        ("POST", "/installations", device),
        ("PUT", "/schemas/_User", {"classLevelPermissions": PUBLIC}),
        ("DELETE", "/purge/_User", None),
        ("DELETE", "/purge/_Session", None),
    ]

    def everything():
        return [
            master.get(path).json
            for path in ("/users", "/sessions", "/roles", "/installations", "/schemas")
        ]

    before = everything()
    for request in requests:
        reply = send(reader, *request)
        assert reply.json["code"] == 119, (request, reply.json)
    assert everything() == before
    assert reader.get("/users").status == reader.get("/sessions").status == 200

"""Permissions of classes over REST: real sessions, every action, on every transport."""

from __future__ import annotations

from itertools import product

import pytest

from tests.objects.access.tables import (
    ACTIONS,
    LOGIN,
    MASTERS,
    MEMBER_ID,
    MISSING,
    NAMES,
    NO,
    OWNER_ID,
    PUBLIC,
    RULES,
    YES,
    may,
    may_make,
    may_write,
)
from tests.objects.access.transports import TRANSPORTS
from tests.objects.access.world import OWNER, Place, make, outcome_over_rest, permit, user

rules = pytest.mark.parametrize(("rule", "expected"), RULES.values(), ids=RULES)


@pytest.fixture
def docs(people):
    """A document that names the owner in two fields, and one that names no user."""
    fields = {"owner": user(OWNER), "team": [user(OWNER)], "tags": ["t"]}
    return {"own": make("Doc", name="own", **fields), "other": make("Doc", name="other")}


each = [(send, name) for send in TRANSPORTS for name in NAMES]


@rules
def test_find_and_count(people, docs, rule, expected):
    for action in ("find", "count"):
        permit("Doc", **PUBLIC | {action: rule})
        params = {"count": 1, "limit": 0} if action == "count" else {}
        for send, name in each:
            reply = send(people[name], "GET", "/classes/Doc", params)
            access = may(name, expected, "own")
            assert outcome_over_rest(reply) == (YES if access == MISSING else access), (
                send,
                action,
                name,
            )
            if outcome_over_rest(reply) != YES:
                continue
            met = {which for which in docs if may(name, expected, which) == YES}
            if action == "find":
                assert {obj["name"] for obj in reply.json["results"]} == met, (send, name)
            else:
                assert reply.json["count"] == len(met), (send, name)


@rules
def test_get(people, docs, rule, expected):
    permit("Doc", **PUBLIC | {"get": rule})
    for send, name in each:
        for which, doc in docs.items():
            reply = send(people[name], "GET", f"/classes/Doc/{doc}", None)
            assert outcome_over_rest(reply) == may(name, expected, which), (send, name, which)


@rules
def test_update_and_add_a_field(people, docs, rule, expected):
    for action in ("update", "addField"):
        permit("Doc", **PUBLIC | {action: rule})
        for number, (send, name) in enumerate(each):
            for which, doc in docs.items():
                body = {f"new{number}{which}": 1} if action == "addField" else {"name": which}
                reply = send(people[name], "PUT", f"/classes/Doc/{doc}", body)
                assert outcome_over_rest(reply) == may_write(name, expected, which), (
                    send,
                    action,
                    name,
                    which,
                )


@rules
def test_delete(people, docs, rule, expected):
    permit("Doc", **PUBLIC | {"delete": rule})
    for send, name in each:
        for which in docs:
            fields = {"owner": user(OWNER), "team": [user(OWNER)]} if which == "own" else {}
            doc = make("Doc", name=which, **fields)
            reply = send(people[name], "DELETE", f"/classes/Doc/{doc}", None)
            assert outcome_over_rest(reply) == may_write(name, expected, which), (send, name, which)


@rules
def test_create(people, docs, rule, expected):
    for action in ("create", "addField"):
        permit("Doc", **PUBLIC | {action: rule})
        for number, (send, name) in enumerate(each):
            body = {"owner": user(OWNER)} if action == "create" else {f"made{number}": 1}
            reply = send(people[name], "POST", "/classes/Doc", body)
            assert outcome_over_rest(reply) == may_make(name, expected), (send, action, name)


@rules
def test_every_way_to_an_object_of_the_class(people, rule, expected):
    place = Place(owner=user(OWNER), team=[user(OWNER)])
    permit("Doc", **dict.fromkeys(PUBLIC, rule))
    for name in NAMES:
        for way in place.ways():
            met = way.meets_over_rest(people[name])
            assert met == (may(name, expected, "own") == YES), (name, way.name)


@pytest.mark.parametrize("field", ["owner", "team"])
def test_user_fields_open_all_reads_or_all_writes(people, docs, send, field):
    own, other = (f"/classes/Doc/{docs[which]}" for which in ("own", "other"))
    permit("Doc", readUserFields=[field])
    for name in ("owner", "member", "stranger", "client"):
        caller = people[name]
        results = send(caller, "GET", "/classes/Doc", {"count": 1}).json
        mine = ["own"] if name == "owner" else []
        assert ([obj["name"] for obj in results["results"]], results["count"]) == (mine, len(mine))
        assert outcome_over_rest(send(caller, "GET", own, None)) == (YES if mine else MISSING)
        assert outcome_over_rest(send(caller, "GET", other, None)) == MISSING
        for method, body in (("PUT", {"name": "own"}), ("DELETE", None)):
            assert outcome_over_rest(send(caller, method, own, body)) == NO
        assert outcome_over_rest(send(caller, "POST", "/classes/Doc", {"owner": user(OWNER)})) == NO
    permit("Doc", writeUserFields=[field])
    for name in ("member", "stranger", "client", "owner"):
        caller = people[name]
        assert outcome_over_rest(send(caller, "GET", "/classes/Doc", None)) == NO
        for method, body in (("PUT", {"name": "own"}), ("PUT", {f"by{name}": 1}), ("DELETE", None)):
            assert outcome_over_rest(send(caller, method, other, body)) == MISSING
            expected = YES if name == "owner" else MISSING
            assert outcome_over_rest(send(caller, method, own, body)) == expected, (name, method)


@rules
def test_a_query_by_an_id_alone_is_a_get(people, docs, rule, expected):
    """SDKs get objects by such queries."""
    for action in ("get", "find"):
        permit("Doc", **PUBLIC | {"get": {}, "find": {}} | {action: rule})
        for send, name in each:
            for which, doc in docs.items():
                by_id = {"where": {"objectId": doc}, "limit": 1}
                by_condition = {"where": {"objectId": {"$in": [doc]}}}
                by_more = {"where": {"objectId": doc, "name": which}}
                access = may(name, expected, which)
                for params in (by_id, by_condition, by_more):
                    reply = send(people[name], "GET", "/classes/Doc", params)
                    about = (send, name, which, action, params)
                    if (params is by_id) != (action == "get"):
                        assert outcome_over_rest(reply) == (YES if name in MASTERS else NO), about
                    elif access in (YES, MISSING):
                        results = reply.json["results"]
                        assert [obj["name"] for obj in results] == [which] * (access == YES), about
                    else:
                        assert outcome_over_rest(reply) == access, about


@rules
def test_a_query_that_only_counts_needs_no_right_to_find(people, docs, rule, expected):
    permit("Doc", **PUBLIC | {"find": {}, "get": {}, "count": rule})
    for send, name in each:
        reply = send(people[name], "GET", "/classes/Doc", {"count": 1, "limit": 0})
        access = may(name, expected, "own")
        assert outcome_over_rest(reply) == (YES if access == MISSING else access), (send, name)
        if outcome_over_rest(reply) == YES:
            number = sum(may(name, expected, which) == YES for which in docs)
            assert reply.json == {"results": [], "count": number}, (send, name)
        reply = send(people[name], "GET", "/classes/Doc", {"count": 1})
        assert outcome_over_rest(reply) == (YES if name in MASTERS else NO), (send, name)


def test_the_right_to_add_a_field_is_asked_before_its_type(people, docs, send):
    permit("Doc", **PUBLIC | {"addField": {"pointerFields": ["owner"]}})
    body = {"name": 1, "fresh": 1}
    for name in ("owner", "member", "stranger", "client"):
        assert outcome_over_rest(send(people[name], "POST", "/classes/Doc", body)) == NO, name
        assert send(people[name], "POST", "/classes/Doc", {"name": 1}).json["code"] == 111, name


def test_permissions_that_say_nothing_are_for_the_master_key(people, docs, send):
    permit("Doc")
    doc = f"/classes/Doc/{docs['own']}"
    requests = {
        "find": ("GET", "/classes/Doc", None),
        "get": ("GET", doc, None),
        "count": ("GET", "/classes/Doc", {"count": 1, "limit": 0}),
        "create": ("POST", "/classes/Doc", {}),
        "update": ("PUT", doc, {"name": "x"}),
        "delete": ("DELETE", doc, None),
    }
    for action, request in requests.items():
        for name in ("owner", "member", "stranger", "client"):
            reply = send(people[name], *request)
            assert outcome_over_rest(reply) == NO
            expected = f"Permission denied for action {action} on class Doc."
            assert reply.json["error"] == expected


def test_a_rejection_says_that_logging_in_is_required(people, docs, send):
    permit("Doc", **{action: {"requiresAuthentication": True} for action in ACTIONS})
    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        reply = send(people["client"], method, f"/classes/Doc/{docs['own']}", body)
        assert outcome_over_rest(reply) == LOGIN
        assert reply.json["error"] == "Permission denied, user needs to be authenticated."


# The access list of a class's new objects; who reads what the owner makes, what a client makes
DEFAULTS = {
    "nobody": ({}, set(), set()),
    "the maker": ({"currentUser": {"read": True}}, {"owner"}, set()),
    "the maker and a role": (
        {"currentUser": {"read": True}, "role:Team": {"read": True}},
        {"owner", "member"},
        {"member"},
    ),
    "everybody": (
        {"*": {"read": True}},
        {"owner", "member", "stranger", "client"},
        {"owner", "member", "stranger", "client"},
    ),
    "a user": ({OWNER_ID: {"read": True}}, {"owner"}, {"owner"}),
}


@pytest.mark.parametrize(("acl", "of_owner", "of_nobody"), DEFAULTS.values(), ids=DEFAULTS)
def test_new_objects_get_the_access_list_of_their_class(people, docs, acl, of_owner, of_nobody):
    permit("Doc", **PUBLIC, ACL=acl)
    for send, (maker, readers) in product(TRANSPORTS, (("owner", of_owner), ("client", of_nobody))):
        made = send(people[maker], "POST", "/classes/Doc", {"name": "made"}).json["objectId"]
        for name in ("owner", "member", "stranger", "client"):
            reply = people[name].get(f"/classes/Doc/{made}")
            assert outcome_over_rest(reply) == (YES if name in readers else MISSING), (maker, name)
        own = {"name": "made", "ACL": {"*": {"read": True}}}
        made = send(people[maker], "POST", "/classes/Doc", own).json["objectId"]
        assert outcome_over_rest(people["client"].get(f"/classes/Doc/{made}")) == YES


GROWING = {
    "a value": {"fresh": 1},
    "a part": {"fresh.part": 1},
    "Increment": {"fresh": {"__op": "Increment", "amount": 1}},
    "Add": {"fresh": {"__op": "Add", "objects": [1]}},
    "AddUnique": {"fresh": {"__op": "AddUnique", "objects": [1]}},
    "AddRelation": {"fresh": {"__op": "AddRelation", "objects": [user(OWNER)]}},
    "SetOnInsert": {"fresh": {"__op": "SetOnInsert", "amount": 1}},
    "among others": {"name": "x", "fresh": [1]},
}


@pytest.mark.parametrize("body", GROWING.values(), ids=GROWING)
def test_whatever_makes_a_field_needs_the_right_to_add_one(people, docs, body):
    permit("Doc", **PUBLIC | {"addField": {}})
    for send in TRANSPORTS:
        for name in ("owner", "member", "stranger", "client", "reader"):
            for method, path in (("POST", "/classes/Doc"), ("PUT", f"/classes/Doc/{docs['own']}")):
                assert outcome_over_rest(send(people[name], method, path, body)) == NO, (
                    send,
                    name,
                    method,
                )
    schema = people["master"].get("/schemas/Doc").json
    assert "fresh" not in schema["fields"]
    assert len(people["master"].results("Doc")) == len(docs)


def test_creates_side_by_side_in_a_batch_have_the_rights_of_each(people, docs):
    path = "/api/classes/Doc"
    requests = [
        {"method": "POST", "path": path, "body": {"name": name}} for name in ("a", "b", "c")
    ]
    grown = [*requests, {"method": "POST", "path": path, "body": {"name": "d", "fresh": 1}}]
    permit("Doc", **PUBLIC | {"create": {"role:Team": True}, "addField": {}})
    for name in ("owner", "stranger", "client", "reader"):
        answers = people[name].post("/batch", {"requests": requests}).json
        assert [answer["error"]["code"] for answer in answers] == [119] * 3
        reply = people[name].post("/batch", {"requests": requests, "transaction": True})
        assert outcome_over_rest(reply) == NO
    reply = people["member"].post("/batch", {"requests": grown, "transaction": True})
    assert outcome_over_rest(reply) == NO
    assert len(people["master"].results("Doc")) == len(docs)
    permit("Doc", **PUBLIC, ACL={"currentUser": {"read": True}})
    answers = people["member"].post("/batch", {"requests": requests}).json
    for answer in answers:
        made = people["master"].get(f"/classes/Doc/{answer['success']['objectId']}").json
        assert made["ACL"] == {MEMBER_ID: {"read": True}}

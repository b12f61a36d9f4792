"""Protected fields over REST: on no path shown, asked about, sorted by or counted by."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects.access.tables import (
    GROUPS,
    NAMES,
    NO,
    NOT_MASTERS,
    OWNER_ID,
    PUBLIC,
    QUESTIONS,
    SECRET,
)
from tests.objects.access.transports import TRANSPORTS, batched, directly, overridden
from tests.objects.access.world import OWNER, make, outcome_over_rest, permit, pointer, user

groups = pytest.mark.parametrize(("protected", "own", "other"), GROUPS.values(), ids=GROUPS)


@pytest.fixture
def docs(people):
    fields = {"secret": {"word": "s"}, "score": 1, "tags": [], "place": None}
    own = make("Doc", name="own", owner=user(OWNER), team=[user(OWNER)], **fields)
    return {"own": own, "other": make("Doc", name="other", **fields)}


def protect(protected, class_name="Doc"):
    permit(class_name, **PUBLIC, protectedFields=protected)


@groups
def test_a_protected_field_is_shown_on_no_path(people, docs, protected, own, other):
    to_docs = [pointer("Doc", doc) for doc in docs.values()]
    holder = make("Holder", docs={"__op": "AddRelation", "objects": to_docs})
    refs = {which: make("Ref", to=pointer("Doc", doc)) for which, doc in docs.items()}
    far = {which: make("Far", ref=pointer("Ref", ref)) for which, ref in refs.items()}
    protect(protected)
    members = {"$relatedTo": {"object": pointer("Holder", holder), "key": "docs"}}
    for send in (directly, batched):
        for name in NAMES:
            for which, doc in docs.items():
                observed = name in (own if which == "own" else other)

                def ask(path, send=send, name=name, **params):
                    return send(people[name], "GET", path, params).json

                def first(path, doc=doc, ask=ask, **params):
                    results = ask(path, **params)["results"]
                    return next(obj for obj in results if obj["objectId"] == doc)

                paths = {
                    "find": first("/classes/Doc"),
                    "keys": first("/classes/Doc", keys="secret,name"),
                    "dotted keys": first("/classes/Doc", keys="secret.word"),
                    "excludeKeys": first("/classes/Doc", excludeKeys="name"),
                    "include all": first("/classes/Doc", include="*"),
                    "members": first("/classes/Doc", where=members),
                    "redirect": first("/classes/Holder", redirectClassNameForKey="docs"),
                    "get": ask(f"/classes/Doc/{doc}"),
                    "get with keys": ask(f"/classes/Doc/{doc}", keys="secret"),
                    "include": ask(f"/classes/Ref/{refs[which]}", include="to")["to"],
                    "include keys": ask(f"/classes/Ref/{refs[which]}", keys="to.secret")["to"],
                    "include twice": ask(f"/classes/Far/{far[which]}", include="ref.to")["ref"][
                        "to"
                    ],
                }
                for path, obj in paths.items():
                    assert ("secret" in obj) == observed, (send, name, which, path)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_about_a_protected_field_is_refused_on_every_path(people, docs, ask):
    make("Ref", a=1, to=pointer("Doc", docs["own"]), word="s")
    to_docs = [pointer("Doc", doc) for doc in docs.values()]
    make("Holder", docs={"__op": "AddRelation", "objects": to_docs})
    protect({"*": SECRET})
    query = {"className": "Doc", **ask}
    paths = [
        ("/classes/Doc", ask),
        ("/classes/Doc", {**ask, "count": 1, "limit": 0}),
        ("/classes/Holder", {**ask, "redirectClassNameForKey": "docs"}),
    ]
    if "$select" not in str(ask) and "$dontSelect" not in str(ask):
        paths += [
            ("/classes/Ref", {"where": where})
            for where in (
                {"to": {"$inQuery": {**query, "limit": 1}}},
                {"to": {"$notInQuery": {**query, "limit": 1}}},
                {"$or": [{"a": 5}, {"$nor": [{"to": {"$inQuery": {**query, "limit": 1}}}]}]},
                {"word": {"$select": {"query": query, "key": "name"}}},
                {"word": {"$dontSelect": {"query": query, "key": "name"}}},
            )
        ]
    for send in (overridden, batched):
        for name in sorted(NOT_MASTERS):
            for path, params in paths:
                reply = send(people[name], "GET", path, params)
                assert reply.json["code"] == 119, (send, name, path, params, reply.json)
    for path, params in paths:
        assert people["master"].get(path, **params).status == 200, params
        assert people["reader"].get(path, **params).status == 200, params


KINDS = {
    "text": (
        "the secret word",
        [
            {"where": {"$text": {"$search": {"$term": "word"}}}},
            {"where": {"secret": {"$text": {"$search": {"$term": "word"}}}}},
            {"where": {"secret": {"$regex": "WORD", "$options": "i"}}},
            {"where": {"secret": {"$in": ["the secret word"]}}},
        ],
    ),
    "a place": (
        {"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        [
            {
                "where": {
                    "secret": {
                        "$nearSphere": {"__type": "GeoPoint", "latitude": 1, "longitude": 1},
                        "$maxDistanceInKilometers": 500,
                    }
                }
            },
            {
                "where": {
                    "secret": {
                        "$within": {
                            "$box": [
                                {"__type": "GeoPoint", "latitude": 0, "longitude": 0},
                                {"__type": "GeoPoint", "latitude": 3, "longitude": 3},
                            ]
                        }
                    }
                }
            },
        ],
    ),
    "a list": (
        ["a", {"b": 1}],
        [
            {"where": {"secret": {"$all": ["a"]}}},
            {"where": {"secret": {"$containedBy": ["a"]}}},
            {"where": {"secret": "a"}},
            {"where": {"secret.b": 1}},
            {"where": {"secret.0": "a"}},
        ],
    ),
    "a pointer": (
        {"__type": "Pointer", "className": "Ref", "objectId": "abcdefghij"},
        [
            {"where": {"secret": {"$inQuery": {"className": "Ref", "where": {}}}}},
            {"where": {"secret": {"$notInQuery": {"className": "Ref", "where": {}}}}},
            {"where": {"secret": {"__type": "Pointer", "className": "Ref", "objectId": "x"}}},
        ],
    ),
}


@pytest.mark.parametrize(("value", "asks"), KINDS.values(), ids=KINDS)
def test_whatever_kind_of_value_it_is(people, value, asks):
    make("Ref", a=1)
    make("Doc", name="doc", secret=value)
    protect({"*": SECRET})
    for send in TRANSPORTS:
        for ask in asks:
            for params in (ask, {**ask, "count": 1, "limit": 0}):
                assert (
                    outcome_over_rest(send(people["stranger"], "GET", "/classes/Doc", params)) == NO
                ), params
                assert people["master"].get("/classes/Doc", **params).status == 200, params
    shown = people["stranger"].get("/classes/Doc", include="secret").json["results"][0]
    assert "secret" not in shown


def test_a_protected_pointer_is_no_way_to_what_it_points_at(people):
    ref = make("Ref", word="s")
    doc = make("Doc", secret=pointer("Ref", ref))
    protect({"*": SECRET})
    for params in ({"include": "secret"}, {"include": "*"}, {"keys": "secret.word"}):
        assert "secret" not in people["stranger"].get(f"/classes/Doc/{doc}", **params).json
        assert "secret" not in people["stranger"].get("/classes/Doc", **params).json["results"][0]


def test_a_protected_relation_tells_no_members_and_no_number(people, docs, send):
    """wmwx-jr2p-4j4r, rmhf-xv62-rm99: both over $relatedTo."""
    friend = make("Friend")
    adding = {"__op": "AddRelation", "objects": [pointer("Friend", friend)]}
    people["master"].put(f"/classes/Doc/{docs['own']}", {"friends": adding})
    protect({"*": ["friends"]})
    related = {"$relatedTo": {"object": pointer("Doc", docs["own"]), "key": "friends"}}
    for where in (related, {"$or": [related]}, {"$nor": [related]}):
        for params in ({"where": where}, {"where": where, "count": 1, "limit": 0}):
            assert (
                outcome_over_rest(send(people["stranger"], "GET", "/classes/Friend", params)) == NO
            )
    for params in (
        {"where": {"friends": pointer("Friend", friend)}},
        {"where": {"friends": {"$exists": True}}},
        {"redirectClassNameForKey": "friends"},
    ):
        assert outcome_over_rest(send(people["stranger"], "GET", "/classes/Doc", params)) == NO
    inner = {"friends": {"$inQuery": {"className": "Friend", "where": related}}}
    assert (
        outcome_over_rest(send(people["stranger"], "GET", "/classes/Holder", {"where": inner}))
        == NO
    )


def test_answers_to_writes_show_no_protected_field(people, docs, send):
    protect({"*": ["score", "tags", "secret"], "userField:owner": []})
    bodies = [
        {"score": {"__op": "Increment", "amount": 1}},
        {"tags": {"__op": "AddUnique", "objects": [1]}},
        {"tags": {"__op": "Remove", "objects": [1]}, "name": "own"},
        {"secret.count": {"__op": "SetOnInsert", "amount": 1}},
    ]
    for name in sorted(NOT_MASTERS):
        for body in bodies:
            reply = send(people[name], "PUT", f"/classes/Doc/{docs['other']}", body)
            assert set(reply.json) == {"updatedAt"}, (name, body)
        made = send(people[name], "POST", "/classes/Doc", {"score": bodies[0]["score"]})
        assert set(made.json) == {"objectId", "createdAt"}
    reply = send(people["master"], "PUT", f"/classes/Doc/{docs['other']}", bodies[0])
    assert "score" in reply.json


def test_defaults_of_protected_fields_are_not_told_by_a_create(people, send):
    people["master"].post(
        "/schemas/Plan", {"fields": {"secret": {"type": "String", "defaultValue": "s"}}}
    )
    protect({"*": SECRET}, "Plan")
    made = send(people["stranger"], "POST", "/classes/Plan", {})
    assert set(made.json) == {"objectId", "createdAt"}


def test_pipelines_are_for_the_master_keys_and_see_all(people, docs, send):
    protect({"*": SECRET})
    for params in ({"distinct": "secret"}, {"pipeline": [{"$group": {"_id": "$secret"}}]}):
        for name in NAMES:
            reply = send(people[name], "GET", "/aggregate/Doc", params)
            assert outcome_over_rest(reply) == (NO if name in NOT_MASTERS else "yes")


def test_a_class_survives_the_loss_of_a_field_that_its_protection_names(people, docs):
    protect({"*": SECRET, "userField:owner": []})
    master = people["master"]
    assert master.put("/schemas/Doc", {"fields": {"owner": {"__op": "Delete"}}}).status == 200
    permissions = master.get("/schemas/Doc").json["classLevelPermissions"]
    assert permissions["protectedFields"] == {"*": SECRET}
    for name in ("owner", "stranger"):
        assert "secret" not in people[name].get(f"/classes/Doc/{docs['own']}").json


def test_a_user_queries_the_own_account_by_any_field(client, people):
    owner = people["owner"]
    owner.put(f"/users/{OWNER_ID}", {"email": "owner@example.com"})
    own = {"objectId": OWNER_ID, "email": "owner@example.com"}
    others: list[dict[str, Any]] = [
        {"email": "owner@example.com"},
        {"objectId": {"$in": [OWNER_ID]}, "email": "owner@example.com"},
        {"$or": [{"objectId": OWNER_ID}, {"email": {"$exists": True}}]},
    ]
    for name in ("owner", "member", "stranger", "client"):
        reply = people[name].get("/users", where=own, order="email")
        if name == "owner":
            assert [user["email"] for user in reply.json["results"]] == ["owner@example.com"]
        else:
            assert reply.error == (400, 119), name
        for where in others:
            refused = people[name].get("/users", where=where)
            assert refused.json["error"] == (
                "This user is not allowed to query email on class _User"
            ), (name, where)
        refused = people[name].get("/users", order="email")
        assert refused.json["error"] == "This user is not allowed to sort by email on class _User"

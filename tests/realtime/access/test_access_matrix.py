"""What a subscriber is shown: every caller, by the tables that all readings are held to."""

from __future__ import annotations

import pytest

from backend.kernel.errors import InvalidQuery, ServiceError
from tests.objects.access.tables import (
    GROUPS,
    LISTS,
    LOGIN,
    MASTERS,
    NO,
    PUBLIC,
    QUESTIONS,
    RULES,
    SECRET,
    YES,
    may,
)
from tests.objects.access.world import (
    CALLERS,
    OWNER,
    make,
    outcome,
    permit,
    pointer,
    stored_or_named,
    user,
)
from tests.realtime.access.live_subscriptions import access, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def docs():
    """A document that names the owner in two fields, and one that names no user."""
    fields = {"owner": user(OWNER), "team": [user(OWNER)]}
    secret = {"secret": {"word": "s"}}
    return {
        "own": make("Doc", name="own", **secret, **fields),
        "other": make("Doc", name="other", **secret),
    }


def test_an_object_is_shown_only_to_its_readers():
    objects = {
        name: stored(make("Doc", **({} if acl is None else {"ACL": acl})))
        for name, (acl, _, _) in LISTS.items()
    }
    for caller, principal in CALLERS.items():
        observed = access(principal)
        for name, (_, readers, _) in LISTS.items():
            assert observed.can_read(objects[name]) == (caller in readers), (caller, name)


def watched(principal, doc):
    """Waiting for a document by its id, or for all: how that goes for one of them."""
    got = outcome(lambda: access(principal, objectId=doc["objectId"]))
    return (
        got
        if got != YES
        else (YES if access(principal, objectId=doc["objectId"]).can_read(doc) else "not found")
    )


@pytest.mark.parametrize(("rule", "expected"), RULES.values(), ids=RULES)
def test_find_permission_allows_a_subscription(docs, rule, expected):
    permit("Doc", **PUBLIC | {"find": rule})
    objects = {which: stored(doc) for which, doc in docs.items()}
    for caller, principal in CALLERS.items():
        item = may(caller, expected, "own")
        got = outcome(lambda p=principal: access(p))
        assert got == (YES if item == "not found" else item), caller
        if got == YES:
            for which, obj in objects.items():
                readable = access(principal).can_read(obj)
                assert readable == (may(caller, expected, which) == YES), (caller, which)


@pytest.mark.parametrize(("rule", "expected"), RULES.values(), ids=RULES)
def test_get_permission_allows_a_subscription_by_object_id(docs, rule, expected):
    permit("Doc", **PUBLIC | {"find": {}, "get": rule})
    for caller, principal in CALLERS.items():
        for which, doc in docs.items():
            assert watched(principal, stored(doc)) == may(caller, expected, which), (caller, which)
        got = outcome(lambda p=principal: access(p, name="own"))
        assert got == (YES if caller in MASTERS else NO), caller


@pytest.mark.parametrize("fields", [{"readUserFields": ["owner"]}, {"readUserFields": ["team"]}])
def test_user_fields_open_a_class_to_the_named_users(docs, fields):
    permit("Doc", **fields)
    for caller, principal in CALLERS.items():
        for which, doc in docs.items():
            expected = caller in MASTERS or (caller, which) == ("owner", "own")
            assert access(principal).can_read(stored(doc)) == expected, (caller, which)


def test_pointer_permissions_and_access_lists_must_both_allow(docs):
    permit("Doc", **PUBLIC | {"find": {"pointerFields": ["owner"]}})
    doc = stored(make("Doc", owner=user(OWNER), ACL={"role:Team": {"read": True}}))
    assert [name for name, p in CALLERS.items() if access(p).can_read(doc)] == ["master", "reader"]


@pytest.mark.parametrize(("groups", "own", "other"), GROUPS.values(), ids=GROUPS)
def test_a_protected_field_is_shown_only_to_permitted_callers(docs, groups, own, other):
    permit("Doc", **PUBLIC, protectedFields=groups)
    objects = {which: stored(doc) for which, doc in docs.items()}
    for caller, principal in CALLERS.items():
        observed = access(principal)
        assert ("secret" in observed.redact(objects["own"])) == (caller in own), caller
        assert ("secret" in observed.redact(objects["other"])) == (caller in other), caller
        page = observed.redact(objects["own"])
        assert page.keys() | set(SECRET) == objects["own"].keys()
    assert all("secret" in obj for obj in objects.values()), "what is stored stays as it is"


@pytest.mark.parametrize("where", [q["where"] for q in QUESTIONS.values() if "where" in q], ids=str)
def test_no_query_reveals_a_protected_field(docs, where):
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET})
    for caller, principal in CALLERS.items():
        if caller not in MASTERS:
            with pytest.raises(ServiceError) as refused:
                access(principal, **where)
            assert refused.value.code in (119, 102), caller


@pytest.mark.parametrize("watch", [["secret"], ["name", "secret.word"], ["secret.0"]])
def test_watching_a_protected_field_is_rejected(docs, watch):
    permit("Doc", **PUBLIC, protectedFields={"*": SECRET, "userField:owner": []})
    for caller, principal in CALLERS.items():
        got = outcome(lambda p=principal: access(p, watch=watch))
        assert got == (YES if caller in MASTERS else NO), caller
        assert outcome(lambda p=principal: access(p, watch=["name"])) == YES


def test_a_query_by_a_field_that_some_objects_hide_is_rejected(docs):
    permit("Doc", **PUBLIC, protectedFields={"userField:owner": SECRET})
    assert outcome(lambda: access(OWNER, **{"secret.word": "s"})) == NO
    assert outcome(lambda: access(OWNER, watch=["secret"])) == NO
    assert outcome(lambda: access(CALLERS["client"], **{"secret.word": "s"})) == YES


def test_internal_classes_are_closed_regardless_of_their_permissions():
    for class_name in ("_Hooks", "_JobStatus", "_GlobalConfig", "_Idempotency"):
        stored_or_named(class_name)
        permit(class_name, **PUBLIC)
        for caller, principal in CALLERS.items():
            got = outcome(lambda p=principal, c=class_name: access(p, c))
            assert got == (YES if caller in MASTERS else NO), (caller, class_name)


def test_users_subscribe_to_their_own_sessions_and_never_to_installations():
    for caller, principal in CALLERS.items():
        got = outcome(lambda p=principal: access(p, "_Installation"))
        assert got == (YES if caller in MASTERS else NO), caller
        expected = "InvalidSessionToken" if caller == "client" else YES
        assert outcome(lambda p=principal: access(p, "_Session")) == expected, caller
    mine = {"objectId": "s1", "user": user(OWNER)}
    shown = [
        name
        for name, p in CALLERS.items()
        if name != "client" and access(p, "_Session").can_read(mine)
    ]
    assert shown == ["master", "reader", "owner"]


def test_an_account_shows_its_email_only_to_its_user_and_its_providers_to_nobody():
    account = {"objectId": OWNER.user_id, "username": "o", "email": "o@x", "authData": {"a": {}}}
    for caller, principal in CALLERS.items():
        shown = access(principal, "_User").redact(account).keys()
        expected = {"email"} if caller in MASTERS | {"owner"} else set()
        assert shown & {"email", "authData"} == expected, caller
        got = outcome(lambda p=principal: access(p, "_User", email="o@x"))
        assert got == (YES if caller in MASTERS else NO), caller


def test_a_rejection_says_that_logging_in_is_required(docs):
    permit("Doc", **PUBLIC | {"find": {"requiresAuthentication": True}})
    assert outcome(lambda: access(CALLERS["client"])) == LOGIN


@pytest.mark.parametrize(
    "where",
    [
        {"to": {"$inQuery": {"className": "Other", "where": {}}}},
        {"to": {"$notInQuery": {"className": "Other", "where": {}}}},
        {"name": {"$select": {"query": {"className": "Other"}, "key": "a"}}},
        {"name": {"$dontSelect": {"query": {"className": "Other"}, "key": "a"}}},
        {"$or": [{"a": 1}, {"to": {"$inQuery": {"className": "Other", "where": {}}}}]},
        {
            "$relatedTo": {
                "object": {"__type": "Pointer", "className": "Ref", "objectId": "abcdefghij"},
                "key": "docs",
            }
        },
        {"$text": {"$search": {"$term": "run", "$language": "english"}}},
        {"friends": pointer("Friend", "abcdefghij")},
        {"friends": {"$exists": True}},
    ],
    ids=str,
)
def test_a_query_that_one_object_cannot_decide_is_rejected(docs, where):
    adding = {"__op": "AddRelation", "objects": [pointer("Friend", make("Friend"))]}
    make("Doc", friends=adding)
    for principal in CALLERS.values():
        with pytest.raises(InvalidQuery) as refused:
            access(principal, **where)
        assert "where" in refused.value.message or "$text" in refused.value.message

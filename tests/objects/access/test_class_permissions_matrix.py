"""Permissions of classes: every caller, every action, on every way."""

from __future__ import annotations

import pytest

from backend.kernel.principal import MASTER
from objects import service
from objects.service import classes
from tests.objects.access.tables import NO, OWN, PUBLIC, RULES, YES, may, may_make, may_write
from tests.objects.access.world import (
    CALLERS,
    OWNER,
    Place,
    count,
    find,
    get,
    make,
    outcome,
    permit,
    stored_or_named,
    user,
)

pytestmark = pytest.mark.django_db

rules = pytest.mark.parametrize(("rule", "expected"), RULES.values(), ids=RULES)


@pytest.fixture
def docs():
    """A document that names the owner in two fields, and one that names no user."""
    fields = {"owner": user(OWNER), "team": [user(OWNER)], "tags": ["t"]}
    return {"own": make("Doc", name="own", **fields), "other": make("Doc", name="other")}


@rules
def test_find(docs, rule, expected):
    permit("Doc", **PUBLIC | {"find": rule})
    for caller, principal in CALLERS.items():
        got = outcome(lambda p=principal: find(p, "Doc"))
        access = may(caller, expected, "own")
        assert got == (YES if access == "not found" else access), caller
        if got == YES:
            names = {obj["name"] for obj in find(principal, "Doc")}
            assert names == {w for w in docs if may(caller, expected, w) == YES}, caller


@rules
def test_count(docs, rule, expected):
    permit("Doc", **PUBLIC | {"count": rule})
    for caller, principal in CALLERS.items():
        got = outcome(lambda p=principal: count(p, "Doc"))
        access = may(caller, expected, "own")
        assert got == (YES if access == "not found" else access), caller
        if got == YES:
            readable = sum(may(caller, expected, which) == YES for which in docs)
            assert count(principal, "Doc") == readable, caller


@rules
def test_get(docs, rule, expected):
    permit("Doc", **PUBLIC | {"get": rule})
    for caller, principal in CALLERS.items():
        for which, doc in docs.items():
            got = outcome(lambda p=principal, d=doc: get(p, "Doc", d))
            assert got == may(caller, expected, which), (caller, which)


@rules
@pytest.mark.parametrize("action", ["update", "delete"])
def test_update_and_delete(docs, rule, expected, action):
    permit("Doc", **PUBLIC | {action: rule})
    for caller, principal in CALLERS.items():
        for which, doc in docs.items():
            if action == "update":
                got = outcome(lambda p=principal, d=doc: service.update(p, "Doc", d, {"n": None}))
            elif may(caller, expected, which) == YES:
                continue  # deleted objects can't be read again
            else:
                got = outcome(lambda p=principal, d=doc: service.delete(p, "Doc", d))
            assert got == may_write(caller, expected, which), caller
    if action == "delete" and expected["owner"] in (YES, OWN):
        assert outcome(lambda: service.delete(OWNER, "Doc", docs["own"])) == YES


@rules
def test_create_can_not_go_through_the_fields_of_the_new_object(docs, rule, expected):
    permit("Doc", **PUBLIC | {"create": rule})
    for caller, principal in CALLERS.items():
        got = outcome(lambda p=principal: service.create(p, "Doc", {"owner": user(OWNER)}))
        assert got == may_make(caller, expected), caller


@rules
def test_adding_a_field(docs, rule, expected):
    permit("Doc", **PUBLIC | {"addField": rule})
    for number, (caller, principal) in enumerate(CALLERS.items()):
        for which, doc in docs.items():
            body = {f"new{number}{which}": 1}
            got = outcome(lambda p=principal, d=doc, b=body: service.update(p, "Doc", d, b))
            assert got == may_write(caller, expected, which), caller
        got = outcome(lambda p=principal, n=number: service.create(p, "Doc", {f"made{n}": 1}))
        assert got == may_make(caller, expected), caller


@rules
def test_every_way_to_an_object_of_the_class(rule, expected):
    """Including, sub-queries, relations, redirects: under the rights of the class they lead to."""
    place = Place(owner=user(OWNER), team=[user(OWNER)])
    permit("Doc", **dict.fromkeys(PUBLIC, rule))
    for caller, principal in CALLERS.items():
        for way in place.ways():
            met = way.meets(principal)
            assert met == (may(caller, expected, "own") == YES), (caller, way.name)


@pytest.mark.parametrize(
    ("fields", "reads", "writes"),
    [
        ({"readUserFields": ["owner"]}, True, False),
        ({"writeUserFields": ["owner"]}, False, True),
        ({"readUserFields": ["team"], "writeUserFields": ["team"]}, True, True),
    ],
)
def test_user_fields_open_all_reads_or_all_writes(docs, fields, reads, writes):
    permit("Doc", **fields)
    for caller in ("owner", "member", "stranger", "client"):
        principal = CALLERS[caller]
        results = outcome(lambda p=principal: find(p, "Doc"))
        assert results == (YES if reads else NO)
        if reads:
            names = [obj["name"] for obj in find(principal, "Doc")]
            assert names == (["own"] if caller == "owner" else [])
            assert count(principal, "Doc") == len(names)
        for which, doc in docs.items():
            mine = caller == "owner" and which == "own"
            change = outcome(
                lambda p=principal, d=doc, w=which: service.update(p, "Doc", d, {"name": w})
            )
            assert change == ((YES if mine else "not found") if writes else NO), (caller, which)
        assert outcome(lambda p=principal: service.create(p, "Doc", {})) == NO


def test_pointer_permissions_and_access_lists_both_have_to_allow():
    make("Doc", owner=user(OWNER), ACL={"role:Team": {"read": True, "write": True}})
    permit("Doc", **PUBLIC | {"find": {"pointerFields": ["owner"]}})
    assert find(OWNER, "Doc") == []
    assert find(CALLERS["member"], "Doc") == []
    assert len(find(MASTER, "Doc")) == 1


def test_classes_of_the_service_itself_are_closed_to_clients_whatever_their_permissions():
    for class_name in ("_Hooks", "_JobStatus", "_GlobalConfig", "_PushStatus", "_Audience"):
        doc = stored_or_named(class_name)
        permit(class_name, **PUBLIC)
        ref = make("Ref", to={"__type": "Pointer", "className": class_name, "objectId": doc})
        for caller in ("owner", "member", "stranger", "client"):
            principal = CALLERS[caller]
            assert outcome(lambda p=principal, c=class_name: find(p, c)) == NO
            assert outcome(lambda p=principal, c=class_name, d=doc: get(p, c, d)) == NO
            assert outcome(lambda p=principal, c=class_name: service.create(p, c, {})) == NO
            assert "to" not in get(principal, "Ref", ref, include="to")
            where = {"to": {"$inQuery": {"className": class_name, "where": {}}}}
            assert outcome(lambda p=principal, w=where: find(p, "Ref", where=w)) == NO
        service.delete(MASTER, "Ref", ref)
        classes.change(MASTER, "Ref", {"fields": {"to": {"__op": "Delete"}}})

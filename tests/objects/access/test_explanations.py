"""Explanations of decisions: they agree with the object service, for all callers and requests."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.kernel.errors import ServiceError
from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Principal
from objects import service, triggers
from objects.core.access.class_permissions import ACTIONS
from objects.core.query.options import FindLimits, parse_find_options
from objects.database import maintenance
from objects.definitions import registry
from objects.explanations.access import Explanation, explain
from objects.users import roles
from objects.users.accounts.impersonation import as_user
from tests.objects.access.tables import (
    GROUPS,
    LISTS,
    MEMBER_ID,
    OWNER_ID,
    PUBLIC,
    RULES,
    STRANGER_ID,
)
from tests.objects.access.world import (
    CALLERS,
    MEMBER,
    OWNER,
    STRANGER,
    find,
    get,
    make,
    permit,
    user,
)
from tests.people import make_role, sign_up

pytestmark = pytest.mark.django_db
OF_OBJECTS = ("get", "find", "count", "update", "delete", "addField")


class Undo(Exception):
    """Nothing of it shall stay."""


def really(principal: Principal, class_name: str, action: str, object_id: str | None) -> Any:
    """What the door does: ``yes``, ``no``, or the code and the text of its error."""
    try:
        with transaction.atomic():
            answer = _done(principal, class_name, action, object_id)
            raise Undo
    except ServiceError as error:
        return error.code, error.message
    except Undo:
        return "yes" if answer else "no"
    finally:
        registry.forget_outdated()


NEW: dict[str, dict[str, Any]] = {
    "_User": {"username": "new", "password": "a good one"},
    "_Role": {"name": "New", "ACL": {}},
    "_Installation": {"deviceType": "ios", "installationId": "new"},
}


def body_of_new(principal: Principal, class_name: str) -> dict[str, Any]:
    if class_name == "_Session" and principal.is_master:
        return {"user": user(OWNER)}
    return NEW.get(class_name, {})


def counted(principal: Principal, class_name: str, **where: Any) -> int:
    options = parse_find_options({"where": where}, FindLimits())
    return service.count(principal, class_name, options.where)


def _done(principal: Principal, class_name: str, action: str, object_id: str | None) -> bool:
    if action == "create" or object_id is None:
        if action in ("create", "addField"):
            new = {"new": 1} if action == "addField" else {}
            service.create(principal, class_name, body_of_new(principal, class_name) | new)
        elif action == "find":
            find(principal, class_name)
        else:
            counted(principal, class_name)
        return True
    if action == "get":
        return bool(get(principal, class_name, object_id))
    if action == "find":
        # By a condition on the id: by the id alone is a get.
        return bool(find(principal, class_name, where={"objectId": {"$in": [object_id]}}))
    if action == "count":
        return counted(principal, class_name, objectId=object_id) == 1
    if action == "delete":
        service.delete(principal, class_name, object_id)
    else:
        field = "new" if action == "addField" else "note"
        service.update(principal, class_name, object_id, {field: 1})
    return True


def explained(explanation: Explanation) -> Any:
    """The same, as an explanation has it."""
    if explanation.error is not None:
        assert explanation.verdict == "no"
        return explanation.error.code, explanation.error.message
    return explanation.verdict


def agrees(principal: Principal, class_name: str, action: Any, object_id: str | None) -> None:
    explanation = explain(principal, class_name, action, object_id)
    got = really(principal, class_name, action, object_id)
    about = (principal, class_name, action, object_id, explanation)
    expected = explained(explanation)
    assert got == ("yes" if expected == "depends" else expected), about
    assert explanation.decided in explanation.steps, about
    assert explanation.decided.verdict == explanation.verdict, about
    if action == "get" and got == "yes" and object_id is not None:
        stored = get(MASTER, class_name, object_id)
        shown = get(principal, class_name, object_id)
        hidden = {item.name for item in explanation.hidden}
        assert stored.keys() - shown.keys() == hidden & stored.keys(), about
        assert all(item.groups for item in explanation.hidden), about


@pytest.fixture
def docs() -> dict[str, str]:
    """A document that names the owner in two fields, and one that names no user."""
    fields = {"owner": user(OWNER), "team": [user(OWNER)], "note": 0, "secret": 1}
    return {"own": make("Doc", **fields), "other": make("Doc", note=0, secret=1)}


@pytest.mark.parametrize("rule", [item for item, _ in RULES.values()], ids=RULES)
def test_rules_of_classes(docs, rule):
    for action in ACTIONS:
        permit("Doc", **PUBLIC | {action: rule})
        for principal in CALLERS.values():
            agrees(principal, "Doc", action, None if action in ("create", "find") else docs["own"])
            if action in OF_OBJECTS:
                agrees(principal, "Doc", action, docs["other"])
    permit("Doc", **dict.fromkeys(PUBLIC, rule))
    for principal in CALLERS.values():
        agrees(principal, "Doc", "addField", docs["own"])
        agrees(principal, "Doc", "addField", None)


@pytest.mark.parametrize("acl", [item for item, _, _ in LISTS.values()], ids=LISTS)
def test_access_lists(acl):
    doc = make("Doc", note=0, **({} if acl is None else {"ACL": acl}))
    for principal in CALLERS.values():
        for action in OF_OBJECTS:
            agrees(principal, "Doc", action, doc)


@pytest.mark.parametrize("groups", [item for item, _, _ in GROUPS.values()], ids=GROUPS)
def test_protected_fields(docs, groups):
    permit("Doc", **PUBLIC, protectedFields=groups)
    for principal in CALLERS.values():
        for doc in docs.values():
            agrees(principal, "Doc", "get", doc)


@pytest.mark.parametrize("class_name", ["_User", "_Session", "_Role", "_Installation", "_Hooks"])
def test_classes_of_people_and_of_the_service(class_name, settings):
    ann = sign_up("ann", email="ann@example.org", note=0)
    bob = sign_up("bob", ACL={"*": {"read": True, "write": True}}, note=0)
    make("_Installation", deviceType="ios", installationId="one", note=0)
    make("_Role", name="Some", ACL={"*": {"read": True, "write": True}}, note=0)
    make("_Hooks", note=0)
    service.create(MASTER, "_Session", {"user": ann.pointer, "note": 0})
    ids = [obj["objectId"] for obj in find(MASTER, class_name)]
    assert ids
    callers = [MASTER, READ_ONLY_MASTER, CLIENT, as_user(ann.user_id)[0], as_user(bob.user_id)[0]]
    for principal in callers:
        for object_id in ids:
            for action in OF_OBJECTS:
                agrees(principal, class_name, action, object_id)
        for action in ("find", "count", "create", "addField"):
            agrees(principal, class_name, action, None)


@pytest.mark.parametrize("clients_may_create", [True, False])
def test_classes_and_objects_that_are_not_there(docs, settings, clients_may_create):
    settings.SERVICE = {
        **settings.SERVICE,
        "ALLOW_CLIENT_CLASS_CREATION": clients_may_create,
    }
    for principal in CALLERS.values():
        for class_name in ("Missing", "no name", "_Missing", "x" * 200, ""):
            for action in ("find", "count", "create"):
                agrees(principal, class_name, action, None)
            for action in ("get", "update", "delete"):
                agrees(principal, class_name, action, docs["own"])
        for object_id in ("missing000", "no id", "x" * 300, "\x00"):
            for action in ("get", "update", "delete", "addField"):
                agrees(principal, "Doc", action, object_id)


# -- Everything at once, by chance ----------------------------------------------------------------

_ENTITIES = ("*", OWNER_ID, MEMBER_ID, "role:Team", "role:Other", "requiresAuthentication")
_RULES = st.builds(
    lambda entities, fields: {
        **dict.fromkeys(entities, True),
        **({"pointerFields": fields} if fields else {}),
    },
    st.sets(st.sampled_from(_ENTITIES), max_size=2),
    st.lists(st.sampled_from(["owner", "team"]), unique=True, max_size=2),
)
_USER_FIELDS = st.lists(st.sampled_from(["owner", "team"]), unique=True, max_size=1)
_PERMISSIONS = st.fixed_dictionaries(
    dict.fromkeys(ACTIONS, _RULES),
    optional={
        "readUserFields": _USER_FIELDS,
        "writeUserFields": _USER_FIELDS,
        "protectedFields": st.dictionaries(
            st.sampled_from(("*", "authenticated", OWNER_ID, "role:Team", "userField:owner")),
            st.lists(st.sampled_from(["secret", "note"]), unique=True),
            max_size=3,
        ),
    },
)
_RIGHTS = st.sampled_from([{"read": True}, {"write": True}, {"read": True, "write": True}])
_ACLS = st.none() | st.dictionaries(st.sampled_from(_ENTITIES[:5]), _RIGHTS, max_size=2)
_NAMED = st.sampled_from([None, OWNER, MEMBER])


@given(
    permissions=_PERMISSIONS,
    acl=_ACLS,
    owner=_NAMED,
    team=st.lists(st.sampled_from([OWNER, MEMBER]), max_size=2),
    principal=st.sampled_from([OWNER, MEMBER, STRANGER, CLIENT, MASTER, READ_ONLY_MASTER]),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_an_explanation_agrees_with_the_door(docs, permissions, acl, owner, team, principal):
    doc = make(
        "Doc",
        note=0,
        secret=1,
        team=[user(item) for item in team],
        **({} if owner is None else {"owner": user(owner)}),
        **({} if acl is None else {"ACL": acl}),
    )
    permit("Doc", **permissions)
    for action in OF_OBJECTS:
        agrees(principal, "Doc", action, doc)
    for action in ("find", "count", "create", "addField"):
        agrees(principal, "Doc", action, None)


# -- What is said ---------------------------------------------------------------------------------


def decided(principal: Principal, action: Any, object_id: str | None = None) -> tuple[str, str]:
    """The rule on which it hangs, and all that is said about it."""
    step = explain(principal, "Doc", action, object_id).decided
    return step.rule, " ".join((step.text, *step.details))


def test_the_rule_that_decided_is_named(docs):
    assert decided(CLIENT, "find") == (
        "access list",
        "Its access list says who reads an object.",
    )
    permit("Doc", **PUBLIC | {"get": {"role:Team": True, OWNER_ID: True}})
    rule, text = decided(STRANGER, "get", docs["own"])
    assert rule == "class permissions"
    assert text == (
        f"get names {OWNER_ID}, role:Team: it is refused to the caller."
        f" The caller is the user {STRANGER_ID}."
    )
    assert decided(OWNER, "get", docs["own"]) == (
        "class permissions",
        f"get names this user ({OWNER_ID}).",
    )
    permit("Doc", **PUBLIC | {"get": {"requiresAuthentication": True}})
    assert "is for logged-in users" in decided(CLIENT, "get", docs["own"])[1]
    permit("Doc", **PUBLIC | {"update": {"pointerFields": ["owner"]}})
    assert decided(OWNER, "update", docs["own"])[1].endswith("It names this user in owner.")
    rule, text = decided(OWNER, "update", docs["other"])
    assert rule == "pointer permissions"
    assert text.endswith("It doesn't name this user.")
    assert decided(MASTER, "update", docs["other"])[0] == "master key"
    assert decided(READ_ONLY_MASTER, "update", docs["other"])[0] == "read-only master key"
    assert decided(OWNER, "get", "missing000")[0] == "object"


def test_the_entry_of_the_access_list_and_the_way_to_the_role_are_named(master):
    ann = sign_up("ann")
    inner = make_role(master, "Inner", [ann])
    middle = make_role(master, "Middle", roles=[inner])
    make_role(master, "Team", roles=[middle])
    doc = make("Doc", ACL={"role:Team": {"read": True}})
    rule, text = decided(as_user(ann.user_id)[0], "get", doc)
    assert rule == "access list"
    assert text == (
        "The access list lets role:Team read."
        " role:Team is held through Inner → Middle → Team: Inner has the user among its users."
    )
    assert decided(as_user(ann.user_id)[0], "update", doc)[1].startswith(
        "The access list lets nobody write but the master key."
    )
    assert "lets role:Team read, and not the caller" in decided(CLIENT, "get", doc)[1]


def test_who_hides_a_field_is_named(docs):
    permit("Doc", **PUBLIC, protectedFields={"*": ["secret"], "authenticated": ["secret", "note"]})
    hidden = explain(STRANGER, "Doc", "get", docs["own"]).hidden
    assert [(item.name, item.groups) for item in hidden] == [("secret", ("*", "authenticated"))]


@pytest.mark.django_db(transaction=True)
def test_in_maintenance_mode_every_write_is_refused_by_it_and_no_read():
    registry.forget_all()
    doc = make("Doc", note=0, ACL={OWNER_ID: {"read": True, "write": True}})
    maintenance.on()
    try:
        for principal in CALLERS.values():
            for action in (*OF_OBJECTS, "create"):
                agrees(principal, "Doc", action, doc)
        assert decided(MASTER, "update", doc)[0] == "maintenance"
        assert decided(CLIENT, "create")[0] == "maintenance"
    finally:
        maintenance.off()


def test_triggers_that_have_a_say_are_named(docs):
    def nothing(occasion: triggers.Occasion) -> None:
        pass

    triggers.register("before_save", "Doc", nothing)
    triggers.register("after_find", "Doc", nothing)
    try:
        assert explain(CLIENT, "Doc", "update", docs["own"]).triggers == ("before_save",)
        assert explain(CLIENT, "Doc", "delete", docs["own"]).triggers == ()
        assert explain(CLIENT, "Doc", "find").triggers == ("after_find",)
    finally:
        triggers.unregister("before_save", "Doc", nothing)
        triggers.unregister("after_find", "Doc", nothing)


def test_there_is_a_way_to_every_role_that_is_held_and_to_no_other(master):
    people = [sign_up(name) for name in ("ann", "bob", "eve")]
    ids = [make_role(master, "R0", [people[0]])]
    for number in range(1, 6):
        inside = [ids[number - 1], *([ids[number - 2]] if number > 1 else [])]
        named = [people[1]] if number == 3 else []
        ids.append(make_role(master, f"R{number}", named, roles=inside))
    back = {
        "__op": "AddRelation",
        "objects": [{"__type": "Pointer", "className": "_Role", "objectId": ids[5]}],
    }
    master.put(f"/roles/{ids[2]}", {"roles": back})
    for item in people:
        ways = roles.paths(item.user_id)
        held = roles.held_by(item.user_id, "no version")
        roles.forget_all()
        assert ways.keys() == held
        assert all(way[-1] == name for name, way in ways.items())
    assert roles.paths(people[0].user_id)["R4"] == ("R0", "R2", "R4")
    assert roles.paths(people[1].user_id)["R3"] == ("R3",)

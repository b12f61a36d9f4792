"""Access lists and class permissions: what they may look like and whom they let in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.kernel.errors import InvalidACL, InvalidJSON
from objects.core.access.acl import (
    Acl,
    Allowed,
    AllowedThrough,
    Denied,
    NeedsAuthentication,
    decide,
    default_acl,
    parse_acl,
    protected_fields,
    protecting_user_fields,
)
from objects.core.access.class_permissions import (
    ACTIONS,
    NOBODY,
    PUBLIC,
    default_permissions,
    parse_permissions,
)
from objects.core.names import is_role_name
from objects.core.query.operators.access_lists import ReadableBy, WritableBy
from objects.core.query.predicate import matches

ANYONE = ["*"]
ALICE = ["*", "alice"]
BOB = ["*", "bob", "role:Admin"]


def permissions(**wire):
    return parse_permissions(wire, {"owner", "editors"}, {"owner", "editors", "a", "b", "c"})


def test_an_access_list_is_kept_as_two_lists_of_ids():
    acl = parse_acl(
        {
            "*": {"read": True},
            "u1": {"read": True, "write": True},
            "role:Site Admin": {"write": True},
        }
    )
    assert acl == Acl(("*", "u1"), ("role:Site Admin", "u1"))


def is_allowed(acl, caller, node):
    return matches(node(frozenset(caller)), {"ACL": acl})


def test_no_access_list_is_everyone_and_an_empty_one_is_no_one():
    assert parse_acl(None) == Acl(None, None)
    assert is_allowed(None, ANYONE, ReadableBy)
    assert is_allowed(None, ANYONE, WritableBy)
    assert parse_acl({}) == Acl((), ())
    assert not is_allowed({}, BOB, ReadableBy)
    assert parse_acl({}).to_wire() == {}
    assert parse_acl(None).to_wire() is None


def test_what_is_not_granted_is_dropped():
    assert parse_acl({"u1": {"read": False}, "u2": {}, "u3": {"read": True, "write": False}}) == (
        Acl(("u3",), ())
    )


@pytest.mark.parametrize(
    "acl",
    [
        "x", 5, [], True,
        {"*": {"read": "x"}}, {"*": {"read": 1}}, {"*": {"read": None}}, {"*": True},
        {"*": {"Read": True}}, {"*": {"read": True, "admin": True}},
        {"role:": {"read": True}}, {"role:a/b": {"read": True}}, {"role:*": {"read": True}},
        {"": {"read": True}}, {"a:b": {"read": True}}, {"*unresolved": {"read": True}},
        {"a b": {"read": True}}, {"**": {"read": True}}, {"\x00": {"read": True}},
    ],
)  # fmt: skip
def test_a_malformed_access_list_is_refused(acl):
    with pytest.raises(InvalidACL, match=r"Invalid ACL\. ACL"):
        parse_acl(acl)


entities = st.sampled_from(["*", "u1", "u2", "role:A", "role:B b"])


@given(st.dictionaries(entities, st.fixed_dictionaries({}, optional={
    "read": st.booleans(), "write": st.booleans()})), st.sets(entities))  # fmt: skip
def test_an_access_list_lets_in_those_whom_it_names(wire, caller):
    acl = parse_acl(wire)
    granted = {
        entity: {name: True for name, value in entry.items() if value}
        for entity, entry in wire.items()
    }
    assert acl.to_wire() == {entity: entry for entity, entry in granted.items() if entry}
    assert parse_acl(acl.to_wire()) == acl
    for permission, node in (("read", ReadableBy), ("write", WritableBy)):
        assert is_allowed(wire, caller, node) == any(
            permission in granted.get(entity, {}) for entity in caller
        )


@pytest.mark.parametrize("action", ACTIONS)
def test_without_permissions_everyone_may_do_everything(action):
    assert decide(PUBLIC, action, ANYONE, False) == Allowed()


@pytest.mark.parametrize("action", ACTIONS)
def test_once_permissions_are_set_what_they_do_not_name_is_for_the_master_key(action):
    for ids, is_authenticated in ((ANYONE, False), (ALICE, True), (BOB, True)):
        assert decide(permissions(), action, ids, is_authenticated) == Denied()


@pytest.mark.parametrize("action", ACTIONS)
def test_users_and_roles_are_let_in_by_name(action):
    rules = permissions(**{action: {"alice": True, "role:Admin": True}})
    assert decide(rules, action, ANYONE, False) == Denied()
    assert decide(rules, action, ALICE, True) == Allowed()
    assert decide(rules, action, BOB, True) == Allowed()
    assert decide(rules, action, ["*", "carol", "role:Other"], True) == Denied()


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_may_need_a_user(action):
    rules = permissions(**{action: {"requiresAuthentication": True}})
    assert decide(rules, action, ANYONE, False) == NeedsAuthentication()
    assert decide(rules, action, ALICE, True) == Allowed()


@pytest.mark.parametrize("action", ACTIONS)
def test_fields_restrict_those_who_are_logged_in(action):
    rule = {"requiresAuthentication": True, "pointerFields": ["owner"], "role:Admin": True}
    rules = permissions(**{action: rule})
    through = Allowed() if action == "create" else AllowedThrough(("owner",))
    assert decide(rules, action, ANYONE, False) == NeedsAuthentication()
    assert decide(rules, action, ALICE, True) == through
    assert decide(rules, action, BOB, True) == Allowed()
    everybody = permissions(**{action: {"*": True, "pointerFields": ["owner"]}})
    assert decide(everybody, action, ANYONE, False) == Allowed()


ids = st.sampled_from(["*", "alice", "role:Admin", "requiresAuthentication"])
fields = st.lists(st.sampled_from(["owner", "editors"]), unique=True)


@given(st.sampled_from(ACTIONS), st.sets(ids), fields, fields, fields, st.booleans(),
       st.sampled_from([ANYONE, ALICE, BOB]))  # fmt: skip
def test_every_rule_is_decided_as_parse_does(
    action, keys, pointers, readers, writers, creating, caller
):
    """The rules one by one, in the order in which Parse asks them."""
    rules = permissions(
        **{action: {**dict.fromkeys(keys, True), "pointerFields": pointers}},
        readUserFields=readers,
        writeUserFields=writers,
    )
    is_user = len(caller) > 1
    decision = decide(rules, action, caller, is_user, creating=creating)
    is_read = action in ("find", "get", "count")
    naming = {*pointers, *(readers if is_read else writers)}
    if keys & set(caller):
        assert decision == Allowed()
    elif "requiresAuthentication" in keys and not is_user:
        assert decision == NeedsAuthentication()
    elif naming and action != "create" and not creating:
        assert isinstance(decision, AllowedThrough)
        assert set(decision.pointer_fields) == naming
    elif "requiresAuthentication" in keys:
        assert decision == Allowed()
    else:
        assert decision == Denied()


@pytest.mark.parametrize("action", ["find", "get", "count", "update", "delete", "addField"])
def test_fields_may_name_those_who_may(action):
    rules = permissions(**{action: {"pointerFields": ["owner", "editors"], "role:Admin": True}})
    assert decide(rules, action, ALICE, True) == AllowedThrough(("owner", "editors"))
    assert decide(rules, action, BOB, True) == Allowed()


def test_a_new_object_is_not_reached_through_its_own_fields():
    rules = permissions(
        create={"pointerFields": ["owner"]},
        addField={"pointerFields": ["owner"]},
        writeUserFields=["owner"],
    )
    assert decide(rules, "create", ALICE, True) == Denied()
    assert decide(rules, "addField", ALICE, True, creating=True) == Denied()
    assert decide(rules, "addField", ALICE, True) == AllowedThrough(("owner",))


def test_user_fields_cover_all_reads_or_all_writes():
    rules = permissions(readUserFields=["owner"], writeUserFields=["editors"])
    for action in ("find", "get", "count"):
        assert decide(rules, action, ALICE, True) == AllowedThrough(("owner",))
    for action in ("update", "delete"):
        assert decide(rules, action, ALICE, True) == AllowedThrough(("editors",))
    assert decide(rules, "create", ALICE, True) == Denied()


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ({"found": {"*": True}}, "found is not a valid operation for class level permissions"),
        ({"find": True}, "not a valid value for class level permissions find - must be an object"),
        ({"find": []}, "must be an object"),
        ({"find": {"*": False}}, r"'false' is not a valid value for .* acl find:\*$"),
        ({"find": {"*": 1}}, "not a valid value"),
        ({"find": {"*": None}}, "'null' is not a valid value"),
        ({"find": {"*": {"x": True}}}, r"'\[object Object\]' is not a valid value"),
        ({"find": {"a b": True}}, "'a b' is not a valid key for class level permissions"),
        ({"find": {"role:": True}}, "not a valid key"),
        ({"find": {"requiresAuthentication": False}}, "not a valid value"),
        (
            {"find": {"pointerFields": "owner"}},
            r"value for find\[pointerFields\] - expected an array",
        ),
        ({"find": {"pointerFields": ["a"]}}, "'a' is not a valid column for class level pointer"),
        ({"find": {"pointerFields": [5]}}, "not a valid column"),
        ({"readUserFields": True}, "'true' .* permissions readUserFields - must be an array"),
        ({"writeUserFields": ["zz"]}, "'zz' is not a valid column"),
        ({"protectedFields": []}, "must be an object"),
        ({"protectedFields": {"*": "a"}}, r"not a valid value for protectedFields\[\*\]"),
        ({"protectedFields": {"*": ["zz"]}}, r"Field 'zz' in protectedFields:\* does not exist"),
        ({"protectedFields": {"*": ["objectId"]}}, "Default field 'objectId' can not be protected"),
        ({"protectedFields": {"a b": ["a"]}}, "not a valid key"),
        ({"protectedFields": {"userField:a b": ["a"]}}, "not a valid key"),
        ({"ACL": {"*": True}}, "not a valid value for class level permissions acl"),
        ({"ACL": {"*": {"read": "x"}}}, "not a valid value for class level permissions acl"),
        (
            {"ACL": {"*": {"admin": True}}},
            "'admin' is not a valid key for class level permissions acl",
        ),
        ({"ACL": {"*": {"read": None}}}, "'' is not a valid value for class level permissions acl"),
        ({"ACL": {"a b": {"read": True}}}, "not a valid key"),
    ],
)
def test_malformed_permissions_are_refused(wire, message):
    with pytest.raises(InvalidJSON, match=message):
        permissions(**wire)


@pytest.mark.parametrize("key", ["u_1", "a-b", "a.b@c", "_x"])
def test_user_ids_are_letters_and_digits_unless_clients_choose_them(key):
    for wire in ({"find": {key: True}}, {"protectedFields": {key: []}}, {"ACL": {key: {}}}):
        parse_permissions(wire, set(), set())
        with pytest.raises(InvalidJSON, match=f"'{key}' is not a valid key for class level perm"):
            parse_permissions(wire, set(), set(), custom_ids=False)
    for other in ("*", "role:Site-Admin 2", "requiresAuthentication", "abcDEF123"):
        parse_permissions({"find": {other: True}}, set(), set(), custom_ids=False)


def test_a_group_may_be_named_by_a_field_that_is_not_there_yet():
    wire = {"protectedFields": {"*": ["a"], "userField:later": []}}
    assert protected_fields(permissions(**wire), ["*"]) == {"a"}
    assert protecting_user_fields(permissions(**wire)) == ("later",)


def test_permissions_are_shown_as_they_were_set():
    wire = {
        "find": {"*": True, "requiresAuthentication": True},
        "get": {"alice": True, "role:Admin": True, "pointerFields": ["owner"]},
        "count": {}, "create": {}, "update": {}, "delete": {}, "addField": {},
        "readUserFields": ["owner"],
        "writeUserFields": ["editors"],
        "protectedFields": {"*": ["a", "b"], "userField:owner": [], "authenticated": ["a"]},
        "ACL": {"currentUser": {"read": True, "write": True}, "role:Admin": {"read": True}},
    }  # fmt: skip
    assert permissions(**wire).to_wire() == wire
    assert permissions(**permissions(**wire).to_wire()) == permissions(**wire)


def test_a_field_is_hidden_if_all_of_the_groups_hide_it():
    rules = permissions(
        protectedFields={
            "*": ["a", "b", "c"],
            "authenticated": ["a", "b"],
            "role:Admin": ["a"],
            "alice": ["b"],
            "userField:owner": [],
        }
    )
    assert protected_fields(rules, ["*"]) == {"a", "b", "c"}
    assert protected_fields(rules, ["*", "authenticated", "carol"]) == {"a", "b"}
    assert protected_fields(rules, ["*", "authenticated", "bob", "role:Admin"]) == {"a"}
    assert protected_fields(rules, ["*", "authenticated", "alice"]) == {"b"}
    assert protected_fields(rules, ["*", "authenticated", "x", "userField:owner"]) == frozenset()
    assert protected_fields(rules, []) == frozenset()
    assert protecting_user_fields(rules) == ("owner",)


def test_groups_that_the_class_says_nothing_about_hide_and_show_nothing():
    rules = permissions(protectedFields={"role:Admin": ["a"]})
    assert protected_fields(rules, ["*"]) == frozenset()
    assert protected_fields(rules, ["*", "role:Admin"]) == {"a"}


def test_mail_addresses_of_users_are_hidden_by_default():
    assert protected_fields(default_permissions("_User"), ["*", "authenticated"]) == {"email"}
    assert protected_fields(default_permissions("Game"), ["*"]) == frozenset()


@pytest.mark.parametrize(
    ("wire", "hidden"),
    [
        ({"find": {"*": True}}, {"email"}),
        ({"protectedFields": {}}, {"email"}),
        ({"protectedFields": {"role:Admin": []}}, {"email"}),
        ({"protectedFields": {"*": []}}, {"email"}),
        ({"protectedFields": {"*": ["phone"]}}, {"email", "phone"}),
    ],
)
def test_what_a_class_hides_by_itself_stays_hidden_until_the_group_is_named(wire, hidden):
    rules = parse_permissions(wire, [], ["email", "phone"], default_permissions("_User"))
    assert protected_fields(rules, ["*"]) == hidden
    assert protected_fields(rules, ["*", "role:Admin"]) == (
        set() if "role:Admin" in str(wire) else hidden
    )
    again = parse_permissions(rules.to_wire(), [], ["email", "phone"], default_permissions("_User"))
    assert again == rules


def test_permissions_forget_the_fields_that_a_class_loses():
    rules = permissions(
        find={"pointerFields": ["owner"]},
        readUserFields=["owner"],
        protectedFields={"*": ["a", "owner"], "userField:owner": [], "owner": ["a"]},
    ).without_fields(["owner"])
    assert rules.rules["find"] == NOBODY
    assert rules.read_user_fields == ()
    assert rules.protected_fields == {"*": {"a"}, "owner": {"a"}}


def test_roles_are_made_by_the_master_key_by_default():
    rules = default_permissions("_Role")
    for action in ("create", "addField"):
        assert decide(rules, action, ["*", "alice"], True) == Denied()
    for action in ("find", "get", "count", "update", "delete"):
        assert decide(rules, action, ["*"], False) == Allowed()


def test_a_class_may_have_an_access_list_for_new_objects():
    rules = permissions(ACL={"currentUser": {"read": True, "write": True}, "*": {"read": True}})
    assert default_acl(rules, "alice") == Acl(("*", "alice"), ("alice",))
    assert default_acl(rules, None) == Acl(("*",), ())
    assert default_acl(PUBLIC, "alice") == Acl(None, None)


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "é", "a\n", "*", "a" * 129])
def test_a_role_name_has_letters_digits_spaces_and_dashes_only(name):
    assert not is_role_name(name)
    assert is_role_name("Site-Admin 2_x")

"""Roles: what they are called, who writes them, who holds them, and from when on."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from django.db import transaction

from tests.people import PASSWORD, make_role, sign_up
from tests.rest import MASTER, Api
from tests.statements import traffic

READ = {"*": {"read": True}}


def adding(*members):
    return {"__op": "AddRelation", "objects": [member.pointer for member in members]}


def removing(*members):
    return {"__op": "RemoveRelation", "objects": [member.pointer for member in members]}


def role_pointers(*role_ids):
    return [
        {"__type": "Pointer", "className": "_Role", "objectId": role_id} for role_id in role_ids
    ]


def secret_of(role, master):
    """An object that members of the role alone may read."""
    return master.make("Secret", role=role, ACL={f"role:{role}": {"read": True}})


def reads(user, object_id):
    """Whether the user may read it, on every way alike."""
    got = user.get(f"/classes/Secret/{object_id}")
    results = user.results("Secret", where={"objectId": object_id})
    assert (got.status == 200) == bool(results)
    return bool(results)


# -- Names and lists ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Admins", "a", "Team 1", "a_b-c", "0", "x" * 128])
def test_a_role_has_a_name_of_letters_digits_dashes_and_spaces(master, name):
    reply = master.post("/roles", {"name": name, "ACL": READ})
    assert reply.status == 201
    assert reply.headers["Location"].endswith(f"/classes/_Role/{reply.json['objectId']}")
    assert master.get(f"/roles/{reply.json['objectId']}").json["name"] == name


@pytest.mark.parametrize(
    "name",
    ["", "a:b", "role:a", "*", "a.b", "a/b", "a\n", "Ä", "x" * 129, 5, {"__op": "Delete"}, ["a"]],
)
def test_no_other_name_is_taken(master, name):
    assert master.post("/roles", {"name": name, "ACL": READ}).error == (400, 139)
    assert master.post("/classes/_Role", {"name": name, "ACL": READ}).error == (400, 139)
    assert master.results("_Role") == []


@pytest.mark.parametrize("body", [{"ACL": READ}, {"name": None, "ACL": READ}])
def test_a_role_needs_a_name(master, body):
    reply = master.post("/roles", body)
    assert reply.error == (400, 111)
    assert reply.json["error"] == "name is required."


@pytest.mark.parametrize("acl", [{}, {"ACL": None}, {"ACL": {"__op": "Delete"}}, {"ACL": "x"}])
def test_a_role_needs_an_access_list(master, acl):
    reply = master.post("/roles", {"name": "Admins", **acl})
    assert reply.error == (400, 111)
    assert reply.json["error"] == "ACL is required."


@pytest.mark.parametrize("acl", [None, {"__op": "Delete"}])
def test_a_role_never_loses_its_access_list(master, client, acl):
    role = make_role(master, "Admins")
    assert master.put(f"/roles/{role}", {"ACL": acl}).error == (400, 111)
    ann = sign_up("ann")
    assert ann.put(f"/roles/{role}", {"users": adding(ann)}).error == (404, 101)


def test_a_name_is_given_once(master):
    make_role(master, "Admins")
    assert master.post("/roles", {"name": "Admins", "ACL": READ}).error == (400, 137)
    assert len(master.results("_Role")) == 1


def test_a_name_never_changes(master):
    role = make_role(master, "Admins")
    for name in ("Others", None, {"__op": "Delete"}, {"__op": "SetOnInsert", "amount": "x"}):
        assert master.put(f"/roles/{role}", {"name": name}).error == (400, 139)
    assert master.put(f"/roles/{role}", {"name": "Admins"}).status == 200
    assert master.get(f"/roles/{role}").json["name"] == "Admins"


# -- Who writes roles -----------------------------------------------------------------------------


def test_roles_are_made_by_the_master_key_unless_permissions_say_otherwise(master, client):
    ann = sign_up("ann")
    body = {"name": "ContractAdmin", "ACL": READ, "users": adding(ann)}
    for caller in (client, ann):
        for path in ("/roles", "/classes/_Role"):
            assert caller.post(path, body).error == (400, 119)
        request = {"method": "POST", "path": "/api/roles", "body": body}
        assert client.post("/batch", {"requests": [request]}).json[0]["error"]["code"] == 119
    assert master.results("_Role") == []
    permissions = master.get("/schemas/_Role").json["classLevelPermissions"]
    assert permissions["create"] == permissions["addField"] == {}
    permissions["create"] = {"requiresAuthentication": True}
    assert master.put("/schemas/_Role", {"classLevelPermissions": permissions}).status == 200
    assert client.post("/roles", body).error == (404, 101)
    assert ann.post("/roles", body).status == 201


def test_who_may_not_write_a_role_can_t_become_a_member(master, client):
    """5f92-jrq3-28rc: membership was written around the role's access list."""
    ann = sign_up("ann")
    secret = secret_of("Admins", master)
    role = make_role(master, "Admins")
    mine = make_role(master, "Mine", [ann])
    for body in (
        {"users": adding(ann)},
        {"roles": {"__op": "AddRelation", "objects": role_pointers(mine)}},
        {"users": {"__op": "Batch", "ops": [adding(ann)]}},
        {"ACL": {ann.user_id: {"write": True}}},
    ):
        for path in (f"/roles/{role}", f"/classes/_Role/{role}"):
            for caller in (ann, client):
                assert caller.put(path, body).error == (404, 101)
        request = {"method": "PUT", "path": f"/api/roles/{role}", "body": body}
        assert ann.post("/batch", {"requests": [request]}).json[0]["error"]["code"] == 101
    for method in ("GET", "POST"):
        for name in ("_Join:users:_Role", "_Join:roles:_Role"):
            row = {"owningId": role, "relatedId": ann.user_id} if method == "POST" else None
            assert ann.call(method, f"/classes/{name}", row).error == (400, 103)
    assert not reads(ann, secret)


def test_who_may_write_a_role_takes_in_members(master, client):
    ann, bob = sign_up("ann"), sign_up("bob")
    make_role(master, "Heads", [ann])
    secret = secret_of("Team", master)
    acl = {"role:Heads": {"read": True, "write": True}}
    role = master.make("_Role", name="Team", ACL=acl)
    assert bob.put(f"/roles/{role}", {"users": adding(bob)}).error == (404, 101)
    assert ann.put(f"/roles/{role}", {"users": adding(bob)}).status == 200
    assert reads(bob, secret)
    assert not reads(ann, secret)


def test_a_relation_of_the_same_name_elsewhere_is_no_membership(master, client):
    ann = sign_up("ann")
    secret = secret_of("Admins", master)
    role = make_role(master, "Admins")
    master.post("/schemas/Club", {})
    club = ann.make("Club", users=adding(ann), name="Admins")
    mine = make_role(master, "Mine", [ann])
    # A role of one's own that holds Admins in it gives Admins something, and nothing by them.
    master.put(f"/roles/{mine}", {"roles": {"__op": "AddRelation", "objects": role_pointers(role)}})
    assert club
    assert not reads(ann, secret)


@pytest.mark.parametrize("object_id", ["role:Admins", "*", "currentUser", "authenticated", "me"])
def test_an_id_that_reads_like_a_role_is_no_users_id(master, client, settings, object_id):
    """8xq9-g7ch-35hg: an own objectId that starts with ``role:`` granted the role."""
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    body = {"username": "ann", "password": PASSWORD, "objectId": object_id}
    for path in ("/users", "/classes/_User"):
        assert master.post(path, body).error == (400, 104)
        assert client.post(path, body).status == 400
    assert master.get("/users").json == {"results": []}


def test_no_one_takes_the_id_of_a_member_who_is_gone(master, client, settings):
    ann = sign_up("ann")
    secret = secret_of("Team", master)
    make_role(master, "Team", [ann])
    assert ann.delete(f"/users/{ann.user_id}").status == 200
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    body = {"username": "eve", "password": PASSWORD, "objectId": ann.user_id}
    requests = [{"method": "POST", "path": "/api/users", "body": body}] * 2
    for path in ("/users", "/classes/_User"):
        assert client.post(path, body).error == (400, 119)
    answers = client.post("/batch", {"requests": requests}).json
    assert [answer["error"]["code"] for answer in answers] == [119, 119]
    assert client.get(f"/classes/Secret/{secret}").status == 404
    assert master.get("/users").json == {"results": []}


def test_a_user_named_like_a_role_doesn_t_hold_it(master, client):
    secret = secret_of("Admins", master)
    make_role(master, "Admins")
    for name in ("role:Admins", "Admins"):
        assert not reads(sign_up(name), secret)


# -- Who holds roles ------------------------------------------------------------------------------


def test_members_of_a_role_hold_every_role_that_has_it_in_its_roles(master, client):
    ann, bob = sign_up("ann"), sign_up("bob")
    inner = make_role(master, "Inner", [ann])
    outer = make_role(master, "Outer", [bob], roles=[inner])
    of_inner, of_outer = secret_of("Inner", master), secret_of("Outer", master)
    assert (reads(ann, of_inner), reads(ann, of_outer)) == (True, True)
    assert (reads(bob, of_inner), reads(bob, of_outer)) == (False, True)
    assert outer


@pytest.mark.parametrize("depth", [2, 5])
def test_roles_are_inherited_over_several_levels(master, client, depth):
    ann = sign_up("ann")
    role = make_role(master, "Level0", [ann])
    middle = role
    for level in range(1, depth + 1):
        role = make_role(master, f"Level{level}", roles=[role])
        if level == 1:
            middle = role
    secret = secret_of(f"Level{depth}", master)
    assert reads(ann, secret)
    # Without the link in the middle there is no way up.
    empty = {"roles": {"__op": "Delete"}}
    assert master.put(f"/roles/{middle}", empty).status == 200
    assert not reads(ann, secret)


def test_roles_in_a_circle_are_held_by_the_members_of_all(master, client):
    ann, bob = sign_up("ann"), sign_up("bob")
    first = make_role(master, "First", [ann])
    second = make_role(master, "Second", roles=[first])
    third = make_role(master, "Third", [bob], roles=[second, first])
    closing = {"__op": "AddRelation", "objects": role_pointers(third, first)}
    assert master.put(f"/roles/{first}", {"roles": closing}).status == 200
    for name in ("First", "Second", "Third"):
        secret = secret_of(name, master)
        assert reads(ann, secret)
        assert reads(bob, secret)


# -- From when on ---------------------------------------------------------------------------------


def test_a_change_counts_from_the_next_request_on(master, client):
    ann = sign_up("ann")
    secret = secret_of("Team", master)
    role = make_role(master, "Team")
    assert not reads(ann, secret)
    master.put(f"/roles/{role}", {"users": adding(ann)})
    assert reads(ann, secret)
    master.put(f"/roles/{role}", {"users": removing(ann)})
    assert not reads(ann, secret)
    master.put(f"/roles/{role}", {"users": adding(ann)})
    assert reads(ann, secret)
    master.put(f"/roles/{role}", {"users": {"__op": "Delete"}})
    assert not reads(ann, secret)
    inner = make_role(master, "Inner", [ann])
    inherit = {"__op": "AddRelation", "objects": role_pointers(inner)}
    master.put(f"/roles/{role}", {"roles": inherit})
    assert reads(ann, secret)
    assert master.delete(f"/roles/{inner}").status == 200
    assert not reads(ann, secret)


@pytest.mark.parametrize("way", ["delete", "purge"])
def test_a_role_that_is_gone_gives_nothing(master, client, way):
    ann = sign_up("ann")
    secret = secret_of("Team", master)
    role = make_role(master, "Team", [ann])
    assert reads(ann, secret)
    path = f"/roles/{role}" if way == "delete" else "/purge/_Role"
    assert master.delete(path).status == 200
    assert not reads(ann, secret)
    make_role(master, "Team")
    assert not reads(ann, secret)


def test_what_was_rolled_back_gives_nothing_and_takes_nothing(master, client):
    ann = sign_up("ann")
    secret = secret_of("Team", master)
    role = make_role(master, "Team")
    requests = [
        {"method": "PUT", "path": f"/api/roles/{role}", "body": {"users": adding(ann)}},
        {"method": "POST", "path": "/api/classes/Secret", "body": {"role": 5}},
    ]
    reply = master.post("/batch", {"requests": requests, "transaction": True})
    assert reply.error == (400, 111)
    assert not reads(ann, secret)
    with transaction.atomic():
        master.put(f"/roles/{role}", {"users": adding(ann)})
        assert reads(ann, secret)
        transaction.set_rollback(True)
    assert not reads(ann, secret)
    master.put(f"/roles/{role}", {"users": adding(ann)})
    with transaction.atomic():
        master.delete(f"/roles/{role}")
        assert not reads(ann, secret)
        transaction.set_rollback(True)
    assert reads(ann, secret)


def _status_at(other, user, path):
    """What the other process answers to the user."""
    request = urllib.request.Request(other.url + path, headers=user.headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.django_db(transaction=True)
def test_a_change_by_another_process_counts_from_the_next_request_on(other):
    master = Api(MASTER)
    ann = sign_up("ann")
    secret = secret_of("Team", master)
    path = f"/classes/Secret/{secret}"
    role = make_role(master, "Team", [ann])
    assert _status_at(other, ann, path) == 200
    assert ann.get(path).status == 200
    other.do("PUT", f"/roles/{role}", {"users": removing(ann)})
    assert ann.get(path).status == 404
    assert _status_at(other, ann, path) == 404
    master.put(f"/roles/{role}", {"users": adding(ann)})
    assert _status_at(other, ann, path) == 200
    master.delete(f"/roles/{role}")
    assert _status_at(other, ann, path) == 404
    assert ann.get(path).status == 404


# -- How many statements --------------------------------------------------------------------------


def test_three_hundred_roles_fifty_deep_are_one_statement_and_then_none(master, client):
    ann = sign_up("ann")
    chain = [make_role(master, "Chain0", [ann])]
    for level in range(1, 50):
        chain.append(make_role(master, f"Chain{level}", roles=[chain[-1]]))
    many = [
        {
            "method": "POST",
            "path": "/api/roles",
            "body": {
                "name": f"Side{number}",
                "ACL": READ,
                "roles": {"__op": "AddRelation", "objects": role_pointers(chain[number % 50])},
            },
        }
        for number in range(250)
    ]
    for start in range(0, 250, 50):
        answers = master.post("/batch", {"requests": many[start : start + 50]}).json
        assert all("success" in answer for answer in answers)
    secret = secret_of("Side249", master)
    path = f"/classes/Secret/{secret}"
    assert ann.get(path).status == 200
    with traffic() as cached:
        assert ann.get(path).status == 200
    assert cached.executions == 2  # the session, the object
    bob = sign_up("bob")
    master.put(f"/roles/{chain[0]}", {"users": adding(bob)})
    with traffic() as anew:
        assert ann.get(path).status == 200
    assert anew.executions == 3
    master.put(f"/roles/{chain[25]}", {"roles": {"__op": "Delete"}})
    assert ann.get(path).status == 404

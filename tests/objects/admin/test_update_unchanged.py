"""Changing an object only if it is still what the editor has seen."""

from __future__ import annotations

import pytest

from backend.kernel.errors import ObjectNotFound, OperationForbidden
from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER
from objects import service
from objects.users.accounts.impersonation import as_user
from tests.objects.admin.games import make, make_class, stored_object
from tests.people import make_role, sign_up
from tests.rest import MASTER as MASTER_KEYS
from tests.rest import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    """An owner, a member of a role that may write, and a stranger."""
    make_class()
    owner, member, stranger = (sign_up(name) for name in ("owner", "member", "stranger"))
    make_role(Api(MASTER_KEYS), "Judges", [member])
    acl = {"*": {"read": True}, owner.user_id: {"write": True}, "role:Judges": {"write": True}}
    object_id = make(title="a", ACL=acl)
    return object_id, *(as_user(user.user_id)[0] for user in (owner, member, stranger))


def change(principal, object_id, title, seen=None):
    seen = seen or stored_object(object_id)["updatedAt"]
    return service.update_unchanged(principal, "Game", object_id, {"title": title}, seen)


def test_it_is_an_update_for_those_who_may_write(people):
    object_id, owner, member, stranger = people
    for principal, title in ((owner, "b"), (member, "c"), (MASTER, "d")):
        done = change(principal, object_id, title)
        assert done is not None
        assert done.updated_at == stored_object(object_id)["updatedAt"]
        assert stored_object(object_id)["title"] == title
    for principal in (stranger, CLIENT):
        with pytest.raises(ObjectNotFound):
            change(principal, object_id, "e")
    with pytest.raises(OperationForbidden):
        change(READ_ONLY_MASTER, object_id, "e")
    assert stored_object(object_id)["title"] == "d"


def test_nothing_happens_if_it_has_changed(people):
    object_id, owner, *_ = people
    updated_at = stored_object(object_id)["updatedAt"]
    service.update(MASTER, "Game", object_id, {"score": 1})
    assert change(owner, object_id, "b", updated_at) is None
    assert change(owner, object_id, "b", "nonsense") is None
    assert stored_object(object_id)["title"] == "a"


def test_who_may_not_write_isn_t_told_whether_it_has_changed(people):
    object_id, _, _, stranger = people
    with pytest.raises(ObjectNotFound):
        change(stranger, object_id, "b", "nonsense")


def test_classes_with_rules_follow_them():
    ann = sign_up("ann")
    updated_at = service.get(MASTER, "_User", ann.user_id).updated_at
    body = {"password": "another good one"}
    assert service.update_unchanged(MASTER, "_User", ann.user_id, body, updated_at) is not None


@pytest.mark.parametrize("object_id", ["missing123", "<b>", ""])
def test_an_object_that_isn_t_there_is_not_found(people, object_id):
    with pytest.raises(ObjectNotFound):
        service.update_unchanged(MASTER, "Game", object_id, {"title": "x"}, "2024")


def test_the_principal_of_a_user_has_the_user_s_roles(people):
    _, owner, member, _ = people
    assert owner.roles == frozenset()
    assert member.roles == {"Judges"}
    with pytest.raises(ObjectNotFound):
        as_user("missing123")

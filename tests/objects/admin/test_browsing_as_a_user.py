"""Browsing as a user: everything is read with that user's rights, and written only if asked."""

from __future__ import annotations

import pytest
from django.test import Client

from backend.kernel.principal import MASTER
from backend.site.staff import EDITORS, VIEWERS
from objects.service import classes
from tests.objects.admin.games import GAME, at, grid_rows, make, make_class, stored_object
from tests.objects.admin.staff import logged_in
from tests.people import make_role, sign_up
from tests.rest import MASTER as MASTER_KEYS
from tests.rest import Api

pytestmark = pytest.mark.django_db

ACT = "/admin/browse-as/"


@pytest.fixture
def world():
    """Ann, who is a judge, and objects that she may read, may write, and may not see."""
    make_class()
    ann = sign_up("ann")
    make_role(Api(MASTER_KEYS), "Judges", [ann])
    readable = make(title="readable", ACL={"*": {"read": True}})
    writable = make(title="writable", ACL={"role:Judges": {"read": True, "write": True}})
    hidden = make(title="hidden", ACL={})
    return ann, readable, writable, hidden


def acting(client: Client, user_id: str = "", **more: str) -> Client:
    answer = client.post(ACT, {"user": user_id, "next": GAME, **more})
    assert answer.headers["Location"] == GAME
    return client


def test_what_the_user_may_not_see_isn_t_there(world):
    ann, readable, writable, hidden = world
    client = acting(logged_in(VIEWERS), ann.user_id)
    assert "You browse as ann" in client.get(GAME).text
    page = grid_rows(client).text
    assert readable in page
    assert writable in page
    assert hidden not in page
    assert client.get(at(hidden)).status_code == 404
    assert client.get(at(hidden, "json/")).status_code == 404
    exported = b"".join(client.get(f"{GAME}export.ndjson").streaming_content)
    assert b"readable" in exported
    assert b"hidden" not in exported
    assert hidden not in client.get(f"{GAME}lookup/?of=x&x=hid").text


def test_the_public_sees_less(world):
    _, readable, writable, _ = world
    client = acting(logged_in(VIEWERS), public="1")
    assert "callers who aren" in client.get(GAME).text
    page = grid_rows(client).text
    assert readable in page
    assert writable not in page


def test_protected_fields_and_class_permissions_hold(world):
    ann, readable, _, _ = world
    rules = {"find": {"requiresAuthentication": True}, "protectedFields": {"*": ["title"]}}
    classes.change(MASTER, "Game", {"classLevelPermissions": {"get": {"*": True}, **rules}})
    client = acting(logged_in(), ann.user_id)
    assert '"readable"' not in grid_rows(client).text
    assert "readable" not in client.get(at(readable)).text
    response = grid_rows(client, where='{"title": "readable"}')
    assert response.status_code == 400
    assert "not allowed to query title" in response.text
    acting(client, public="1")
    assert "Permission denied" in grid_rows(client).text


def test_nothing_is_written_unless_requested(world):
    ann, _, writable, _ = world
    client = acting(logged_in(), ann.user_id)
    assert 'name="updatedAt"' not in client.get(at(writable)).text
    assert 'id="grid-delete"' not in client.get(GAME).text
    for path, form in _writes(writable):
        assert client.post(path, form).status_code == 403
    assert client.post(f"{GAME}fields/", {"name": "x", "type": "String"}).status_code == 403
    assert stored_object(writable)["title"] == "writable"


def _writes(object_id: str) -> list[tuple[str, dict[str, str]]]:
    observed = {"updatedAt": stored_object(object_id)["updatedAt"]}
    return [
        (at(object_id), {"f.title": "new", **observed}),
        (at(object_id, "json/"), {"json": "{}", **observed}),
        (f"{GAME}add/", {"f.title": "new"}),
        (at(object_id, "delete/"), {"confirmed": "1"}),
        (at(object_id, "relation/fans/"), {"add": "someone123"}),
    ]


def test_what_is_asked_to_be_written_is_written_with_the_user_s_rights(world):
    ann, readable, writable, _ = world
    client = acting(logged_in(EDITORS), ann.user_id, writes="1")
    assert "<strong>written</strong>" in client.get(GAME).text
    path, form = _writes(writable)[0]
    assert client.post(path, form).status_code == 302
    assert stored_object(writable)["title"] == "new"
    path, form = _writes(readable)[0]
    assert client.post(path, form).status_code == 404
    assert stored_object(readable)["title"] == "readable"
    # Only staff see the pages of classes.
    assert client.post(f"{GAME}fields/", {"name": "x", "type": "String"}).status_code == 403


def test_a_viewer_can_t_write_as_a_user(world):
    ann, _, writable, _ = world
    viewer = logged_in(VIEWERS)
    assert viewer.post(ACT, {"user": ann.user_id, "writes": "1"}).status_code == 403
    acting(viewer, ann.user_id)
    for path, form in _writes(writable):
        assert viewer.post(path, form).status_code == 403


def test_stopping_shows_everything_again(world):
    ann, _, _, hidden = world
    client = acting(logged_in(), ann.user_id)
    client.post(ACT, {"stop": "1", "next": GAME})
    assert hidden in grid_rows(client).text
    assert "You browse as" not in client.get(GAME).text


def test_a_user_who_is_gone_is_left(world):
    ann, _, _, hidden = world
    client = acting(logged_in(), ann.user_id)
    Api(MASTER_KEYS).delete(f"/users/{ann.user_id}")
    assert client.get(GAME).status_code == 200
    assert hidden in grid_rows(client).text


@pytest.mark.parametrize("user_id", ["", "missing123", "<b>", "*"])
def test_no_other_caller_can_be_chosen(world, user_id):
    page = logged_in().post(ACT, {"user": user_id, "next": GAME})
    assert page.status_code in (302, 404)
    if page.status_code == 404:
        assert "There is no such user" in page.text
        assert "<b>" not in page.text


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"]
)
def test_the_way_on_stays_in_the_admin(world, target):
    answer = logged_in().post(ACT, {"public": "1", "next": target})
    assert answer.headers["Location"] == "/admin/objects/objectclass/"

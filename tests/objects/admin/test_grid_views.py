"""Saved views: one's own or shared, by rights, bounded."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.site.staff import EDITORS, VIEWERS
from objects.staff.models import StaffGrid
from tests.objects.admin.games import GAME, grid_rows, make, make_class, send
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

VIEW = {
    "name": "High scores",
    "where": '{"score":{"$gt":5}}',
    "order": "-score",
    "columns": [{"name": "score", "width": 90}],
    "size": 50,
}


@pytest.fixture
def staff() -> Client:
    make_class()
    return logged_in()


def save(client: Client, **more: Any) -> Any:
    return send(client, "POST", f"{GAME}views/", VIEW | more)


def delete(client: Client) -> int:
    path = f"{GAME}views/{StaffGrid.objects.get().pk}/"
    status: int = send(client, "DELETE", path, {}).status_code
    return status


def test_a_view_has_a_filter_an_order_and_columns(staff):
    make(score=1)
    address = save(staff).json()["address"]
    page = staff.get(f"{GAME}?{address}").text
    assert "High scores" in page
    assert "score &gt; 5" in page
    view = str(StaffGrid.objects.get().pk)
    response = grid_rows(staff, view=view).json()
    assert (response["columns"], response["size"]) == (VIEW["columns"], 50)
    assert len(grid_rows(staff).json()["columns"]) > 1
    assert grid_rows(staff, view="0").status_code == 200


def test_a_view_with_the_name_of_another_takes_its_place(staff):
    save(staff)
    save(staff, order="score")
    assert StaffGrid.objects.get().order == "score"


def test_own_views_are_for_their_owner_and_shared_ones_for_all(staff):
    save(staff)
    viewer = logged_in(VIEWERS)
    view = str(StaffGrid.objects.get().pk)
    assert "High scores" not in viewer.get(GAME).text
    assert len(grid_rows(viewer, view=view).json()["columns"]) > 1
    assert delete(viewer) == 404
    save(staff, isShared=True)
    assert "High scores" in viewer.get(GAME).text
    assert grid_rows(viewer, view=view).json()["columns"] == VIEW["columns"]
    assert delete(viewer) == 404
    assert delete(staff) == 200


def test_who_may_change_objects_may_share_and_superusers_delete_shared_ones(staff):
    viewer, editor = logged_in(VIEWERS), logged_in(EDITORS)
    assert save(viewer, isShared=True).status_code == 403
    assert save(viewer).status_code == 200
    assert delete(staff) == 404
    assert delete(viewer) == 200
    assert save(editor, isShared=True).status_code == 200
    assert delete(staff) == 200


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_staff_without_rights_and_strangers_are_refused(staff, method):
    save(staff, isShared=True)
    without = Client()
    without.force_login(User.objects.create_user("none", is_staff=True))
    path = f"{GAME}views/" if method == "POST" else f"{GAME}views/{StaffGrid.objects.get().pk}/"
    unchecked = Client(enforce_csrf_checks=True)
    unchecked.force_login(User.objects.get(username="root"))
    for client in (without, Client(), unchecked):
        assert send(client, method, path, VIEW).status_code == 403
    assert StaffGrid.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 81},
        {"where": "{"},
        {"where": '{"score": {"$no": 1}}'},
        {"where": "x" * 20_001},
        {"columns": []},
        {"columns": [{"name": "nothing", "width": 90}]},
        {"size": 3},
        {"isShared": "perhaps"},
    ],
)
def test_a_view_that_shows_nothing_is_refused(staff, wrong):
    assert save(staff, **wrong).status_code == 400
    assert StaffGrid.objects.count() == 0


def test_the_views_of_a_staff_user_are_bounded(staff):
    user = User.objects.get(username="root")
    rows = [StaffGrid(user=user, class_name="Game", name=f"{number}") for number in range(50)]
    StaffGrid.objects.bulk_create(rows)
    assert save(staff).status_code == 400
    assert save(staff, name="7").status_code == 200

"""Classes in the admin: the list, and making one."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from backend.kernel.principal import MASTER
from backend.site.staff import ADMINISTRATORS, EDITORS
from objects import service
from objects.admin.class_sizes import with_statistics
from objects.definitions import registry
from objects.definitions.models import ObjectClass
from tests.objects.admin.games import make, make_class
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

LIST = "/admin/objects/objectclass/"
ADD = f"{LIST}add/"


@pytest.fixture
def staff() -> Client:
    registry.forget_all()
    service.create(MASTER, "Game", {"score": 1})
    return logged_in()


def test_the_list_shows_each_class_and_leads_to_its_objects(staff):
    page = staff.get(LIST)
    assert page.status_code == 200
    assert 'href="/admin/data/Game/"' in page.text
    # The sidebar lists the class as well.
    row = '<a class="sv-strong" href="/admin/data/Game/"'
    assert row in staff.get(LIST, {"q": "gam"}).text
    assert row not in staff.get(LIST, {"q": "other"}).text


@pytest.mark.django_db(transaction=True)
def test_the_number_of_objects_is_shown_before_the_class_is_analyzed():
    make_class()
    for score in range(3):
        make(score=score)
    make_class("Empty")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
    shown = {row.name: int(row.object_estimate) for row in with_statistics(ObjectClass.objects)}
    assert (shown["Game"], shown["Empty"]) == (3, 0)


def test_dates_have_the_form_of_the_api(staff):
    created = ObjectClass.objects.get(name="Game").updated_at
    assert f"{created:%Y-%m-%d %H:%M:%S}" in staff.get(LIST).text


def test_the_classes_of_people_are_in_the_list_before_there_are_any(staff):
    page = staff.get(LIST).text
    assert "/admin/data/_User/" in page
    assert "/admin/data/_Installation/" in page


def test_the_page_of_a_class_is_that_of_its_fields(staff):
    table = registry.find("Game")
    assert table is not None
    page = staff.get(f"{LIST}{table.class_id}/change/", follow=True)
    assert page.redirect_chain == [("/admin/data/Game/fields/", 302)]
    assert "score" in page.text
    assert staff.get(f"{LIST}987654/change/").status_code == 404
    assert staff.get(f"{LIST}abc/change/").status_code == 404


def test_staff_without_the_permission_see_nothing(staff):
    person = User.objects.create_user("guest", is_staff=True)
    guest = Client()
    guest.force_login(person)
    assert guest.get(LIST).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="view_objectclass"))
    assert guest.get(LIST).status_code == 200


def test_strangers_are_sent_to_the_log_in():
    page = Client().get(LIST)
    assert page.status_code == 302
    assert page.headers["Location"].startswith("/admin/login/")


def test_an_administrator_makes_a_class_that_logged_in_users_may_use(staff):
    answer = logged_in(ADMINISTRATORS).post(ADD, {"name": "Team", "beginning": "users"})
    assert answer.headers["Location"] == "/admin/data/Team/fields/"
    table = registry.find("Team")
    assert table is not None
    rule = table.schema.permissions.rules["find"]
    assert rule.requires_authentication
    assert not rule.entities


def test_what_kind_of_permissions_is_not_guessed(staff):
    staff.post(ADD, {"name": "Team", "beginning": "anything"})
    table = registry.find("Team")
    assert table is not None
    assert not table.schema.permissions.rules["find"].entities


@pytest.mark.parametrize("name", ["Game", "1st", "<b>", "", "_Secret"])
def test_a_name_that_no_class_can_have_is_refused_in_place(staff, name):
    page = staff.post(ADD, {"name": name, "beginning": "users"})
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "<b>" not in page.text


def test_an_editor_makes_no_classes(staff):
    editor = logged_in(EDITORS)
    assert ADD not in editor.get(LIST).text
    assert editor.get(ADD).status_code == 403
    assert editor.post(ADD, {"name": "Team", "beginning": "users"}).status_code == 403
    assert registry.find("Team") is None

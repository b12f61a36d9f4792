"""Classes in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from backend.principal import MASTER
from objects import registry, service

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    registry.forget_all()
    service.create(MASTER, "Game", {"score": 1})
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


def test_the_list_shows_each_class(staff):
    page = staff.get("/admin/objects/objectclass/")
    assert page.status_code == 200
    assert "Game" in page.text


def test_the_page_of_a_class_shows_its_schema_and_no_form(staff):
    table = registry.find("Game")
    assert table is not None
    page = staff.get(f"/admin/objects/objectclass/{table.class_id}/change/")
    assert "score" in page.text
    assert 'name="_save"' not in page.text


def test_staff_without_the_permission_see_nothing(staff):
    person = User.objects.create_user("guest", is_staff=True)
    guest = Client()
    guest.force_login(person)
    assert guest.get("/admin/objects/objectclass/").status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="view_objectclass"))
    assert guest.get("/admin/objects/objectclass/").status_code == 200


def test_strangers_are_sent_to_the_log_in():
    page = Client().get("/admin/objects/objectclass/")
    assert page.status_code == 302
    assert page.headers["Location"].startswith("/admin/login/")

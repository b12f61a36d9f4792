"""First steps of an instance without data, and its demo data."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.kernel.errors import OperationForbidden
from backend.kernel.principal import CLIENT, MASTER
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects import service
from objects.admin import demo_data
from objects.core.query.tree import Everything, FindOptions
from objects.definitions import registry
from objects.service import classes
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db
DEMO = {"DemoCustomer": 40, "DemoProduct": 8, "DemoOrder": 240}


def counts() -> dict[str, int]:
    registry.forget_all()
    names = [name for name in DEMO if registry.find(name) is not None]
    return {name: service.count(MASTER, name, Everything()) for name in names}


def change(client: Client, **form: str) -> int:
    return client.post("/admin/demo-data/", form).status_code


def test_demo_data_are_added_and_removed_with_a_click():
    client = logged_in(ADMINISTRATORS)
    assert "Add demo data" in client.get("/admin/").text
    assert change(client) == 302
    assert counts() == DEMO
    start = client.get("/admin/").text
    assert "Remove the demo data" in start
    assert "Add demo data" not in start
    order = service.find(MASTER, "DemoOrder", FindOptions(Everything(), limit=1)).objects()[0]
    for name in ("customer", "product"):
        assert service.get(MASTER, order[name]["className"], order[name]["objectId"])
    with pytest.raises(OperationForbidden):
        service.find(CLIENT, "DemoCustomer", FindOptions(Everything(), limit=1))
    # Again, and with classes of these names: nothing is lost.
    change(client)
    assert counts() == DEMO
    assert change(client, remove="1") == 302
    assert counts() == {}


def test_a_class_of_the_same_name_is_left_alone():
    classes.create(MASTER, "DemoOrder", {})
    service.create(MASTER, "DemoOrder", {"number": "mine"})
    client = logged_in()
    page = client.post("/admin/demo-data/", follow=True)
    assert "Class DemoOrder already exists." in page.text
    assert counts() == {"DemoOrder": 1}


def test_first_steps_are_for_those_who_may_create_classes_while_there_are_none(settings):
    admin = logged_in(ADMINISTRATORS)
    key = settings.SERVICE["REST_API_KEY"]
    assert f"X-Svc-REST-API-Key: {key}" in admin.get("/admin/").text.replace("&quot;", '"')
    for group in (VIEWERS, EDITORS):
        client = logged_in(group)
        assert "First steps" not in client.get("/admin/").text
        assert change(client) == 403
        assert change(client, remove="1") == 403
    classes.create(MASTER, "Game", {})
    assert "First steps" not in admin.get("/admin/").text


def test_demo_data_take_the_permissions_and_the_token_of_the_form():
    bare, customer = Client(), Client()
    bare.force_login(User.objects.create_user("bare", is_staff=True))
    customer.force_login(User.objects.create_user("customer"))
    assert change(bare) == 403
    assert change(customer) == change(Client()) == 302
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(staff_user(None))
    assert change(strict) == 403
    assert strict.get("/admin/demo-data/").status_code == 405
    assert counts() == {}


def test_demo_data_that_fail_halfway_leave_nothing(monkeypatch):
    monkeypatch.setattr(demo_data, "_PRODUCTS", (("Cup", float("nan"), []),))
    page = logged_in().post("/admin/demo-data/", follow=True)
    assert page.status_code == 200
    assert counts() == {}

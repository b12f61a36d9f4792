"""The frame of the admin: pages without a model, errors, what every page has."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from backend.site.model_admin import ModelAdmin, _pages
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db


def test_every_page_of_ours_is_behind_the_log_in_of_staff():
    visitor, customer = Client(), Client()
    customer.force_login(User.objects.create_user("customer"))
    for page in _pages.values():
        if "<" in page.route:
            continue
        for client in (visitor, customer):
            answer = client.get(reverse(f"admin:{page.name}"))
            assert answer.status_code == 302, page.name
            assert "/admin/login/" in answer.headers["Location"]


def test_a_host_that_is_not_served_is_named_as_the_reason():
    answer = Client().get("/admin/login/", headers={"Host": "other.example.org"})
    assert answer.status_code == 400
    assert answer.json() == {
        "code": 108,
        "error": "This host isn't served: PUBLIC_URL or ALLOWED_HOSTS has to name it.",
    }


def test_staff_without_any_permission_see_no_page():
    client = Client()
    client.force_login(User.objects.create_user("bare", is_staff=True))
    own = {page.name for page in _pages.values() if page.is_before_log_in}
    assert own == {"second_factor", "second_factor_set_up"}
    for page in _pages.values():
        if "<" not in page.route and page.name not in own:
            answer = client.get(reverse(f"admin:{page.name}"))
            assert answer.status_code == 403, page.name
            assert "You have no permission for this" in answer.text
    start = client.get("/admin/")
    assert start.status_code == 200
    assert "You have no permission to see anything yet" in start.text


def test_model_pages_of_ours_stand_on_the_base():
    ours = ("backend", "objects", "functions", "chain", "auth")
    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label in ours:
            assert isinstance(model_admin, ModelAdmin), model


def test_each_entry_of_the_sidebar_opens():
    client = logged_in()
    start = client.get("/admin/")
    links = {
        entry["link"] for group in start.context["sidebar_navigation"] for entry in group["items"]
    }
    assert "/admin/objects/objectclass/" in links
    for link in links:
        assert client.get(link).status_code == 200, link


def test_a_page_is_in_the_sidebar_of_those_who_may_see_it():
    person = User.objects.create_user("guest", is_staff=True)
    permission = Permission.objects.get(
        codename="view_storedfile", content_type__app_label="objects"
    )
    person.user_permissions.add(permission)
    client = Client()
    client.force_login(person)
    groups = client.get("/admin/").context["sidebar_navigation"]
    assert [entry["title"] for group in groups for entry in group["items"]] == ["Files"]


def test_an_address_without_a_page_is_a_page():
    page = logged_in().get("/admin/nothing/")
    assert page.status_code == 404
    assert "There is no such page" in page.text


def test_pages_are_kept_by_no_cache():
    page = logged_in().get("/admin/data/_User/")
    assert "no-store" in page.headers["Cache-Control"]

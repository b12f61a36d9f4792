"""The classes in the sidebar, and the favourites of staff."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.kernel.principal import MASTER
from backend.site.staff import ADMINISTRATORS, VIEWERS
from objects.admin import class_sizes
from objects.admin.classes.sidebar import short_count
from objects.service import classes
from objects.staff import favourites
from tests.objects.admin.games import make, make_class
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db


def listed(client: Client, path: str = "/admin/") -> list[dict[str, Any]]:
    groups = client.get(path).context["sidebar_navigation"]
    items = next((group["items"] for group in groups if group["title"] == "Classes"), [])
    # That of the application of the tests.
    return [item for item in items if item["title"] != "Book"]


def titles(client: Client, path: str = "/admin/") -> list[str]:
    return [item["title"] for item in listed(client, path)]


def favourite(client: Client, name: str, method: str = "put") -> Any:
    return getattr(client, method)(f"/admin/favourite-classes/{name}/")


def test_classes_are_listed_with_counts_favourites_first_and_the_class_at_hand_lit():
    for name in ("Beta", "Alpha", "Gamma"):
        make_class(name)
    make("Alpha", title="a")
    client = logged_in()
    assert favourite(client, "Gamma").json() == {"favourite": True}
    assert titles(client) == ["Gamma", "Alpha", "Beta"]
    first, second, _ = listed(client, "/admin/data/Alpha/")
    assert (first["is_favourite"], second["is_favourite"]) == (True, False)
    assert (first["active"], second["active"]) == (False, True)
    assert second["link"] == "/admin/data/Alpha/"
    assert favourite(client, "Gamma", "delete").json() == {"favourite": False}
    assert titles(client) == ["Alpha", "Beta", "Gamma"]
    assert titles(client, "/admin/data/_User/") == ["Alpha", "Beta", "Gamma", "_User"]


def test_of_many_classes_the_first_are_listed_and_the_rest_by_search():
    for number in range(25):
        classes.create(MASTER, f"Class{number:02}", {})
    client = logged_in()
    favourite(client, "Class24")
    assert titles(client, "/admin/data/Class23/") == [
        *("Class24", *(f"Class{number:02}" for number in range(20)), "Class23")
    ]
    assert 'aria-label="Find a class"' in client.get("/admin/").text


def test_the_sidebar_of_many_classes_takes_a_few_statements(django_assert_max_num_queries):
    for number in range(25):
        classes.create(MASTER, f"Class{number:02}", {})
    client = logged_in()
    client.get("/admin/docs/")
    with django_assert_max_num_queries(8):
        client.get("/admin/docs/")


def test_favourites_belong_to_a_staff_user_and_are_bounded(monkeypatch):
    make_class("Game")
    viewer, other = logged_in(VIEWERS), logged_in(ADMINISTRATORS)
    for _ in range(2):
        assert favourite(viewer, "Game").status_code == 200
    assert [item["is_favourite"] for item in listed(viewer)] == [True]
    assert [item["is_favourite"] for item in listed(other)] == [False]
    assert favourite(viewer, "Nothing").status_code == 404
    assert favourite(viewer, "no-class").status_code == 400
    monkeypatch.setattr(favourites, "MOST", 1)
    response = favourite(viewer, "_User")
    assert (response.status_code, response.json()["error"][:10]) == (400, "You have 1")


def test_classes_are_listed_for_those_who_may_see_their_objects():
    make_class("Game")
    bare = Client()
    bare.force_login(User.objects.create_user("bare", is_staff=True))
    assert listed(bare) == []
    assert favourite(bare, "Game").status_code == 403
    customer = Client()
    customer.force_login(User.objects.create_user("customer"))
    for client in (customer, Client()):
        for method in ("put", "delete"):
            assert favourite(client, "Game", method).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(staff_user(None))
    for method in ("put", "delete"):
        assert favourite(strict, "Game", method).status_code == 403


def test_counts_are_short():
    numbers = (0, 950, 1000, 9_500, 95_400, 950_000, 999_900, 12_000_000_000)
    shown = [short_count(number) for number in numbers]
    assert shown == ["0", "950", "1k", "9.5k", "95k", "950k", "1M", "12G"]


def test_counts_are_those_of_the_statistics():
    make_class("Game")
    for number in range(3):
        make("Game", title=str(number))
    table = class_sizes.ObjectClass.objects.get(name="Game")
    estimates = class_sizes.recent_estimates([table.pk])
    assert estimates == class_sizes.recent_estimates([table.pk])
    assert estimates.get(table.pk, 0) <= 3

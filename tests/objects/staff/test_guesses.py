"""Guesses at the passwords of staff are limited as those at passwords of users."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from tests.objects.staff.accounts import LOG_IN, PASSWORD, Person, person
from tests.objects.staff.test_second_factor import pages
from tests.password_hashers import Counting
from tests.people import sign_up
from tests.rest import CLIENT, Api

pytestmark = pytest.mark.django_db

CHANGE = "/admin/password_change/"


@pytest.fixture
def root(settings: Any) -> Person:
    settings.PASSWORD_HASHERS = ["tests.password_hashers.Counting"]
    return person(with_app=False)


def guess(client: Client, path: str, number: int) -> tuple[int, int]:
    """Guess the password of ``root`` from an address; the status, and the passwords compared."""
    before = Counting.verified
    form = {"username": "root", "password": "guess", "old_password": "guess", "leave": "1"}
    reply = client.post(path, form, REMOTE_ADDR=f"198.51.100.{number}")
    return reply.status_code, Counting.verified - before


@pytest.mark.slow
def test_the_pages_that_compare_a_password_are_these(root, limit):
    limit()
    bare = User.objects.create_user("bare", password=PASSWORD, is_staff=True)
    client = Client()
    comparing = set()
    for number, (path, _) in enumerate(pages(admin.site.urls[0])):
        client.force_login(bare)
        if guess(client, path, number % 250)[1]:
            comparing.add(path)
    assert comparing == {LOG_IN, CHANGE}


@pytest.mark.slow
def test_by_default_an_account_is_guessed_a_hundred_times_a_minute(root, limit):
    limit("defaults")
    statuses = [guess(Client(), LOG_IN, number)[0] for number in range(102)]
    assert statuses == [200] * 100 + [429] * 2
    assert guess(Client(), LOG_IN, 200) == (429, 0)


def test_by_default_an_address_guesses_at_an_account_ten_times_a_minute(root, limit):
    limit("defaults")
    statuses = [guess(Client(), LOG_IN, 1)[0] for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    root.client.defaults["REMOTE_ADDR"] = "198.51.100.2"
    root.log_in()
    assert root.is_in


def test_a_session_that_was_stolen_guesses_no_faster(root, limit):
    limit({"path": "/login", "per": "account", "count": 2})
    root.client.force_login(root.user)
    assert [guess(root.client, CHANGE, number) for number in range(2)] == [(200, 1)] * 2
    assert guess(root.client, CHANGE, 3) == (429, 0)
    assert guess(Client(), LOG_IN, 4) == (429, 0)


@pytest.mark.parametrize(
    "spelling",
    ["ROOT", "ｒｏｏｔ", " root ", "root" + " " * 996, " " * 1000 + "root", "root" + " " * 2000],  # noqa: RUF001
)
def test_the_spelling_of_the_name_is_no_way_around(root, limit, spelling):
    limit({"path": "/login", "per": "account", "count": 1})
    guess(Client(), LOG_IN, 1)
    assert Client().post(LOG_IN, {"username": spelling, "password": "x"}).status_code == 429


def test_a_user_of_the_same_name_is_another_account(root, limit):
    sign_up("root")
    limit({"path": "/login", "per": "account", "count": 1})
    client = Api(CLIENT)
    for _ in range(2):
        client.post("/login", {"username": "root", "password": "guess"})
    root.log_in()
    assert root.is_in

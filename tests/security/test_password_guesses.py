"""Each request that compares a password is limited as a login: no route is a second place to guess.

The admin's pages are in ``tests/objects/staff/test_guesses.py``.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import URLPattern

from backend import rest_urls
from functions.runtime import registry
from tests.password_hashers import Counting
from tests.people import PASSWORD, User, sign_up
from tests.rate_limits import limit, nothing_counted
from tests.rest import CLIENT, Api
from tests.security.test_ways_to_a_session import calls_of

__all__ = ["limit", "nothing_counted"]

GUESSING = {
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/verifyPassword"),
    ("POST", "/verifyPassword"),
    ("POST", "/challenge"),
}
"""The routes that compare a password with the one of a user whom the request names."""
_names = count()
_addresses = (f"198.51.100.{number}" for number in count())


def routes(user_id: str) -> list[str]:
    """Every path of the REST interface, and every function, with values for the parameters."""
    values = {"class_name": "_User", "object_id": user_id, "app_id": "test-app"}
    paths = [f"/functions/{name}" for name in registry.registry.functions]
    for pattern in rest_urls.urlpatterns:
        assert isinstance(pattern, URLPattern)
        paths.append(
            "/" + re.sub(r"<\w+:(\w+)>", lambda m: values.get(m[1], "x"), str(pattern.pattern))
        )
    return paths


def guess(method: str, path: str, name: str) -> tuple[int, int]:
    """Guess a user's password by a route, each time from another address.

    Returns the status, and how many passwords were compared.
    """
    fields = {"username": name, "password": "a guess", "challengeData": {"nothing": {}}}
    before = Counting.verified
    response = Client(raise_request_exception=False).generic(
        method,
        f"/api{path}" + (f"?{urlencode(fields)}" if method == "GET" else ""),
        "" if method == "GET" else json.dumps(fields),
        content_type="application/json",
        headers=CLIENT,
        REMOTE_ADDR=next(_addresses),
    )
    return response.status_code, Counting.verified - before


@pytest.fixture(autouse=True)
def counts_comparisons(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["tests.password_hashers.Counting"]


@pytest.fixture
def ann(db: None) -> User:
    return sign_up(f"ann{next(_names)}")


def test_the_code_that_compares_passwords_is_this():
    names = ("check_password", "user.check_password", "passwords.is_right")
    assert calls_of(names) - {"objects.users.accounts.passwords.is_right"} == {
        "objects.users.sign_in._owner_of",
        # A new password with those that the user has had, for callers with a session.
        "objects.users.accounts.passwords.check_history",
        # The first staff user's with the file that the service wrote.
        "backend.operations.preparation._is_valid",
    }


def test_the_routes_that_compare_passwords_are_these(ann: User, limit: Any):
    limit()
    comparing = {
        (method, path)
        for path in routes(ann.user_id)
        for method in ("GET", "POST", "PUT", "DELETE")
        if guess(method, path, ann.name)[1]
    }
    assert comparing == GUESSING


@pytest.mark.parametrize("rule", [{"path": "/login"}, {"path": ["/users", "/login"]}])
@pytest.mark.parametrize(("method", "path"), sorted(GUESSING))
def test_each_counts_for_the_account_as_a_log_in(ann: User, limit: Any, method, path, rule):
    limit({**rule, "per": "account", "count": 2})
    assert guess("POST", "/login", ann.name)[0] == 404
    for spelling in (path, f"{path}/"):
        assert guess(method, spelling, ann.name) in ((404, 1), (429, 0))
    assert guess("POST", "/login", ann.name)[0] == 429
    assert guess(method, path, ann.name.upper()) == (429, 0)
    assert guess(method, path, "another") == (404, 1)


def test_they_share_the_limit_of_an_address(ann: User, limit: Any):
    limit({"path": "/login", "per": "ip", "count": len(GUESSING)})
    client = Api(CLIENT)
    query = f"?username={ann.name}&password=guess"
    body = {"username": ann.name, "password": "guess"}
    for method, path in GUESSING:
        assert client.call(method, path + query if method == "GET" else path, body).status == 404
    for method, path in GUESSING:
        assert client.call(method, path + query if method == "GET" else path, body).status == 429


def test_items_of_a_batch_count_as_well(ann: User, limit: Any):
    limit({"path": "/login", "per": "account", "count": 2})
    body = {"username": ann.name, "password": "a guess", "challengeData": {"nothing": {}}}
    items = [{"method": "POST", "path": "/api/challenge", "body": body}] * 4
    replies = Api(CLIENT).post("/batch", {"requests": items}).json
    assert [reply["error"]["code"] for reply in replies] == [101, 101, 100, 100]


def test_by_default_passwords_are_guessed_a_hundred_times_a_minute_by_all_routes_together(
    ann: User, limit: Any
):
    limit("defaults")
    statuses = [guess(method, path, ann.name)[0] for method, path in sorted(GUESSING) * 21]
    assert statuses == [404] * 100 + [429] * 5


def test_a_challenge_that_names_no_account_is_no_log_in(client: Api, limit: Any, db: None):
    limit({"path": "/login", "per": "ip", "count": 1})
    for _ in range(3):
        assert client.post("/challenge", {"challengeData": {"nothing": {}}}).status == 200
    body = {"username": "ann", "password": PASSWORD, "challengeData": {"nothing": {}}}
    assert [client.post("/challenge", body).status for _ in range(2)] == [404, 429]

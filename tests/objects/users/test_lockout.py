"""An account is locked after too many wrong guesses, also when they come at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tests.people import PASSWORD, log_in, sign_up


@pytest.fixture(autouse=True)
def three_guesses(settings):
    settings.SERVICE = {**settings.SERVICE, "LOCKOUT_THRESHOLD": 3, "LOCKOUT_DURATION": 10}


def unlock_in(minutes: float) -> None:
    from objects.users.models import FailedLogins

    FailedLogins.objects.update(locked_until=timezone.now() + timedelta(minutes=minutes))


def test_after_the_third_wrong_guess_the_right_one_is_refused_too(client):
    sign_up("ann")
    for _ in range(3):
        assert log_in("ann", "wrong").json["error"] == "Invalid username/password."
    reply = log_in("ann")
    assert reply.error == (404, 101)
    assert reply.json["error"].endswith("Please try again after 10 minute(s)")
    assert client.post("/verifyPassword", {"username": "ann", "password": PASSWORD}).error == (
        404,
        101,
    )


def test_the_right_password_restarts_the_count(client):
    sign_up("ann")
    for _ in range(3):
        for _ in range(2):
            log_in("ann", "wrong")
        assert log_in("ann").status == 200


def test_the_lock_opens_by_itself_and_guesses_are_counted_from_one(client):
    sign_up("ann")
    for _ in range(3):
        log_in("ann", "wrong")
    unlock_in(0.5)
    assert log_in("ann").json["error"].endswith("after 1 minute(s)")
    unlock_in(-1)
    log_in("ann", "wrong")
    log_in("ann", "wrong")
    assert log_in("ann").status == 200


def test_one_account_s_lock_is_no_other_s(client):
    sign_up("ann")
    sign_up("bob")
    for _ in range(4):
        log_in("ann", "wrong")
    assert log_in("bob").status == 200
    assert log_in("nobody", "wrong").json["error"] == "Invalid username/password."


@pytest.mark.django_db(transaction=True)
def test_guesses_at_once_get_no_more_tries_than_guesses_one_after_the_other():
    sign_up("ann")

    def guess(_: int) -> str:
        try:
            text: str = log_in("ann", "wrong").json["error"]
            return text
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(guess, range(24))]
    assert sum(answer == "Invalid username/password." for answer in answers) == 3
    assert log_in("ann").error == (404, 101)


def test_a_guess_can_t_be_undone_with_a_transaction(client):
    sign_up("ann")
    body = {"username": "ann", "password": "wrong"}
    for path in ("/api/login", "/api/verifyPassword"):
        requests = [{"method": "POST", "path": path, "body": body}]
        reply = client.post("/batch", {"requests": requests, "transaction": True})
        assert reply.error == (400, 119)
        assert reply.json["error"].startswith("requests.0: ")

"""What a deployment may ask of passwords."""

from __future__ import annotations

import pytest

from tests.people import PASSWORD, log_in, sign_up, with_token


@pytest.fixture
def policy(settings):
    def use(**options):
        settings.SERVICE = {**settings.SERVICE, **options}

    return use


def test_a_pattern_that_every_password_has_to_match(client, policy):
    policy(PASSWORD_PATTERN=r"^(?=.*\d).{8,}$", PASSWORD_MESSAGE="Eight characters, one a digit.")
    reply = client.post("/users", {"username": "ann", "password": "short"})
    assert reply.error == (400, 142)
    assert reply.json["error"] == "Eight characters, one a digit."
    ann = sign_up("ann", password="long enough 1")
    assert ann.put(f"/users/{ann.user_id}", {"password": "short"}).error == (400, 142)
    assert log_in("ann", "long enough 1").status == 200


def test_no_user_name_in_a_password(client, policy):
    policy(PASSWORD_NOT_USERNAME=True)
    body = {"username": "ann", "password": "I am ANN!"}
    assert client.post("/users", body).error == (400, 142)
    ann = sign_up("ann")
    assert ann.put(f"/users/{ann.user_id}", {"password": "ann again"}).error == (400, 142)
    other = {"username": "bob", "password": "ann again"}
    assert ann.put(f"/users/{ann.user_id}", other).status == 200


def test_the_last_passwords_can_t_be_taken_again(client, policy):
    policy(PASSWORD_HISTORY=3)
    ann = sign_up("ann")
    token = ann.token

    def change(password):
        nonlocal token
        reply = with_token(token).put(f"/users/{ann.user_id}", {"password": password})
        token = reply.json.get("sessionToken", token)
        return reply

    assert change(PASSWORD).error == (400, 142)
    assert change("second").status == 200
    assert change(PASSWORD).error == (400, 142)
    assert change("third").status == 200
    assert change(PASSWORD).error == (400, 142)
    assert change("fourth").status == 200
    assert change(PASSWORD).status == 200


def test_only_as_many_former_passwords_are_kept_as_the_policy_asks_for(client, policy, master):
    from objects.users.models import FormerPassword

    policy(PASSWORD_HISTORY=3)
    ann = sign_up("ann")
    for number in range(5):
        master.put(f"/users/{ann.user_id}", {"password": f"password {number}"})
    assert FormerPassword.objects.count() == 2
    policy(PASSWORD_HISTORY=0)
    master.put(f"/users/{ann.user_id}", {"password": "the last"})
    assert FormerPassword.objects.count() == 0


def test_a_password_that_is_too_old_has_to_be_reset(client, policy):
    from datetime import timedelta

    from django.utils import timezone

    from objects.users.models import Password

    policy(PASSWORD_MAX_AGE=30)
    sign_up("ann")
    Password.objects.update(changed_at=timezone.now() - timedelta(days=29))
    assert log_in("ann").status == 200
    Password.objects.update(changed_at=timezone.now() - timedelta(days=31))
    reply = log_in("ann")
    assert reply.error == (404, 101)
    assert reply.json["error"] == "Your password has expired. Please reset your password."
    assert log_in("ann", "wrong").json["error"] == "Invalid username/password."


def test_a_hash_of_another_strength_is_replaced_at_the_next_log_in(client, settings):
    from backend.settings.django import PASSWORD_HASHERS
    from objects.users.models import Password

    sign_up("ann")
    settings.PASSWORD_HASHERS = PASSWORD_HASHERS
    for _ in range(2):
        assert log_in("ann").status == 200
    (encoded,) = Password.objects.values_list("encoded", flat=True)
    assert encoded.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")

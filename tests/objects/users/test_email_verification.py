"""Verifying an address: who has to, and what a verified one is."""

from __future__ import annotations

import pytest
from celery.exceptions import Retry

from objects.database import hold
from objects.users.email import tokens
from objects.users.email.tasks import mail_link
from objects.users.models import MailToken
from tests.held_instance import begin_hold
from tests.mailbox import Postbox
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import CLIENT, Api, Reply
from tests.threads import at_once

VERIFY = "/apps/test-app/verify_email"
pytestmark = pytest.mark.usefixtures("verifying")


def verify(token: object) -> Reply:
    """As a page of a deployment's own does it."""
    return Api({"X-Requested-With": "XMLHttpRequest"}).post(VERIFY, {"token": token})


def ask(postbox: Postbox, email: object) -> Reply:
    return postbox.after(lambda: Api(CLIENT).post("/verificationEmailRequest", {"email": email}))


@pytest.fixture
def ann(client, postbox):
    return postbox.after(lambda: sign_up("ann", email="ann@example.org"))


@pytest.fixture
def verified(ann, postbox):
    assert verify(postbox.last_token()).status == 200
    return ann


def is_verified(user) -> bool:
    email_verified = user.get("/users/me").json["emailVerified"]
    assert isinstance(email_verified, bool)
    return email_verified


def test_a_new_user_gets_a_link_and_is_not_verified(ann, postbox):
    (letter,) = postbox.letters
    assert letter.to == ["ann@example.org"]
    assert letter.subject == "Confirm your email address for localhost"
    assert f"http://localhost:8000/api{VERIFY}?token=" in letter.body
    assert "for 7 days" in letter.body
    assert not is_verified(ann)


def test_the_link_verifies_the_address_once(ann, postbox):
    token = postbox.last_token()
    assert (verify(token).status, verify(token).error) == (200, (400, -1))
    assert is_verified(ann)
    assert MailToken.objects.count() == 0


def test_without_the_setting_no_one_gets_mail(client, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "VERIFY_EMAIL": False}
    ann = postbox.after(lambda: sign_up("ann", email="ann@example.org"))
    assert ask(postbox, "ann@example.org").json == {}
    assert postbox.letters == []
    assert "emailVerified" not in ann.get("/users/me").json


def test_a_user_without_an_address_gets_no_mail(client, postbox):
    ann = postbox.after(lambda: sign_up("ann"))
    assert postbox.letters == []
    assert "emailVerified" not in ann.get("/users/me").json


def test_a_sign_up_that_fails_sends_nothing(client, ann, postbox):
    postbox.letters.clear()
    body = {"username": "ann", "password": PASSWORD, "email": "other@example.org"}
    assert postbox.after(lambda: client.post("/users", body)).error == (400, 202)
    requests = [
        {"method": "POST", "path": "/api/users", "body": {**body, "username": name}}
        for name in ("bob", "ann")
    ]
    reply = postbox.after(
        lambda: client.post("/batch", {"requests": requests, "transaction": True})
    )
    assert reply.error[1] in (202, 203)
    assert postbox.letters == []


def test_a_changed_address_has_to_be_verified_again(verified, postbox):
    path = f"/users/{verified.user_id}"
    postbox.after(lambda: verified.put(path, {"email": "new@example.org"}))
    assert not is_verified(verified)
    assert postbox.letters[-1].to == ["new@example.org"]
    assert verify(postbox.last_token()).status == 200
    assert is_verified(verified)


def test_the_same_address_again_stays_verified(verified, postbox):
    postbox.letters.clear()
    path = f"/users/{verified.user_id}"
    postbox.after(lambda: verified.put(path, {"email": "ann@example.org", "colour": "red"}))
    assert is_verified(verified)
    assert postbox.letters == []


def test_a_link_to_the_former_address_verifies_nothing(ann, postbox):
    token = postbox.last_token()
    ann.put(f"/users/{ann.user_id}", {"email": "new@example.org"})
    assert verify(token).error == (400, -1)
    assert not is_verified(ann)


def test_a_link_for_a_reset_verifies_nothing(ann):
    token = tokens.issue(ann.user_id, tokens.RESET, "ann@example.org")
    assert verify(token).error == (400, -1)


def test_clients_don_t_verify_themselves(ann):
    path = f"/users/{ann.user_id}"
    assert ann.put(path, {"emailVerified": True}).error == (400, 119)
    assert ann.put(path, {"email": "b@example.org", "emailVerified": True}).error == (400, 119)
    assert not is_verified(ann)


def test_the_master_key_may_know_better(master, postbox):
    body = {"username": "ann", "password": PASSWORD, "email": "a@b.org", "emailVerified": True}
    user_id = postbox.after(lambda: master.post("/users", body)).json["objectId"]
    assert master.get(f"/users/{user_id}").json["emailVerified"] is True
    postbox.after(lambda: master.put(f"/users/{user_id}", {"email": "c@d.org"}))
    assert master.get(f"/users/{user_id}").json["emailVerified"] is False
    assert [letter.to for letter in postbox.letters] == [["c@d.org"]]


def test_a_password_changed_in_the_meantime_leaves_the_link_good(ann, postbox):
    token = postbox.last_token()
    ann.put(f"/users/{ann.user_id}", {"password": "another good one"})
    assert verify(token).status == 200


def test_a_link_that_is_too_old_verifies_nothing(ann, postbox, settings):
    MailToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert verify(postbox.last_token()).error == (400, -1)
    assert not is_verified(ann)


@pytest.mark.django_db(transaction=True)
def test_of_two_uses_at_the_same_moment_one_works(client):
    user = sign_up("ann", email="ann@example.org")
    token = tokens.issue(user.user_id, tokens.VERIFY, "ann@example.org")
    replies = at_once([lambda: verify(token)] * 4)
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]


# -- Another link ---------------------------------------------------------------------------------


def test_another_link_takes_the_place_of_the_first(ann, postbox):
    first = postbox.last_token()
    assert ask(postbox, "ANN@example.org").json == {}
    second = postbox.last_token()
    assert verify(first).error == (400, -1)
    assert verify(second).status == 200


def test_no_one_is_told_whether_an_address_is_known_or_verified(verified, postbox):
    postbox.letters.clear()
    for email in ("ann@example.org", "nobody@example.org"):
        reply = ask(postbox, email)
        assert (reply.status, reply.json) == (200, {})
    assert postbox.letters == []


@pytest.mark.parametrize(
    ("email", "error"),
    [("", 204), (None, 204), (5, 125), ({"$ne": 1}, 125), ("ann", 125), (["a@b.org"], 125)],
)
def test_what_isn_t_an_address_is_refused(client, postbox, email, error):
    assert ask(postbox, email).error == (400, error)


def test_a_deployment_may_send_links_only_when_requested(client, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "SEND_VERIFICATION_EMAIL": False}
    ann = postbox.after(lambda: sign_up("ann", email="ann@example.org"))
    assert postbox.letters == []
    assert not is_verified(ann)
    ask(postbox, "ann@example.org")
    assert verify(postbox.last_token()).status == 200


# -- Before the address is verified ---------------------------------------------------------------


@pytest.mark.parametrize(
    "option", ["PREVENT_SIGNUP_WITH_UNVERIFIED_EMAIL", "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL"]
)
def test_a_new_user_may_have_to_wait_for_a_session(client, master, postbox, settings, option):
    settings.SERVICE = {**settings.SERVICE, option: True}
    body = {"username": "ann", "password": PASSWORD, "email": "ann@example.org"}
    reply = postbox.after(lambda: client.post("/users", body))
    assert (reply.status, set(reply.json)) == (201, {"objectId", "createdAt"})
    assert master.get("/sessions").json == {"results": []}
    if option == "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL":
        assert log_in("ann").error == (400, 205)
    assert verify(postbox.last_token()).status == 200
    assert log_in("ann").status == 200


def test_a_reset_is_a_way_in_for_whoever_lost_the_first_letter(client, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "PREVENT_LOGIN_WITH_UNVERIFIED_EMAIL": True}
    body = {"username": "ann", "password": PASSWORD, "email": "ann@example.org"}
    postbox.after(lambda: client.post("/users", body))
    postbox.after(lambda: client.post("/requestPasswordReset", {"email": "ann@example.org"}))
    form = {"token": postbox.last_token(), "new_password": "another good one"}
    assert client.post("/apps/test-app/request_password_reset", form).status == 200
    assert log_in("ann", "another good one").status == 200


def test_a_held_instance_sends_no_mail_until_it_is_resumed(ann, postbox):
    postbox.letters.clear()
    begin_hold()
    with pytest.raises(Retry):
        mail_link.apply(args=("verify",), kwargs={"user_id": ann.user_id}, throw=True)
    assert postbox.letters == []
    hold.release()
    mail_link.apply(args=("verify",), kwargs={"user_id": ann.user_id}, throw=True)
    assert len(postbox.letters) == 1

"""Resetting a password by mail: who gets a link, and what the link is good for."""

from __future__ import annotations

from threading import Event
from urllib.parse import urlencode

import pytest
from celery.contrib.testing.worker import start_worker
from celery.signals import before_task_publish, task_success
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection
from django.test.utils import CaptureQueriesContext

from backend.celery import app
from objects.users.email import links, tokens
from objects.users.email import messages as letters
from objects.users.models import MailToken
from tests.mailbox import Postbox
from tests.people import PASSWORD, log_in, sign_up
from tests.rest import CLIENT, Api, Reply
from tests.threads import at_once

NEW = "another good one"
RESET = "/apps/test-app/request_password_reset"
FORM = {"content_type": "application/x-www-form-urlencoded"}


def ask(caller: Api, postbox: Postbox, email: object) -> Reply:
    return postbox.after(lambda: caller.post("/requestPasswordReset", {"email": email}))


def link_for(postbox: Postbox, email: str) -> str:
    ask(Api(CLIENT), postbox, email)
    return postbox.last_token()


def reset(token: object, password: object = NEW) -> Reply:
    """As a page of a deployment's own does it."""
    headers = {"X-Requested-With": "XMLHttpRequest"}
    return Api(headers).post(RESET, {"token": token, "new_password": password})


@pytest.fixture
def ann(client):
    return sign_up("ann", email="Ann@example.org")


# -- Asking for a link ----------------------------------------------------------------------------


def test_a_link_goes_to_the_address_of_the_account(client, ann, postbox, settings):
    reply = ask(client, postbox, "ann@EXAMPLE.org")
    assert (reply.status, reply.json) == (200, {})
    (letter,) = postbox.letters
    assert letter.to == ["Ann@example.org"]
    assert letter.subject == "Reset your password for localhost"
    assert f"http://localhost:8000/api{RESET}?token=" in letter.body
    assert postbox.last_token() in letter.alternatives[0][0]
    assert letter.extra_headers["Auto-Submitted"] == "auto-generated"
    assert "ann" not in letter.body.replace(postbox.last_token(), "")


def test_a_host_header_has_no_part_in_the_link(client, ann, postbox):
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    postbox.after(
        lambda: client.call(
            "POST", "/requestPasswordReset", {"email": "ann@example.org"}, headers=headers
        )
    )
    assert "evil" not in postbox.letters[0].body


def test_an_address_that_only_looks_like_the_one_of_the_account_gets_nothing(client, ann, postbox):
    ask(client, postbox, "\uff21nn@example.org")
    assert [letter.to for letter in postbox.letters] == [["Ann@example.org"]]


def test_an_unknown_address_is_answered_like_a_known_one(client, ann, postbox):
    existing, unknown = (ask(client, postbox, f"{name}@example.org") for name in ("ann", "nobody"))
    assert (existing.status, existing.json) == (unknown.status, unknown.json) == (200, {})
    assert len(postbox.letters) == 1


def test_the_database_isn_t_even_asked_while_the_request_is_answered(client, ann):
    for name in ("ann", "nobody"):
        with CaptureQueriesContext(connection) as queries:
            assert client.post("/requestPasswordReset", {"email": f"{name}@x.org"}).json == {}
        assert len(queries) == 0


def test_a_deployment_may_tell_that_no_one_has_an_address(client, ann, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "RESET_SUCCESS_ON_UNKNOWN_EMAIL": False}
    assert ask(client, postbox, "nobody@example.org").error == (400, 205)
    assert ask(client, postbox, "ann@example.org").json == {}
    assert len(postbox.letters) == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, (400, 204)),
        ({"email": ""}, (400, 204)),
        ({"email": None}, (400, 204)),
        ({"email": {"$ne": None}}, (400, 125)),
        ({"email": ["ann@example.org"]}, (400, 125)),
        ({"email": 5}, (400, 125)),
        ({"email": "ann"}, (400, 125)),
        ({"email": "ann@example.org\nBcc: eve@example.org"}, (400, 125)),
        ({"token": {"$regex": "^"}}, (400, 204)),
    ],
)
def test_what_isn_t_an_address_is_refused(client, ann, postbox, body, error):
    reply = postbox.after(lambda: client.post("/requestPasswordReset", body))
    assert reply.error == error
    assert postbox.letters == []


def test_a_user_name_that_is_an_address_gets_a_link_if_there_is_no_other(client, postbox):
    sign_up("bob@example.org")
    ask(client, postbox, "Bob@example.org")
    assert postbox.letters[0].to == ["bob@example.org"]
    assert reset(postbox.last_token()).status == 200
    assert log_in("bob@example.org", NEW).status == 200


def test_an_account_with_the_address_comes_before_a_user_name_that_looks_like_it(
    client, ann, postbox
):
    sign_up("ann@example.org")
    token = link_for(postbox, "ann@example.org")
    assert reset(token).status == 200
    assert log_in("ann", NEW).status == 200
    assert log_in("ann@example.org").status == 200


@pytest.mark.parametrize("address", ["ann@example.org,eve@evil.org", "<ann@example.org", "a@b@c.d"])
def test_nothing_goes_to_what_a_server_could_take_for_two_addresses(master, postbox, address):
    postbox.after(lambda: sign_up("bob"))
    postbox.after(
        lambda: master.put(f"/users/{log_in('bob').json['objectId']}", {"email": address})
    )
    ask(master, postbox, address)
    assert postbox.letters == []
    assert not letters.is_one_mailbox(address)


# -- Using the link -------------------------------------------------------------------------------


def test_the_link_sets_the_password_and_ends_all_sessions(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    reply = reset(token)
    assert (reply.status, reply.json) == (200, "Password successfully reset")
    assert ann.get("/users/me").error == (400, 209)
    assert log_in("ann").error == (404, 101)
    assert log_in("ann", NEW).status == 200


def test_a_link_works_once(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    assert reset(token).status == 200
    assert reset(token, "a third one").error == (400, -1)
    assert log_in("ann", NEW).status == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt", range(3))
def test_of_two_uses_at_the_same_moment_one_works(client, postbox, attempt):
    user = sign_up("ann", email="ann@example.org")
    token = tokens.issue(user.user_id, tokens.RESET, "ann@example.org")
    passwords = [f"password {number}" for number in range(4)]
    replies = at_once([lambda p=password: reset(token, p) for password in passwords])
    assert sorted(reply.status for reply in replies) == [200, 400, 400, 400]
    winner = next(p for p, reply in zip(passwords, replies, strict=True) if reply.status == 200)
    assert [log_in("ann", p).status == 200 for p in passwords] == [p == winner for p in passwords]


@pytest.mark.django_db(transaction=True)
def test_using_a_link_and_changing_the_account_at_once_both_end(client, postbox):
    user = sign_up("ann", email="ann@example.org")
    token = tokens.issue(user.user_id, tokens.RESET, "ann@example.org")
    changed, used = at_once(
        [
            lambda: user.put(f"/users/{user.user_id}", {"email": "new@example.org"}),
            lambda: reset(token),
        ]
    )
    # Whichever came first: the link of a former address, or the session of a former password.
    assert (changed.status, used.status) in {(200, 200), (200, 400), (400, 200), (404, 200)}


def test_a_newer_link_takes_the_place_of_the_older_one(client, ann, postbox):
    first, second = (link_for(postbox, "ann@example.org") for _ in range(2))
    assert reset(first).error == (400, -1)
    assert reset(second).status == 200


def test_a_link_is_good_for_as_long_as_the_setting_says(client, ann, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "RESET_TOKEN_VALIDITY": 7200}
    token = link_for(postbox, "ann@example.org")
    assert "for 2 hours" in postbox.letters[0].body
    row = MailToken.objects.get()
    assert (row.expires_at - row.created_at).total_seconds() == 7200
    MailToken.objects.update(expires_at=row.created_at)
    assert reset(token).error == (400, -1)
    assert log_in("ann").status == 200


def test_the_database_has_no_token(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    stored = bytes(MailToken.objects.get().token_hash)
    assert len(token) == 43
    assert token.encode() not in stored
    assert len(stored) == 32


def test_a_link_to_a_former_address_is_worth_nothing(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    ann.put(f"/users/{ann.user_id}", {"email": "new@example.org"})
    assert reset(token).error == (400, -1)


def test_an_address_that_changed_behind_the_token_s_back_counts_as_well(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    MailToken.objects.update(email="other@example.org")
    assert reset(token).error == (400, -1)


def test_a_changed_password_makes_links_worthless(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    assert ann.put(f"/users/{ann.user_id}", {"password": "a third one"}).status == 200
    assert reset(token).error == (400, -1)
    assert MailToken.objects.count() == 0


def test_a_removed_account_takes_its_links_along(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    assert ann.delete(f"/users/{ann.user_id}").status == 200
    assert reset(token).error == (400, -1)


def test_a_link_for_verification_sets_no_password(client, ann):
    token = tokens.issue(ann.user_id, tokens.VERIFY, "Ann@example.org")
    assert reset(token).error == (400, -1)


@pytest.mark.parametrize("token", [None, "", 5, {"$regex": "^"}, ["x"], "x" * 43, "x\0y", "é" * 43])
def test_what_isn_t_a_token_is_refused(client, ann, postbox, token):
    link_for(postbox, "ann@example.org")
    assert reset(token).error == (400, -1)
    assert log_in("ann").status == 200


def test_a_session_of_another_user_doesn_t_matter(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    bob = sign_up("bob")
    reply = bob.post(RESET, {"token": token, "new_password": NEW})
    assert reply.status == 200
    assert bob.get("/users/me").json["username"] == "bob"


# -- The new password -----------------------------------------------------------------------------


def test_the_policy_holds_and_the_link_stays_good(client, ann, postbox, settings):
    settings.SERVICE = {
        **settings.SERVICE,
        "PASSWORD_PATTERN": r"^.{12,}$",
        "PASSWORD_MESSAGE": "At least 12 characters.",
        "PASSWORD_NOT_USERNAME": True,
        "PASSWORD_HISTORY": 2,
    }
    token = link_for(postbox, "ann@example.org")
    short = reset(token, "short")
    assert (short.error, short.json["error"]) == ((400, 142), "At least 12 characters.")
    assert reset(token, "not without Ann").error == (400, 142)
    assert reset(token, PASSWORD).error == (400, 142)
    assert reset(token, "").error == reset(token, None).error == (400, 201)
    assert reset(token, {"$ne": 1}).error == (400, 201)
    assert reset(token, NEW).status == 200
    assert reset(link_for(postbox, "ann@example.org"), PASSWORD + "123").status == 200
    assert reset(link_for(postbox, "ann@example.org"), NEW).error == (400, 142)


@pytest.mark.parametrize("unlocks", [True, False])
def test_a_reset_unlocks_the_account_if_the_deployment_wants(
    client, ann, postbox, settings, unlocks
):
    settings.SERVICE = {
        **settings.SERVICE,
        "LOCKOUT_THRESHOLD": 2,
        "UNLOCK_ON_PASSWORD_RESET": unlocks,
    }
    for _ in range(3):
        log_in("ann", "wrong")
    assert "locked" in log_in("ann").json["error"]
    assert reset(link_for(postbox, "ann@example.org")).status == 200
    assert (log_in("ann", NEW).status == 200) is unlocks


def test_an_expired_password_is_renewed(client, ann, postbox, settings):
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_MAX_AGE": 1}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE objects_password SET changed_at = now() - interval '2 days'")
    assert "expired" in log_in("ann").json["error"]
    assert reset(link_for(postbox, "ann@example.org")).status == 200
    assert log_in("ann", NEW).status == 200


def test_a_reset_proves_the_address(master, ann, postbox, verifying):
    assert reset(link_for(postbox, "ann@example.org")).status == 200
    assert master.get(f"/users/{ann.user_id}").json["emailVerified"] is True


# -- Sending --------------------------------------------------------------------------------------


class FailsTwice(EmailBackend):
    """A mail server that is away at first."""

    left = 0

    def send_messages(self, messages):
        if FailsTwice.left:
            FailsTwice.left -= 1
            raise ConnectionRefusedError("ann@example.org")
        return super().send_messages(messages)


@pytest.mark.parametrize("failures", [2, 1000])
def test_a_letter_that_can_t_be_sent_is_tried_again(
    client, ann, postbox, settings, caplog, failures
):
    settings.EMAIL_BACKEND = f"{FailsTwice.__module__}.FailsTwice"
    FailsTwice.left = failures
    assert ask(client, postbox, "ann@example.org").status == 200
    if failures == 2:
        assert len(mail.outbox) == 1
        assert reset(postbox.last_token()).status == 200
    else:
        assert mail.outbox == []
    assert "ann@example.org" not in caplog.text


def test_what_goes_to_the_worker_has_no_token(client, ann, postbox):
    observed = []

    def note(body, **kwargs):
        observed.append(body)

    app.conf.task_always_eager = False
    before_task_publish.connect(note)
    ask(client, postbox, "ann@example.org")
    before_task_publish.disconnect(note)
    assert observed[0][:2] == (("reset",), {"address": "ann@example.org"})
    assert MailToken.objects.count() == 0


def test_a_batch_may_ask_as_well_and_is_counted(client, ann, postbox):
    requests = [
        {"method": "POST", "path": "/api/requestPasswordReset", "body": {"email": email}}
        for email in ("ann@example.org", "")
    ]
    reply = postbox.after(lambda: client.post("/batch", {"requests": requests}))
    assert reply.json[0] == {"success": {}}
    assert reply.json[1]["error"]["code"] == 204
    assert len(postbox.letters) == 1


def test_pages_aren_t_part_of_a_batch(client, ann):
    requests = [{"method": "POST", "path": f"/api{RESET}", "body": {"token": "x"}}]
    assert client.post("/batch", {"requests": requests}).status == 400


def test_a_form_is_as_good_as_json(client, ann, postbox):
    token = link_for(postbox, "ann@example.org")
    raw = urlencode({"token": token, "new_password": NEW, "repeat_password": NEW}).encode()
    assert links.account_of_reset(token).username == "ann"
    reply = Api({}).call("POST", RESET, raw=raw, **FORM)
    assert reply.status == 303
    assert reply.headers["Location"] == "/api/apps/test-app/password_changed"
    assert log_in("ann", NEW).status == 200


@pytest.mark.django_db(transaction=True)
def test_a_worker_sends_the_letter(client, transactional_db):
    sign_up("ann", email="ann@example.org")
    done = Event()

    def note(sender, **kwargs):
        done.set()

    task_success.connect(note)
    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        assert client.post("/requestPasswordReset", {"email": "ann@example.org"}).json == {}
        assert done.wait(30)
    task_success.disconnect(note)
    assert [letter.to for letter in mail.outbox] == [["ann@example.org"]]

"""The pages behind mailed links, as HTTP answers."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from objects.users.email import tokens
from objects.users.models import MailToken
from tests.people import log_in, sign_up
from tests.rate_limits import *  # noqa: F403

APP = "/api/apps/test-app"
RESET, VERIFY = f"{APP}/request_password_reset", f"{APP}/verify_email"
RESEND = f"{APP}/resend_verification_email"
NEW = "another good one"
NAMED = ["invalid_link.html", "password_reset_success.html", "verify_email_success.html"]
NOTICES = ["email_verified", "password_changed", "reset_mail_sent", "verification_mail_sent"]


@pytest.fixture
def browser(db):
    """A browser without cookies of ours."""
    return Client(raise_request_exception=False)


@pytest.fixture
def ann(db):
    return sign_up("ann", email="ann@example.org")


@pytest.fixture
def reset_token(ann):
    return tokens.issue(ann.user_id, tokens.RESET, "ann@example.org")


@pytest.fixture
def verify_token(ann, verifying):
    return tokens.issue(ann.user_id, tokens.VERIFY, "ann@example.org")


def submit(browser: Client, path: str, **fields: str) -> Any:
    return browser.post(path, urlencode(fields), content_type="application/x-www-form-urlencoded")


def text_of(response: Any) -> str:
    return unescape(re.sub(r"<style.*?</style>|<[^>]*>", "", response.content.decode(), flags=re.S))


# -- The two links --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [f"{RESET}?token=%s", "/api/apps/choose_password?id=test-app&token=%s"]
)
def test_the_link_of_a_reset_shows_a_form_that_sets_the_password(browser, reset_token, path):
    form = browser.get(path % reset_token)
    assert form.status_code == 200
    page = form.content.decode()
    assert f'name="token" value="{reset_token}"' in page
    assert f'action="{RESET}"' in page
    assert page.count('autocomplete="new-password"') == 2
    assert 'value="ann" autocomplete="username"' in page
    answer = submit(browser, RESET, token=reset_token, new_password=NEW, repeat_password=NEW)
    assert (answer.status_code, answer["Location"]) == (303, f"{APP}/password_changed")
    assert browser.get(answer["Location"]).status_code == 200
    assert log_in("ann", NEW).status == 200


def test_looking_at_a_link_doesn_t_use_it(browser, reset_token, verify_token):
    for _ in range(3):
        assert browser.get(RESET, {"token": reset_token}).status_code == 200
        assert browser.get(VERIFY, {"token": verify_token}).status_code == 200
        assert browser.head(VERIFY, {"token": verify_token}).status_code == 200
    assert MailToken.objects.count() == 2


def test_the_button_of_a_verification_verifies(browser, ann, verify_token):
    page = browser.get(VERIFY, {"token": verify_token})
    assert "ann@example.org" in text_of(page)
    answer = submit(browser, VERIFY, token=verify_token)
    assert (answer.status_code, answer["Location"]) == (303, f"{APP}/email_verified")
    assert ann.get("/users/me").json["emailVerified"] is True
    again = submit(browser, VERIFY, token=verify_token)
    assert again.status_code == 404
    assert "doesn't work any more" in text_of(again)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"new_password": "short", "repeat_password": "short"}, "At least 12 characters."),
        ({"new_password": NEW, "repeat_password": "else"}, "not the same"),
        ({"new_password": "", "repeat_password": ""}, "Enter a new password."),
        ({}, "Enter a new password."),
    ],
)
def test_a_password_that_isn_t_taken_shows_why_and_the_form_again(
    browser, reset_token, settings, fields, message
):
    settings.SERVICE = {
        **settings.SERVICE,
        "PASSWORD_PATTERN": ".{12}",
        "PASSWORD_MESSAGE": "At least 12 characters.",
    }
    answer = submit(browser, RESET, token=reset_token, **fields)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "<title>Error: Choose a new password" in page
    summary = re.search(
        r'<div class="errors" role="alert" tabindex="-1" autofocus.*?</div>', page, re.S
    )
    assert summary
    assert message in summary[0]
    assert '<a href="#new_password">' in summary[0]
    assert 'aria-invalid="true"' in page
    assert "short" not in page.replace("At least", "")
    assert submit(browser, RESET, token=reset_token, new_password=NEW).status_code == 303


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\0", "é" * 43, "../../etc/passwd"])
@pytest.mark.parametrize("path", [RESET, VERIFY])
def test_a_link_that_isn_t_good_says_so_and_offers_another(browser, ann, path, token):
    for answer in (
        browser.get(path, {"token": token}),
        submit(browser, path, token=token, new_password=NEW),
    ):
        assert answer.status_code == 404
        assert "This link doesn't work any more" in text_of(answer)
        assert 'href="/api/apps/test-app/request' in answer.content.decode() or (
            f'action="{RESEND}"' in answer.content.decode()
        )


def test_a_link_that_is_too_old_is_the_same(browser, reset_token):
    MailToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert browser.get(RESET, {"token": reset_token}).status_code == 404


def test_a_link_of_another_application_is_none(browser, reset_token):
    for path in ("/api/apps/other/request_password_reset", "/api/apps/choose_password"):
        assert browser.get(path, {"token": reset_token, "id": "other"}).status_code == 404
    assert (
        submit(
            browser, "/api/apps/other/request_password_reset", token=reset_token, new_password=NEW
        ).status_code
        == 404
    )
    assert log_in("ann").status == 200


# -- Asking for links -----------------------------------------------------------------------------


def test_a_form_asks_for_a_reset(browser, ann, postbox):
    assert 'type="email"' in browser.get(RESET).content.decode()
    for email in ("ann@example.org", "nobody@example.org"):
        answer = postbox.after(lambda e=email: submit(browser, RESET, email=e))
        assert (answer.status_code, answer["Location"]) == (303, f"{APP}/reset_mail_sent")
    assert [letter.to for letter in postbox.letters] == [["ann@example.org"]]
    assert browser.get(postbox.last_link()).status_code == 200


def test_a_form_asks_for_another_verification(browser, ann, verifying, postbox):
    assert browser.get(RESEND).status_code == 200
    for email in ("ann@example.org", "nobody@example.org"):
        answer = postbox.after(lambda e=email: submit(browser, RESEND, email=e))
        assert (answer.status_code, answer["Location"]) == (303, f"{APP}/verification_mail_sent")
    assert [letter.to for letter in postbox.letters] == [["ann@example.org"]]
    assert browser.get(postbox.last_link()).status_code == 200


@pytest.mark.parametrize("path", [RESET, RESEND])
@pytest.mark.parametrize("email", ["", "ann", '"><script>alert(1)</script>'])
def test_what_isn_t_an_address_is_shown_again_with_the_reason(browser, path, email):
    answer = submit(browser, path, email=email)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert 'role="alert"' in page
    assert "<script" not in page


def test_pages_and_routes_share_their_limits(browser, client, limit):
    limit({"path": "/requestPasswordReset", "count": 2})
    assert client.post("/requestPasswordReset", {"email": "a@b.org"}).status == 200
    assert submit(browser, RESET, email="a@b.org").status_code == 303
    refused = submit(browser, RESET, email="a@b.org")
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert refused["RateLimit-Limit"] == "2"
    assert "Too many attempts" in text_of(refused)
    assert browser.get(RESET).status_code == 200


# -- Scripts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{"X-Requested-With": "XMLHttpRequest"}, {"Accept": "application/json"}]
)
def test_scripts_get_json(browser, reset_token, headers):
    def send(**fields):
        return browser.post(
            RESET,
            urlencode(fields),
            content_type="application/x-www-form-urlencoded",
            headers=headers,
        )

    assert send(new_password=NEW).json() == {"code": -1, "error": "Missing token"}
    assert send(token=reset_token).json() == {"code": 201, "error": "Missing password"}
    assert send(token="x", new_password=NEW).json()["code"] == -1
    answer = send(token=reset_token, new_password=NEW)
    assert (answer.status_code, answer.json()) == (200, "Password successfully reset")


@pytest.mark.parametrize("token", [{"$regex": "^"}, ["x"], 5, None, True])
def test_a_token_that_is_no_text_is_no_token(browser, reset_token, token):
    body = {"token": token, "new_password": NEW}
    assert browser.post(RESET, body, content_type="application/json").json()["code"] == -1
    assert browser.post(VERIFY, body, content_type="application/json").json()["code"] == -1


@pytest.mark.parametrize(
    ("raw", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff", "application/x-www-form-urlencoded", 400),
        (b"token=%ff", "application/x-www-form-urlencoded", 400),
        (b"a=b&" * 100, "application/x-www-form-urlencoded", 400),
        (b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        (b"<a/>", "text/xml", 415),
        (b"--x--", "multipart/form-data; boundary=x", 415),
    ],
)
def test_what_can_t_be_read_is_refused(browser, raw, content_type, status):
    answer = browser.generic("POST", RESET, raw, content_type=content_type)
    assert answer.status_code == status


# -- What holds for every page --------------------------------------------------------------------


def every_page(browser: Client) -> list[Any]:
    return [
        *(browser.get(f"{APP}/{name}") for name in NOTICES),
        browser.get(RESET),
        browser.get(RESEND),
        browser.get(RESET, {"token": "x"}),
        browser.get(VERIFY, {"token": "x"}),
        browser.get(f"{APP}/nothing"),
        browser.delete(RESET),
        submit(browser, RESET, email=""),
        submit(browser, RESEND, email="nobody@example.org"),
    ]


def test_pages_are_kept_nowhere_and_shown_in_no_frame(browser, reset_token, verify_token):
    pages = [
        *every_page(browser),
        browser.get(RESET, {"token": reset_token}),
        browser.get(VERIFY, {"token": verify_token}),
    ]
    nonces = set()
    for page in pages:
        assert page["Content-Type"] == "text/html; charset=utf-8"
        assert page["Cache-Control"] == "no-store"
        assert page["Referrer-Policy"] == "no-referrer"
        assert page["X-Content-Type-Options"] == "nosniff"
        assert page["X-Frame-Options"] == "DENY"
        assert "Set-Cookie" not in page
        if page.status_code == 303:
            continue
        policy = page["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy
        nonce = re.search("nonce-([^']+)", policy)[1]
        nonces.add(nonce)
        content = page.content.decode()
        if content:
            assert f'<style nonce="{nonce}">' in content
            assert '<html lang="en">' in content
            assert content.count("<h1>") == 1
            assert content.count("<title>") == 1
            assert not re.search(r"<script|\son\w+=|style=|javascript:|https?://", content)
            ids = re.findall(r'\sid="([^"]+)"', content)
            assert len(ids) == len(set(ids))
            for label in re.findall(r'<label for="([^"]+)"', content):
                assert label in ids
    assert len(nonces) == len([page for page in pages if page.status_code != 303])


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'-alert(1)-'",
        "{{ 7|add:7 }}",
    ],
)
def test_nothing_that_is_sent_or_stored_becomes_markup(client, browser, settings, attack):
    settings.SERVICE = {
        **settings.SERVICE,
        "APP_NAME": f"App {attack}",
        "PASSWORD_PATTERN": "^$",
        "PASSWORD_MESSAGE": f"No {attack}",
    }
    user = sign_up_freely(settings, f"ann{attack}")
    token = tokens.issue(user.user_id, tokens.RESET, "ann@example.org")
    pages = [
        browser.get(RESET, {"token": token}),
        submit(browser, RESET, token=token, new_password=attack),
        browser.get(RESET, {"token": attack, "id": attack, "username": attack, "app": attack}),
        browser.get(VERIFY, {"token": attack, "username": attack}),
        browser.get(f"{APP}/password_changed", {"username": attack, "error": attack}),
        submit(browser, RESET, email=attack),
        submit(browser, RESEND, email=attack, username=attack),
        browser.get(f"/api/apps/{attack.replace('/', '%2F')}/verify_email"),
    ]
    for page in pages:
        content = page.content.decode()
        assert "<script" not in content
        assert "<img" not in content
        assert attack[:7] not in content or "<" not in attack[:7]
    for page in pages[:2]:
        assert f"App {attack}" in text_of(page)
        assert 'value="' + escape("ann" + attack) + '"' in page.content.decode()


def sign_up_freely(settings: Any, name: str) -> Any:
    pattern = settings.SERVICE["PASSWORD_PATTERN"]
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_PATTERN": ""}
    user = sign_up(name, email="ann@example.org")
    settings.SERVICE = {**settings.SERVICE, "PASSWORD_PATTERN": pattern}
    return user


@pytest.mark.parametrize(
    "name",
    [
        "base",
        "error",
        "choose_password",
        "..%2f..%2f..%2fetc%2fpasswd",
        "..%5cbase",
        "%2e%2e%2fmail%2fbase",
        "%2e%2e/base",
        "../mail/base.html",
        "email_verified.html",
        "email_verified%00",
        "a" * 5000,
    ],
)
def test_only_pages_that_are_named_in_the_code_can_be_requested(browser, name):
    answer = browser.get(f"{APP}/{name}")
    # 403: no route at all, and no key; 400: control characters
    assert answer.status_code in (403, 404, 400)
    assert "root:" not in answer.content.decode()


def test_other_methods_are_refused(browser):
    for path in (RESET, VERIFY, RESEND, f"{APP}/password_changed", "/api/apps/choose_password"):
        for method in ("PUT", "DELETE", "PATCH"):
            answer = browser.generic(method, path)
            assert answer.status_code == 405
            assert "GET" in answer["Allow"]
    assert submit(browser, f"{APP}/password_changed").status_code == 405


@pytest.mark.parametrize(("broken", "is_page"), [("request_reset", True), ("base", False)])
def test_a_fault_is_told_with_the_number_of_the_request(
    browser, settings, tmp_path, broken, is_page
):
    folder = tmp_path / "users" / "pages"
    folder.mkdir(parents=True)
    (folder / f"{broken}.html").write_text("{% nothing %}")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    answer = browser.get(RESET, headers={"X-Request-Id": "request-0001"})
    assert answer.status_code == 500
    content = answer.content.decode()
    assert "request-0001" in content
    assert "nothing" not in content
    assert ("<h1>Something went wrong</h1>" in content) is is_page


def test_a_deployment_may_bring_templates_of_its_own(browser, settings, tmp_path, ann, postbox):
    for path, content in {
        "users/pages/password_changed.html": "<h1>Fertig, {{ app_name }}</h1>",
        "users/mail/reset_password.txt": "Nur für {{ address }}: {{ link }}",
        "users/mail/reset_password_subject.txt": "Neu\nBcc: eve@evil.org",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    assert browser.get(f"{APP}/password_changed").content.decode() == "<h1>Fertig, localhost</h1>"
    postbox.after(lambda: submit(browser, RESET, email="ann@example.org"))
    (letter,) = postbox.letters
    assert letter.body.startswith("Nur für ann@example.org: http")
    assert letter.subject == "Neu Bcc: eve@evil.org"
    assert letter.recipients() == ["ann@example.org"]


@pytest.mark.parametrize("name", NAMED)
def test_pages_have_parse_s_names_too(browser, name):
    response = browser.get(f"/api/apps/{name}")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")
    assert browser.get(f"/api/apps/no_{name}").status_code == 404


def test_a_script_learns_that_a_link_is_wrong_by_parse_s_message(browser, ann):
    response = browser.post(
        RESET,
        urlencode({"token": "wrong", "new_password": NEW, "username": "ann"}),
        content_type="application/x-www-form-urlencoded",
        HTTP_X_REQUESTED_WITH="XMLHttpRequest",
    )
    assert response.json() == {
        "code": -1,
        "error": "Failed to reset password: username / email / token is invalid",
    }
    assert log_in("ann").status == 200

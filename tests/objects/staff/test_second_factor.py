"""Staff log in with a password and, where they have one or need one, a second factor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from io import StringIO
from typing import Any

import pyotp
import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import URLResolver

from backend.kernel.errors import InvalidSecondFactor
from objects.staff import second_factor
from objects.staff.models import StaffRecoveryCode, StaffSecondFactor
from objects.users.accounts import short_lived
from tests.objects.staff.accounts import (
    LOG_IN,
    PASSWORD,
    SET_UP,
    START,
    STEP,
    Person,
    person,
    secret_of,
    set_up_app,
    shown_codes,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(mode) -> Person:
    mode("optional")
    return person()


@pytest.fixture(autouse=True)
def no_guesses():
    yield
    for user in User.objects.all():
        short_lived.forget(f"staff guesses:{user.pk}")


# -- The second step ------------------------------------------------------------------------------


def test_a_password_alone_opens_no_page(root):
    reply = root.log_in(next="/admin/logs/?level=error")
    assert reply.headers["Location"] == "/admin/logs/?level=error"
    reply = root.client.get("/admin/logs/?level=error")
    assert reply.headers["Location"] == f"{STEP}?next=%2Fadmin%2Flogs%2F%3Flevel%3Derror"
    assert "Code of your authenticator app" in root.client.get(STEP).text
    reply = root.enter(root.code(), next="/admin/logs/?level=error")
    assert reply.headers["Location"] == "/admin/logs/?level=error"
    assert root.is_in


@pytest.mark.parametrize("wrong", ["000000", "", "x" * 30, "١٢٣٤٥٦", "1" * 400, "\x00"])
def test_a_wrong_code_opens_none_either(root, wrong):
    root.log_in()
    reply = root.enter(wrong)
    assert (reply.status_code, "The code is wrong" in reply.text) == (200, True)
    assert not root.is_in


def test_a_code_works_once(root):
    root.log_in()
    code = root.code()
    assert root.enter(code).status_code == 302
    other = Person(root.user)
    other.log_in()
    assert other.enter(code).status_code == 200
    assert not other.is_in


def test_a_recovery_code_works_once_and_is_stored_as_a_hash(root):
    assert len(set(root.codes)) == second_factor.NUMBER_OF_CODES
    stored = {bytes(row.code_hash) for row in StaffRecoveryCode.objects.all()}
    assert stored.isdisjoint(code.encode() for code in root.codes)
    root.log_in()
    code = root.codes[0]
    assert root.enter(f" {code[:10]} {code[10:]} ").status_code == 302
    assert "You have 7 recovery codes left." in root.client.get(START).text
    other = Person(root.user)
    other.log_in()
    assert other.enter(code).status_code == 200


def test_the_secret_is_stored_encrypted(root):
    assert root.secret not in StaffSecondFactor.objects.get().secret


def test_another_s_code_opens_nothing(root):
    eve = person("eve")
    eve.log_in()
    for code in (root.code(), root.codes[0]):
        eve.enter(code)
        assert not eve.is_in


def test_after_ten_wrong_codes_only_a_recovery_code_works(root):
    root.log_in()
    for _ in range(10):
        root.enter("000000")
    assert "Too many wrong MFA tokens" in root.enter(root.code()).text
    assert root.enter(root.codes[0]).status_code == 302


def test_codes_are_counted_as_guesses_at_the_account(root, limit):
    limit({"path": "/login", "per": "account", "count": 3})
    root.log_in()
    assert root.enter("000000", REMOTE_ADDR="198.51.100.1").status_code == 200
    assert root.enter("000000", REMOTE_ADDR="198.51.100.2").status_code == 200
    reply = root.enter(root.code(), REMOTE_ADDR="198.51.100.3")
    assert (reply.status_code, int(reply.headers["Retry-After"]) > 0) == (429, True)


@pytest.mark.parametrize("target", ["https://example.org/", "//example.org", "javascript:alert(1)"])
def test_next_leads_to_no_other_site(root, target):
    root.log_in()
    assert root.enter(root.code(), next=target).headers["Location"] == START


def test_the_step_can_be_left(root):
    root.log_in()
    assert root.client.post(STEP, {"leave": "1"}).headers["Location"] == LOG_IN
    assert root.client.get(STEP).headers["Location"].startswith(LOG_IN)
    assert root.client.get(START).headers["Location"].startswith(LOG_IN)


def test_a_login_as_another_user_needs_the_other_s_factor(root):
    root.log_in()
    root.enter(root.code())
    eve = Person(person("eve").user, client=root.client)
    eve.log_in()
    assert not eve.is_in


def test_the_step_ends_the_session_s_former_id(root):
    root.log_in()
    before = root.client.cookies["sessionid"].value
    root.enter(root.code())
    assert root.client.cookies["sessionid"].value != before


def pages(patterns: list[Any], above: str = START) -> Iterator[tuple[str, str | None]]:
    """Every path of the admin, with a word for each parameter, and the name of its page."""
    for pattern in patterns:
        words = re.sub(r"<[^>]*>|\(\?P.*", "1", str(pattern.pattern))
        path = above + words.strip("^$")
        if isinstance(pattern, URLResolver):
            yield from pages(pattern.url_patterns, path)
        else:
            yield path, pattern.name


@pytest.mark.slow
def test_every_page_of_the_admin_is_behind_the_step(root):
    """Also pages whose views check nothing: the user is anonymous before."""
    root.log_in()
    open_pages, number = set(), 0
    for path, name in pages(admin.site.urls[0]):
        number += 1
        for send in (root.client.get, root.client.post):
            reply = send(path)
            if reply.status_code != 302 or not reply.headers["Location"].startswith(STEP):
                open_pages.add((send.__name__, name))
    assert open_pages == {
        ("post", "login"),
        ("get", "second_factor"),
        ("post", "second_factor"),
    }
    assert number > 100


# -- What is required -----------------------------------------------------------------------------


def test_without_a_second_factor_a_password_is_enough_while_it_is_optional(mode):
    mode("optional")
    bare = person(with_app=False)
    bare.log_in()
    assert bare.is_in


def test_off_takes_the_password_alone(mode):
    mode("off")
    root = person()
    root.log_in()
    assert root.is_in
    assert "Second factor" not in root.client.get(START).text
    for path in (STEP, SET_UP):
        assert root.client.get(path).headers["Location"] == START


def test_a_session_from_before_it_was_required_leads_to_the_set_up(mode):
    mode("optional")
    bare = person(with_app=False)
    bare.log_in()
    assert bare.is_in
    mode("required")
    for path in (START, "/admin/password_change/", "/admin/auth/user/", STEP):
        assert bare.client.get(path).headers["Location"].startswith(SET_UP), path
    assert bare.client.post("/admin/password_change/", {}).headers["Location"].startswith(SET_UP)
    page = bare.client.get(SET_UP)
    assert "Your account needs a second factor" in page.text
    codes = set_up_app(bare)
    assert len(shown_codes(codes)) == second_factor.NUMBER_OF_CODES
    assert "no-store" in codes.headers["Cache-Control"]
    assert bare.is_in


def test_a_set_up_for_others_sessions_means_the_second_step(mode):
    mode("optional")
    bare = person(with_app=False)
    elsewhere = Person(bare.user)
    for browser in (bare, elsewhere):
        browser.log_in()
    set_up_app(bare)
    assert bare.is_in
    assert not elsewhere.is_in


def test_of_two_set_ups_at_once_the_second_is_refused():
    bare = person(with_app=False)
    seen = second_factor.since(bare.user.pk)
    for is_first in (True, False):
        bare.secret = pyotp.random_base32()
        with nullcontext() if is_first else pytest.raises(InvalidSecondFactor):
            second_factor.set_up_app(bare.user, bare.secret, bare.code(0), seen=seen)


def test_a_customer_of_django_who_is_no_staff_is_left_alone(mode):
    mode("required")
    User.objects.create_user("customer", password=PASSWORD)
    client = Client()
    client.login(username="customer", password=PASSWORD)
    assert client.get(START).headers["Location"].startswith(LOG_IN)
    assert client.get(SET_UP).headers["Location"].startswith(LOG_IN)


# -- Set-up ---------------------------------------------------------------------------------------


def test_a_wrong_code_sets_nothing_up_and_the_page_keeps_its_secret(mode):
    mode("required")
    bare = person(with_app=False)
    bare.log_in()
    secret, signed = secret_of(bare.client.get(SET_UP))
    form = {"action": "app", "signed": signed, "code": "000000"}
    page = bare.client.post(SET_UP, form)
    assert "The code is wrong" in page.text
    assert secret_of(page)[0] == secret
    assert not bare.is_in


def test_a_secret_that_the_page_has_not_made_is_refused(mode):
    mode("required")
    bare, eve = person(with_app=False), person("eve", with_app=False)
    for browser in (bare, eve):
        browser.log_in()
    bare.secret, theirs = secret_of(eve.client.get(SET_UP))
    for signed in (theirs, "", "x" * 40):
        form = {"action": "app", "signed": signed, "code": bare.code()}
        assert "The page is too old" in bare.client.post(SET_UP, form).text
    assert second_factor.since(bare.user.pk) is None


def test_a_change_needs_the_second_factor_again_after_some_minutes(root):
    root.log_in()
    root.enter(root.code())
    assert root.client.get(SET_UP).status_code == 200
    session = root.client.session
    session["second_factor"] = {**session["second_factor"], "at": 0.0}
    session.save()
    assert root.is_in
    reply = root.client.post(SET_UP, {"action": "remove-app"})
    assert reply.headers["Location"].startswith(STEP)
    assert StaffSecondFactor.objects.exists()
    root.enter(root.codes[0], next=SET_UP)
    root.client.post(SET_UP, {"action": "remove-app"})
    assert not StaffSecondFactor.objects.exists()
    assert not StaffRecoveryCode.objects.exists()
    assert root.is_in


def test_the_last_factor_stays_where_one_is_required(root, mode):
    mode("required")
    root.log_in()
    root.enter(root.code())
    page = root.client.post(SET_UP, {"action": "remove-app"})
    assert "It is your only second factor." in page.text
    assert root.is_in


def test_a_new_app_replaces_the_former_one_and_its_recovery_codes(root):
    root.log_in()
    root.enter(root.code())
    former, former_codes = root.secret, root.codes
    root.codes = shown_codes(set_up_app(root))
    assert root.is_in
    other = Person(root.user, former)
    other.log_in()
    for code in (other.code(), former_codes[0]):
        other.enter(code)
        assert not other.is_in
    other.enter(root.codes[0])
    assert other.is_in


def test_new_recovery_codes_end_the_former_ones(root):
    root.log_in()
    root.enter(root.code())
    codes = shown_codes(root.client.post(SET_UP, {"action": "codes"}))
    assert len(set(codes) - set(root.codes)) == second_factor.NUMBER_OF_CODES
    other = Person(root.user)
    other.log_in()
    assert other.enter(root.codes[0]).status_code == 200
    assert other.enter(codes[0]).status_code == 302


def test_codes_without_a_factor_are_not_made(mode):
    mode("optional")
    bare = person(with_app=False)
    bare.log_in()
    bare.client.post(SET_UP, {"action": "codes"})
    assert not StaffRecoveryCode.objects.exists()


def test_each_change_is_in_the_history_and_the_log(root, caplog):
    root.log_in()
    root.enter(root.code())
    root.client.post(SET_UP, {"action": "codes"})
    root.client.post(SET_UP, {"action": "remove-app"})
    call_command("reset_staff_second_factor", "root", stdout=StringIO())
    entries = LogEntry.objects.filter(object_id=str(root.user.pk)).order_by("pk")
    assert [entry.get_change_message() for entry in entries] == [
        "Second factor: set up an authenticator app.",
        "Second factor: made new recovery codes.",
        "Second factor: removed the authenticator app.",
        "Second factor: reset with reset_staff_second_factor.",
    ]


# -- The command ----------------------------------------------------------------------------------


def test_the_command_resets_it(root, mode):
    root.log_in()
    root.enter(root.code())
    mode("required")
    out = StringIO()
    call_command("reset_staff_second_factor", "root", stdout=out)
    assert out.getvalue() == "root: the second factor is reset.\n"
    assert not StaffRecoveryCode.objects.exists()
    assert root.client.get(START).headers["Location"].startswith(SET_UP)
    # Nor does a session that passed the former factor pass a later one.
    owner = Person(root.user)
    owner.log_in()
    set_up_app(owner)
    assert owner.is_in
    assert root.client.get(START).headers["Location"].startswith(STEP)
    call_command("reset_staff_second_factor", "root", stdout=StringIO())
    call_command("reset_staff_second_factor", "root", stdout=out)
    assert out.getvalue().endswith("root has no second factor.\n")


def test_the_command_names_who_is_missing(db):
    User.objects.create_user("customer")
    for name in ("nobody", "customer"):
        with pytest.raises(CommandError, match=f"There is no staff user '{name}'"):
            call_command("reset_staff_second_factor", name)

"""The pages in a real browser: what a person does with the links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from objects.users.models import MailToken
from tests.chromium import NEEDS_CHROMIUM
from tests.mailbox import Postbox
from tests.people import log_in, sign_up
from tests.rest import CLIENT, Api

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]
NEW = "another good one"
RULES = {
    "VERIFY_EMAIL": True,
    "PASSWORD_PATTERN": ".{12}",
    "PASSWORD_MESSAGE": "At least 12 characters.",
}


@pytest.fixture
def page(chromium: Any, live_server: Any, settings: Any) -> Iterator[Page]:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url, **RULES}
    # No script takes part, and everything that the page's policy blocks is an error.
    context = chromium.new_context(java_script_enabled=False, base_url=live_server.url)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    yield page
    context.close()
    assert [text for text in complaints if "Failed to load resource" not in text] == []


@pytest.fixture
def ann(page: Page, postbox: Postbox) -> Any:
    return sign_up("ann", email="ann@example.org", password="a first good one")


def look(page: Page, name: str) -> None:
    """Keep a picture of the page, in the folder that PAGE_PICTURES names."""
    folder = os.environ.get("PAGE_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def expect_heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def test_from_the_letter_to_signing_in_with_a_new_password(page, ann, postbox):
    Api(CLIENT).post("/requestPasswordReset", {"email": "ann@example.org"})
    page.goto(postbox.last_link())
    expect_heading(page, "Choose a new password")
    look(page, "choose_password")
    assert page.get_by_label("Account").input_value() == "ann"

    page.get_by_label("New password", exact=True).fill("short")
    page.get_by_label("Repeat the new password").fill("short")
    page.get_by_role("button", name="Save the password").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("At least 12 characters.")
    look(page, "choose_password_error")
    assert page.locator(":focus").get_attribute("class") == "errors"
    assert "Error" in page.title()
    assert "token" not in page.url

    alert.get_by_role("link").click()
    page.keyboard.type(NEW)
    page.keyboard.press("Tab")
    page.keyboard.type(NEW)
    page.keyboard.press("Enter")
    expect_heading(page, "Your password is changed")
    look(page, "password_changed")
    assert log_in("ann", NEW).status == 200
    assert log_in("ann", "a first good one").status == 404
    page.reload()
    expect_heading(page, "Your password is changed")


def test_from_an_old_link_to_a_new_one(page, ann, postbox):
    Api(CLIENT).post("/requestPasswordReset", {"email": "ann@example.org"})
    MailToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    page.goto(postbox.last_link())
    expect_heading(page, "This link doesn't work any more")
    look(page, "invalid_reset_link")
    page.get_by_role("link", name="Get a new link").click()
    look(page, "request_reset")

    page.get_by_label("Email address").fill("ann")
    page.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("name@example.org")
    look(page, "request_reset_error")
    assert page.get_by_label("Email address").input_value() == "ann"

    page.get_by_label("Email address").fill("ann@example.org")
    page.get_by_role("button").click()
    expect_heading(page, "Check your email")
    look(page, "reset_mail_sent")
    page.goto(postbox.last_link())
    expect_heading(page, "Choose a new password")


def test_an_address_is_verified_by_the_button(page, ann, postbox):
    page.goto(postbox.last_link())
    look(page, "verify_email")
    assert "ann@example.org" in page.get_by_role("main").inner_text()
    assert ann.get("/users/me").json["emailVerified"] is False
    page.get_by_role("button", name="Yes, this is my address").click()
    expect_heading(page, "Your address is confirmed")
    look(page, "email_verified")
    assert ann.get("/users/me").json["emailVerified"] is True

    page.goto(postbox.last_link())
    look(page, "invalid_verification_link")
    assert "confirmed already" in page.get_by_role("main").inner_text()


def test_another_verification_is_sent_from_a_link_that_is_too_old(page, ann, postbox):
    MailToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    page.goto(postbox.last_link())
    page.get_by_label("Email address").fill("ann@example.org")
    page.get_by_role("button", name="Send me a new link").click()
    expect_heading(page, "Check your email")
    look(page, "verification_mail_sent")
    page.goto(postbox.last_link())
    page.get_by_role("button").click()
    expect_heading(page, "Your address is confirmed")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_in_both_schemes(page, ann, postbox, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(postbox.last_link())
    look(page, f"narrow_{scheme}")
    main = page.get_by_role("main").bounding_box()
    assert main is not None
    assert main["width"] <= 320
    colour = page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor")
    assert colour == {"light": "rgb(243, 244, 246)", "dark": "rgb(20, 23, 26)"}[scheme]


def test_a_page_that_isn_t_there_is_a_page_too(page):
    page.goto("/api/apps/test-app/nothing")
    expect_heading(page, "There is no such page")
    look(page, "error")

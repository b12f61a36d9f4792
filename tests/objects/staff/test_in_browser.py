"""The second factor of staff in a real browser: apps, passkeys, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from objects.staff.models import StaffPasskey
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look
from tests.objects.staff.accounts import PASSWORD, Person, person
from tests.objects.users.passkeys.test_in_browser import AUTHENTICATOR

pytestmark = [NEEDS_CHROMIUM, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def root(mode: Any, settings: Any, live_server: Any) -> Person:
    mode("required")
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    return person(with_app=False)


@pytest.fixture(params=[1400, 390])
def page(request: Any, chromium: Browser, live_server: Any) -> Iterator[Page]:
    """A page of each width; its console has no complaints."""
    size = {"width": request.param, "height": 900}
    context = chromium.new_context(base_url=live_server.url, viewport=size)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    yield page
    context.close()
    assert not complaints, complaints


def log_in(page: Page) -> None:
    page.goto("/admin/auth/user/")
    page.get_by_label("Username").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_an_app_is_set_up_and_used(page: Page, root: Person):
    width = page.viewport_size["width"] if page.viewport_size else 0
    log_in(page)
    expect(page.get_by_text("Your account needs a second factor.")).to_be_visible()
    expect(page.get_by_alt_text("QR code of the key")).to_have_js_property("complete", True)
    assert page.evaluate("document.querySelector('.sv-qr').naturalWidth") > 100
    look(page, f"second_factor_set_up_{width}")
    assert fits(page)
    page.get_by_label("Code that the app shows").fill("000000")
    page.get_by_role("button", name="Set up the app").click()
    expect(page.get_by_role("alert")).to_contain_text("The code is wrong")
    look(page, f"second_factor_wrong_{width}")
    root.secret = page.locator("code.sv-code").inner_text().replace(" ", "")
    page.get_by_label("Code that the app shows").fill(root.code(0))
    page.get_by_role("button", name="Set up the app").click()
    expect(page.get_by_text("Store these recovery codes")).to_be_visible()
    look(page, f"second_factor_codes_{width}")
    assert fits(page)
    page.get_by_role("link", name="I have stored them").click()
    page.wait_for_url("**/admin/auth/user/")

    page.context.clear_cookies()
    log_in(page)
    look(page, f"second_factor_step_{width}")
    assert fits(page)
    page.get_by_label("Code of your authenticator app").fill(root.code())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/auth/user/")
    page.goto("/admin/second-factor/set-up/")
    expect(page.get_by_text("8 left")).to_be_visible()
    look(page, f"second_factor_page_{width}")
    assert fits(page)


def test_a_passkey_is_set_up_and_used(page: Page, root: Person):
    width = page.viewport_size["width"] if page.viewport_size else 0
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    log_in(page)
    page.get_by_label("Name of the passkey").fill("My laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("Store these recovery codes")).to_be_visible()
    page.get_by_role("link", name="I have stored them").click()
    page.wait_for_url("**/admin/auth/user/")
    page.goto("/admin/second-factor/set-up/")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("This device has a passkey of yours already.")).to_be_visible()
    look(page, f"second_factor_passkeys_{width}")

    page.context.clear_cookies()
    log_in(page)
    look(page, f"second_factor_step_passkey_{width}")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url("**/admin/auth/user/")
    assert StaffPasskey.objects.get().name == "My laptop"


def test_without_scripts_an_app_is_enough(chromium: Browser, live_server: Any, root: Person):
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    expect(page.get_by_text("Passkeys need JavaScript")).to_be_attached()
    root.secret = page.locator("code.sv-code").inner_text().replace(" ", "")
    page.get_by_label("Code that the app shows").fill(root.code())
    page.get_by_role("button", name="Set up the app").click()
    page.get_by_role("link", name="I have stored them").click()
    page.wait_for_url("**/admin/auth/user/")
    context.close()

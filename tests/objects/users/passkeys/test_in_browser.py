"""Passkeys in a real browser, with a virtual authenticator, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from objects.users.passkeys.models import Passkey
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.users.passkeys.calls import ANYBODY, result
from tests.people import sign_up, with_token

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]
# The page of the documentation.
TEXT = (Path(__file__).resolve().parents[4] / "docs" / "registration.md").read_text()
HTML = TEXT.partition("```html\n")[2].partition("```")[0].replace("APP_ID", "test-app")
AUTHENTICATOR = {
    "protocol": "ctap2",
    "ctap2Version": "ctap2_1",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device:
    """A page with an authenticator of its own."""

    def __init__(self, chromium: Any, address: str) -> None:
        self.context = chromium.new_context(base_url=address)
        self.page: Page = self.context.new_page()
        self.page.route(
            "**/page.html",
            lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=HTML),
        )
        self.session = self.context.new_cdp_session(self.page)
        self.session.send("WebAuthn.enable")
        added = self.session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        self.id = added["authenticatorId"]
        self.page.goto("/page.html")

    def press(self, button: str, username: str = "") -> str:
        self.page.get_by_label("User name").fill(username)
        self.page.get_by_role("button", name=button).click()
        status = self.page.get_by_role("status")
        expect(status).not_to_have_text("…")
        expect(status).not_to_have_text("")
        return status.inner_text()

    def answer(self) -> Any:
        return self.page.evaluate("window.answer")

    def keys(self) -> Any:
        response = self.session.send("WebAuthn.getCredentials", {"authenticatorId": self.id})
        return response["credentials"]


@pytest.fixture
def device(chromium: Any, live_server: Any, settings: Any) -> Iterator[Device]:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    device = Device(chromium, live_server.url)
    yield device
    device.context.close()


def test_signing_up_and_logging_in_with_and_without_a_name(device):
    assert device.press("Sign up", "ann@example.org") == "Hello ann@example.org"
    registered = device.answer()
    assert with_token(registered["token"]).get("/users/me").json["username"] == "ann@example.org"
    listed = result(ANYBODY.post("/functions/listWallets", {"authToken": registered["token"]}))
    assert listed["wallets"] == registered["wallets"] != []
    (key,) = device.keys()
    assert (key["isResidentCredential"], key["rpId"]) == (True, "localhost")

    assert device.press("Log in") == "Hello ann@example.org"
    assert device.answer()["user"] == registered["user"]
    assert device.press("Log in", "ann@example.org") == "Hello ann@example.org"
    row = Passkey.objects.get()
    assert row.sign_count == device.keys()[0]["signCount"] > 1


def test_names_that_are_taken_and_passkeys_that_are_unknown(device):
    sign_up("ann")
    assert "202" in device.press("Sign up", "ann")
    assert device.press("Sign up", "bob") == "Hello bob"
    Passkey.objects.all().delete()
    assert "141: The passkey could not be verified." in device.press("Log in")


def test_a_user_who_is_logged_in_adds_a_passkey_and_no_second_one_on_the_device(device):
    ann = sign_up("ann")
    add = f"register('ann', {ann.token!r}).then(answer => answer.user.id, error => error.name)"
    assert device.page.evaluate(add) == ann.user_id
    assert device.page.evaluate(add) == "InvalidStateError"
    assert device.press("Log in") == "Hello ann"
    assert device.answer()["user"]["id"] == ann.user_id


def test_a_user_who_is_not_verified_gets_no_passkey(device):
    device.session.send(
        "WebAuthn.setUserVerified", {"authenticatorId": device.id, "isUserVerified": False}
    )
    assert "NotAllowedError" in device.press("Sign up", "ann")
    assert not Passkey.objects.exists()

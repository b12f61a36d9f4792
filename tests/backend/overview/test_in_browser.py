"""The start page and the advisor in a real browser: drawn, refreshed, readable for everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from playwright.sync_api import Page, expect

from backend.overview import checkups
from objects.definitions import registry
from tests.axe import serious_findings
from tests.backend.overview.figures import *  # noqa: F403
from tests.backend.overview.figures import MINUTE, store, this_minute
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import staff_user

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
SCHEMES = ("light", "dark")


@pytest.fixture
def page(chromium: Any, live_server: Any, server: redis.Redis) -> Iterator[Page]:
    registry.forget_all()
    with staff_page(chromium, live_server.url, staff_user(None), viewport=WIDE) as page:
        page.clock.install()
        yield page


def is_as_wide_as_the_window(page: Page) -> bool:
    return bool(
        page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    )


def look_at_each_size_and_scheme(page: Page, name: str, within: str) -> None:
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in SCHEMES:
            page.evaluate("name => document.documentElement.className = name", scheme)
            expect(page.locator("html")).to_have_class(scheme)
            assert is_as_wide_as_the_window(page), (name, size, scheme)
            assert serious_findings(page, within) == [], (name, size, scheme)
            look(page, f"{name}_{size['width']}_{scheme}")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]


def test_the_start_page_draws_refreshes_and_pauses(page: Page) -> None:
    now = this_minute()
    for ago in range(1, 50):
        store({2: 60 + ago, 4: 3, 5: ago % 2}, at=now - ago * MINUTE, sockets=5, queue_seconds=0.2)
    page.goto("/admin/")
    charts = page.locator("canvas[role=img]")
    expect(charts).to_have_count(4)
    expect(charts.first).to_have_attribute(
        "aria-label", re.compile("Requests a minute. 2xx: from 61 to 109, ")
    )
    look_at_each_size_and_scheme(page, "start", "main, #content, .ov")

    # The same as a table, which stays open and keeps the focus when the page refreshes itself.
    first = page.locator("#chart-requests")
    first.get_by_text("Table").focus()
    page.keyboard.press("Enter")
    expect(first.locator("table tbody tr")).to_have_count(60)
    store({2: 5000}, at=now - 55 * MINUTE)
    page.clock.run_for(25_000)
    expect(page.locator(".ov-number").first).to_contain_text("in the last hour")
    expect(page.locator(".ov-number").first).to_contain_text("9,")
    expect(first.locator("table tbody tr")).to_have_count(60)
    assert page.evaluate("document.activeElement.closest('figure')?.id") == "chart-requests"

    # A tab that isn't looked at sends nothing.
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.run_for(120_000)
    assert sent == []
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    with page.expect_response("**/admin/overview/**"):
        page.clock.run_for(2_000)

    page.get_by_role("link", name="Last day").click()
    expect(page.locator(".ov-number").first).to_contain_text("in the last day")
    page.get_by_role("link", name="Errors").click()
    expect(page).to_have_url(re.compile(r"/admin/logs/\?status=5xx"))


def test_a_session_that_has_ended_leads_to_the_log_in(page: Page) -> None:
    page.goto("/admin/")
    page.context.clear_cookies()
    page.clock.run_for(25_000)
    expect(page.get_by_label("Username")).to_be_visible()


def test_the_advisor_checks_again(page: Page) -> None:
    page.goto("/admin/advisor/")
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("The checks are running.")).to_be_visible()
    for _ in range(200):
        if checkups.latest().finished_at is not None:
            break
        page.wait_for_timeout(100)
    page.reload()
    expect(page.get_by_text("Checked")).to_be_visible()
    page.locator("summary").filter(has_text="In order").click()
    look_at_each_size_and_scheme(page, "advisor", "main, #content, .ov-advisor")

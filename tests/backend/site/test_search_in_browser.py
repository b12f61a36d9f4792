"""The search dialog and the sidebar in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.kernel.principal import MASTER
from objects.definitions import registry
from objects.service import classes
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.games import make, make_class
from tests.objects.admin.staff import staff_user

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(chromium: Browser, live_server: Any, settings: Any) -> Iterator[Page]:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    registry.forget_all()
    wide = {"width": 1400, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(None), viewport=wide) as page:
        yield page


def test_the_keyboard_leads_from_any_page_to_what_is_typed(page):
    make_class(indexes={"by_title": {"title": 1}})
    make_class("GameScore")
    final = make(title="The final")
    page.goto("/admin/settings/")
    dialog = page.get_by_role("dialog", name="Find anything")
    field = page.get_by_role("combobox", name="Find anything")
    chosen = dialog.locator("[role=option][aria-selected=true]")
    expect(dialog).to_be_hidden()

    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("game")
    expect(chosen).to_contain_text("Game")
    look(page, "search")
    first = field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_count(1)
    assert field.get_attribute("aria-activedescendant") != first
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/data/Game/")

    # What was chosen is offered before anything is typed.
    page.keyboard.press("/")
    expect(dialog.get_by_role("group", name="Recent")).to_contain_text("Game")
    page.keyboard.type(final)
    expect(chosen).to_contain_text(final)
    page.keyboard.press("Control+a")
    page.keyboard.type("The fi")
    expect(chosen).to_contain_text("The final")
    page.keyboard.press("Control+a")
    page.keyboard.type("xyzzy")
    expect(dialog.get_by_role("status")).to_contain_text("Nothing that you may see matches “xyzzy”")
    look(page, "search_nothing")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    # A slash in a field is a slash.
    page.goto("/admin/settings/")
    page.get_by_label("Find a setting").press("/")
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("Find a setting")).to_have_value("/")

    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("banner").or_(page.locator("#header-inner")).get_by_role(
        "button", name="Find anything"
    ).click()
    expect(field).to_be_focused()
    look(page, "search_narrow")
    page.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_favourites_folded_sections_and_the_search_among_many_classes(page):
    for number in range(22):
        classes.create(MASTER, f"Class{number:02}", {})
    page.goto("/admin/settings/")
    names = page.locator("[data-classes] li a")
    # With the class of the tests' application, and one is left to the search.
    expect(names).to_have_count(20)
    star = page.get_by_role("button", name="Favourite: Class03")
    with page.expect_response("**/favourite-classes/Class03/"):
        star.press("Enter")
    expect(star).to_have_attribute("aria-pressed", "true")
    page.locator("summary", has_text="Chain").click()
    page.reload()
    expect(names.first).to_contain_text("Class03")
    expect(page.get_by_role("link", name="Networks")).to_be_hidden()
    look(page, "sidebar")

    page.get_by_label("Find a class").press_sequentially("s21")
    expect(names).to_have_text(["Class21"])
    page.get_by_label("Find a class").fill("nothing")
    expect(page.get_by_text("No class has this in its name.")).to_be_visible()
    page.get_by_label("Find a class").press("Escape")
    expect(names).to_have_count(20)
    page.get_by_label("Find a class").fill("class21")
    expect(names).to_have_text(["Class21"])
    page.get_by_label("Find a class").press("Enter")
    page.wait_for_url("**/admin/data/Class21/")
    expect(page.locator("[data-classes] a[aria-current=page]")).to_contain_text("Class21")

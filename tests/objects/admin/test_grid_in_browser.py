"""The grid in a real browser: keys, edits, ranges, conflicts, pages, columns, narrow screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from backend.site.staff import VIEWERS
from objects.definitions import registry
from objects.staff.models import StaffGrid
from tests.axe import serious_findings
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.games import GAME, make, make_class, stored_object
from tests.objects.admin.staff import staff_user
from tests.people import sign_up

pytestmark = [NEEDS_CHROMIUM, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

LAPTOP = {"width": 1400, "height": 900}
BY_SCORE = f"{GAME}?order=score"


@pytest.fixture
def address(live_server: Any, settings: Any) -> str:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    registry.forget_all()
    url: str = live_server.url
    return url


@pytest.fixture
def games(address: str) -> list[str]:
    make_class()
    ann = sign_up("ann")
    sign_up("bea")
    day = {"__type": "Date", "iso": "2024-05-04T10:30:00.000Z"}
    return [
        make(title=f"Game {number}", score=number, won=True, player=ann.pointer, playedAt=day)
        for number in range(60)
    ]


@pytest.fixture
def page(chromium: Browser, address: str, games: list[str]) -> Iterator[Page]:
    allowed = ["clipboard-read", "clipboard-write"]
    options = {"viewport": LAPTOP, "permissions": allowed}
    user = staff_user(None)
    columns = [[name, 160] for name in ("title", "score", "won", "player", "playedAt")]
    StaffGrid.objects.create(user=user, class_name="Game", columns=columns)
    with staff_page(chromium, address, user, **options) as page:
        yield page


def cell(page: Page, row: int, field: str) -> Locator:
    return page.locator(f'.tabulator-row:nth-child({row}) [tabulator-field="{field}"]')


def status(page: Page, text: str) -> None:
    expect(page.locator("#grid-status")).to_contain_text(text)


def enter(page: Page, text: str, key: str = "Enter") -> None:
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press(key)


def test_cells_are_edited_with_the_keyboard_and_undone(page, games):
    page.goto(BY_SCORE)
    expect(page.locator("#grid-range")).to_have_text("1 to 60 of 60")
    inside = page.locator(".tabulator-tableholder").bounding_box()
    last = cell(page, 24, "$id").bounding_box()
    assert inside is not None
    assert last is not None
    assert last["y"] + last["height"] <= inside["y"] + inside["height"]

    cell(page, 1, "title").click()
    enter(page, "First")
    status(page, "Saved: 1 cell of 1 object.")
    assert stored_object(games[0])["title"] == "First"
    # Enter has moved down; what is typed replaces the text, and Esc leaves it as it was.
    page.keyboard.type("x")
    expect(page.locator(".grid-editor")).to_have_value("x")
    page.keyboard.press("Escape")
    expect(cell(page, 2, "title")).to_have_text("Game 1")
    page.keyboard.press("F2")
    page.keyboard.type("!")
    page.keyboard.press("Tab")
    status(page, "Saved: 1 cell of 1 object.")
    expect(cell(page, 2, "title")).to_have_text("!")
    expect(page.locator("#grid-active")).to_have_attribute("tabulator-field", "score")

    enter(page, "many")
    status(page, "1 object not saved.")
    expect(cell(page, 2, "score")).to_contain_text("expected a number")
    look(page, "grid_error")
    page.get_by_role("button", name="Discard").click()
    expect(cell(page, 2, "score")).to_have_text("1")

    cell(page, 2, "player").click()
    page.keyboard.type("be")
    expect(page.get_by_role("option", name="bea")).to_be_visible()
    look(page, "grid_pointer")
    page.keyboard.press("Enter")
    expect(cell(page, 2, "player")).to_contain_text("bea")
    cell(page, 2, "won").dblclick()
    page.locator(".grid-editor").select_option("false")
    expect(cell(page, 2, "won")).to_have_text("false")
    cell(page, 2, "playedAt").dblclick()
    page.locator(".grid-editor").fill("2025-01-02T03:04:05")
    page.keyboard.press("Enter")
    expect(cell(page, 2, "playedAt")).to_have_text("2025-01-02 03:04:05")
    status(page, "Saved: 1 cell of 1 object.")
    for undone in ("2024-05-04 10:30:00", "true", "ann"):
        page.keyboard.press("Control+z")
        expect(page.get_by_role("row").filter(has_text="!")).to_contain_text(undone)
    status(page, "Undone: 1 cell of 1 object.")
    page.keyboard.press("Control+y")
    expect(cell(page, 2, "player")).to_contain_text("bea")


def test_ranges_are_copied_pasted_emptied_and_undone(page, games):
    page.goto(BY_SCORE)
    cell(page, 1, "title").click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Control+c")
    status(page, "Copied: 4 cells.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "Game 0\t0\nGame 1\t1"

    text = '"two\nlines"\t7\n\'=1+1\tbad\nplain\t9\n'
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    cell(page, 3, "title").click()
    page.keyboard.press("Control+v")
    status(page, "Saved: 4 cells of 2 objects. 1 object not saved.")
    results = page.get_by_role("region", name="Results")
    expect(results).to_contain_text("expected a number")
    results.get_by_text("What was saved").click()
    expect(results).to_contain_text("title, score")
    look(page, "grid_paste")
    assert stored_object(games[2])["title"] == "two\nlines"
    assert stored_object(games[3])["title"] == "Game 3"
    assert stored_object(games[4])["score"] == 9
    results.get_by_role("button", name="Close").click()
    cell(page, 5, "title").click()
    page.keyboard.press("Control+z")
    status(page, "Undone: 4 cells of 2 objects.")
    assert stored_object(games[2])["title"] == "Game 2"

    cell(page, 1, "title").click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Delete")
    status(page, "Saved: 2 cells of 2 objects.")
    assert "title" not in stored_object(games[1])


def test_an_edit_of_what_another_user_has_changed_shows_both_values(page, games):
    page.goto(BY_SCORE)
    other = page.context.new_page()
    other.goto(BY_SCORE)
    for item, text in ((other, "theirs"), (page, "mine")):
        cell(item, 1, "title").click()
        enter(item, text)
        status(item, "Saved" if item is other else "1 conflict")
    results = page.get_by_role("region", name="Results")
    expect(results).to_contain_text("mine")
    expect(results).to_contain_text("theirs")
    look(page, "grid_conflict")
    assert stored_object(games[0])["title"] == "theirs"
    results.get_by_role("button", name="Save yours").click()
    status(page, "Saved: 1 cell of 1 object.")
    assert stored_object(games[0])["title"] == "mine"


def test_a_drawer_shows_and_saves_the_whole_object(page, games):
    page.goto(BY_SCORE)
    page.get_by_role("link", name=games[0]).click()
    drawer = page.get_by_role("complementary", name="The object")
    drawer.get_by_label("score", exact=True).fill("many")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.get_by_text("expected a number, like 3, -0.5 or 1e6")).to_be_visible()
    drawer.get_by_label("score", exact=True).fill("-5")
    drawer.get_by_role("button", name="Save").click()
    expect(cell(page, 1, "score")).to_have_text("-5")
    look(page, "grid_drawer")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    cell(page, 2, "title").click()
    page.keyboard.press("Space")
    expect(drawer.get_by_label("title", exact=True)).to_have_value("Game 1")


def test_pages_and_columns_are_stored(page, games):
    page.goto(BY_SCORE)
    expect(page.locator("#grid-range")).to_have_text("1 to 60 of 60")
    page.get_by_label("Rows").select_option("50")
    expect(page.locator("#grid-range")).to_contain_text("1 to 50")
    page.get_by_role("button", name="The next page").click()
    expect(page.locator("#grid-range")).to_have_text("51 to 60 of 60")
    page.reload()
    expect(page.locator("#grid-range")).to_have_text("51 to 60 of 60")
    page.go_back()
    expect(page.locator("#grid-range")).to_contain_text("1 to 50")
    page.get_by_text("Columns", exact=True).click()
    for choose in (
        page.get_by_role("checkbox", name="won", exact=True).uncheck,
        page.get_by_role("button", name="Move score earlier").click,
    ):
        with page.expect_response(lambda response: response.url.endswith("/layout/")):
            choose()
    look(page, "grid_columns")
    page.goto(GAME)
    headers = page.get_by_role("columnheader")
    expect(headers.nth(1)).to_contain_text("score")
    expect(headers.filter(has_text="won")).to_have_count(0)


def test_the_grid_is_accessible_and_fits_a_phone(chromium, address, games):
    user = staff_user(VIEWERS)
    with staff_page(chromium, address, user, viewport=LAPTOP, bypass_csp=True) as page:
        page.goto(GAME)
        cell(page, 1, "title").dblclick()
        expect(page.locator(".grid-editor")).to_have_count(0)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert serious_findings(page, "#content") == []
            look(page, f"grid_{scheme}")
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.locator(".grid-card")).to_have_count(60)
        expect(page.get_by_role("link", name=games[0])).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert serious_findings(page, "#content") == []
        look(page, "grid_narrow")

"""The data browser in a real browser: what staff see and do."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.kernel.principal import MASTER
from backend.site.staff import VIEWERS
from objects import service
from objects.definitions import registry
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.games import GAME, at, make, make_class, stored_object
from tests.objects.admin.staff import staff_user
from tests.objects.files.uploads import stored
from tests.people import User, sign_up

pytestmark = [NEEDS_CHROMIUM, pytest.mark.django_db(transaction=True)]


def picture(red: int, green: int, blue: int) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + bytes((red, green, blue)) * 32 for _ in range(32))
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.fixture
def address(live_server: Any, settings: Any) -> str:
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}
    registry.forget_all()
    url: str = live_server.url
    return url


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    wide = {"width": 1440, "height": 900}
    with staff_page(chromium, address, staff_user(None), viewport=wide) as page:
        yield page


@pytest.fixture
def ann(address: str) -> User:
    return sign_up("ann")


@pytest.fixture
def full(ann: User) -> str:
    """An object with a value in every field, among others; its id."""
    make_class(indexes={"by_score": {"score": 1}})
    for number in range(60):
        make(title=f"Game {number}", score=number, won=number % 2 == 0)
    return make(
        title="The final",
        score=125,
        won=True,
        playedAt={"__type": "Date", "iso": "2024-05-04T10:30:00.250Z"},
        player=ann.pointer,
        picture={"__type": "File", "name": stored("board.png", picture(40, 120, 200))},
        place={"__type": "GeoPoint", "latitude": 48.2, "longitude": 16.37},
        tags=["chess", "blitz", {"round": 7}],
        details={"opening": "Caro-Kann", "moves": 41},
        key={"__type": "Bytes", "base64": "aGVsbG8="},
        area={"__type": "Polygon", "coordinates": [[0, 0], [0, 1], [1, 1]]},
        fans={"__op": "AddRelation", "objects": [ann.pointer]},
        ACL={"*": {"read": True}, ann.user_id: {"read": True, "write": True}},
    )


def test_from_the_start_to_an_object_by_a_filter(page, full):
    page.goto("/admin/")
    look(page, "start")
    page.get_by_role("link", name="Classes", exact=True).click()
    look(page, "classes")
    page.locator("#result_list").get_by_role("link", name="Game", exact=True).click()
    expect(page.get_by_text("1 to 61 of 61")).to_be_visible()
    expect(page.locator("img.grid-picture")).to_have_js_property("naturalWidth", 32)
    look(page, "objects")

    page.get_by_text("Filter", exact=True).click()
    form = page.get_by_role("form", name="Add a condition")
    form.get_by_label("Field").select_option("score")
    condition = form.get_by_label("Condition")
    expect(form.get_by_text("(Number)")).to_be_visible()
    expect(condition.locator("option")).to_contain_text(["is", "is not", "<", "≤", ">", "≥"])
    condition.select_option(label=">")
    form.get_by_role("textbox").fill("57")
    form.get_by_role("button", name="Add").click()
    expect(page.locator(".tabulator-row")).to_have_count(3)
    page.get_by_text("Filter", exact=True).click()
    expect(page.get_by_label("where, as JSON")).to_have_value('{"score":{"$gt":57}}')
    page.keyboard.press("Escape")
    page.get_by_role("link", name="score", exact=True).click()
    expect(page.locator(".tabulator-row").first).to_contain_text("Game 58")
    look(page, "filtered")

    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("where, as JSON").fill('{"score": {"$more": 1}}')
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert")).to_contain_text("bad constraint: $more")
    look(page, "bad_filter")
    page.get_by_label("where, as JSON").fill('{"title": "The final"}')
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("link", name=full).click()
    drawer = page.get_by_role("complementary", name="The object")
    expect(drawer.get_by_label("title", exact=True)).to_have_value("The final")
    look(page, "object")


def test_an_object_is_edited_with_a_pointer_that_is_looked_up(page, ann, full):
    bea = sign_up("bea")
    page.goto(at(full))
    page.get_by_label("player").press("Control+a")
    page.get_by_label("player").press_sequentially("be")
    option = page.locator(f'datalist option[value="{bea.user_id}"]')
    expect(option).to_have_count(1)
    page.get_by_label("player").fill(bea.user_id)
    page.get_by_label("score").fill("many")
    page.get_by_label("playedAt").fill("2025-01-02T03:04:05.678")
    page.get_by_role("button", name="Save").click()
    complaint = page.get_by_text("expected a number, like 3, -0.5 or 1e6")
    expect(complaint).to_be_visible()
    expect(page.get_by_label("player")).to_have_value(bea.user_id)
    look(page, "object_wrong")
    page.get_by_label("score").fill("126")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved: playedAt, player, score.")).to_be_visible()
    now = stored_object(full)
    assert now["score"] == 126
    assert now["player"]["objectId"] == bea.user_id
    assert now["playedAt"]["iso"] == "2025-01-02T03:04:05.678Z"
    assert now["title"] == "The final"


def test_two_who_edit_the_same_object(page, full):
    page.goto(at(full))
    other = page.context.new_page()
    other.goto(at(full))
    for item, text in ((other, "theirs"), (page, "mine")):
        item.locator("textarea[name='f.title']").fill(text)
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("Saved: title.")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("This object has changed")
    expect(page.get_by_role("alert")).to_contain_text("theirs")
    look(page, "conflict")
    assert stored_object(full)["title"] == "theirs"
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved: title.")).to_be_visible()
    assert stored_object(full)["title"] == "mine"


def test_selected_objects_are_deleted_after_a_confirmation(page, full):
    page.goto(GAME)
    expect(page.get_by_text("1 to 61 of 61")).to_be_visible()
    page.get_by_label("Select all on this page").check()
    expect(page.get_by_text("61 selected")).to_be_visible()
    page.get_by_label("Select all on this page").uncheck()
    page.get_by_label(f"Select {full}").check()
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_text("Delete 1 object of Game?")).to_be_visible()
    look(page, "delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Deleted: 1 object.")).to_be_visible()
    expect(page.get_by_label(f"Select {full}")).to_have_count(0)
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Set a field…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Field").select_option("score")
    dialog.get_by_label("Value").fill("7")
    look(page, "set_a_field")
    dialog.get_by_role("button", name="Set").click()
    expect(page.locator("#grid-status")).to_contain_text("Saved: 60 cells of 60 objects.")


def test_browsing_as_a_user_is_plain_to_see(page, ann, full):
    hidden = make(title="hidden", ACL={})
    page.goto(GAME)
    expect(page.get_by_label(f"Select {hidden}")).to_have_count(1)
    page.get_by_role("link", name="Browse as a user").click()
    page.get_by_label("User the id").press_sequentially("an")
    expect(page.locator(f'datalist option[value="{ann.user_id}"]')).to_have_count(1)
    look(page, "act")
    page.get_by_label("User the id").fill(ann.user_id)
    page.get_by_role("button", name="Browse as this user").click()
    expect(page.get_by_text("You browse as ann")).to_be_visible()

    expect(page.get_by_text(hidden)).to_have_count(0)
    look(page, "acting")
    page.get_by_role("button", name="Return to your own rights").click()
    expect(page.get_by_label(f"Select {hidden}")).to_have_count(1)


def test_the_pages_of_a_class(page, full):
    for name in ("fields", "fields/score", "permissions", "indexes", "remove", "add"):
        page.goto(f"{GAME}{name}/")
        look(page, name.replace("/", "_"))
    page.goto(f"{GAME}permissions/")
    page.get_by_label("Everybody may delete").uncheck()
    page.get_by_label("Roles and users who may delete").fill("role:Judges")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The permissions are changed.")).to_be_visible()
    table = registry.find("Game")
    assert table is not None
    assert table.schema.permissions.rules["delete"].entities == {"role:Judges"}
    page.goto("/admin/objects/objectclass/add/")
    look(page, "create_class")
    for tail in ("json/", "relation/fans/"):
        page.goto(at(full, tail))
        look(page, tail.strip("/").replace("/", "_"))


def test_an_open_class_is_named_and_closed(page):
    make_class()
    service.create(MASTER, "Guestbook", {"text": "hello", "email": "ann@example.org"})
    page.goto("/admin/")
    expect(page.get_by_role("heading", name="Everybody may write objects of")).to_be_visible()
    look(page, "start_with_open_classes")
    page.goto("/admin/objects/objectclass/")
    expect(page.get_by_role("link", name="create, update, delete").first).to_be_visible()
    look(page, "class_list_with_open_classes")
    page.goto("/admin/data/Guestbook/permissions/")
    look(page, "permissions_of_an_open_class")
    page.get_by_role("link", name="Close it").click()
    look(page, "close_class")
    page.get_by_role("button", name="Let only logged-in users write").click()
    expect(page.get_by_text("Only logged-in users may write objects of Guestbook")).to_be_visible()
    expect(page.get_by_label("Everybody may delete")).not_to_be_checked()
    look(page, "class_closed")


def test_a_viewer_finds_nothing_to_change(chromium, address, full):
    with staff_page(chromium, address, staff_user(VIEWERS)) as page:
        page.goto(GAME)
        expect(page.get_by_role("link", name="Add an object")).to_have_count(0)
        page.goto(at(full))
        expect(page.get_by_role("button", name="Save")).to_have_count(0)
        expect(page.get_by_text("Caro-Kann")).to_be_visible()
        look(page, "viewer_object")
        page.goto(f"{GAME}permissions/")
        expect(page.get_by_label("Everybody may find")).to_be_disabled()
        look(page, "viewer_permissions")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_window_in_both_schemes(page, full, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    pages = ("", "add/", "fields/", "permissions/", "indexes/", f"o/{full}/", f"o/{full}/json/")
    for tail in pages:
        page.goto(GAME + tail)
        width = page.evaluate("document.documentElement.scrollWidth")
        name = tail.replace(full, "object").strip("/").replace("/", "_") or "objects"
        look(page, f"narrow_{scheme}_{name}")
        assert width <= 360, tail


def test_stored_markup_runs_nowhere(page, address):
    make_class()
    evil = '<img src=x onerror=alert(1)><script>alert(1)</script>" onfocus=alert(1) autofocus x="'
    object_id = make(title=evil, tags=[evil], details={"a": evil})
    # What runs opens a dialog, which the fixture takes for an error.
    for address in (GAME, at(object_id), at(object_id, "json/"), f"{GAME}?where=%7B%22a%22:1"):
        page.goto(address)
        page.wait_for_load_state("networkidle")
    page.goto(GAME)
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("where, as JSON").fill(evil)
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert")).to_be_visible()

"""The page of the app's parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from backend.kernel.principal import MASTER
from backend.logs import search, store
from backend.logs.filters import LogFilter
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects.app_config import service
from objects.database import maintenance
from tests.chromium import NEEDS_CHROMIUM
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.log_records import *  # noqa: F403
from tests.objects.admin.staff import logged_in, staff_user
from tests.rest import CLIENT, Api
from tests.threads import at_once

pytestmark = pytest.mark.django_db

LIST = "/admin/config/"
ADD = "/admin/config/parameter/"
EVIL = "<img src=x onerror=alert(1)>"


def of(name: str) -> str:
    return f"{ADD}{name}/"


def config() -> dict[str, Any]:
    return service.read(MASTER).wire()


def save(**params: Any) -> None:
    service.save(MASTER, {"params": params})


def version_shown(client: Client, name: str) -> str:
    match = re.search(r'name="seen" value="([0-9a-f]+)"', client.get(of(name)).text)
    assert match
    return match[1]


def change(client: Client, name: str, **value: Any) -> Any:
    return client.post(of(name), {"seen": version_shown(client, name), **value})


@pytest.mark.parametrize(
    ("kind", "entered", "stored"),
    [
        ("text", "hello\r\nworld", "hello\nworld"),
        ("text", "", ""),
        ("text", " 12 ", " 12 "),
        ("number", "12", 12),
        ("number", "-0.25", -0.25),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("date", "2030-01-31T12:30", {"__type": "Date", "iso": "2030-01-31T12:30:00.000Z"}),
        ("json", '{"a": [1, null]}', {"a": [1, None]}),
        ("json", "null", None),
        ("json", "[]", []),
        (
            "json",
            '{"__type": "GeoPoint", "latitude": 1, "longitude": 2}',
            {"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        ),
    ],
)
def test_a_parameter_of_each_type_is_added_and_shown_as_it_was_entered(kind, entered, stored):
    staff = logged_in(EDITORS)
    answer = staff.post(ADD, {"name": "welcome", "kind": kind, f"value.{kind}": entered})
    assert (answer.status_code, answer.headers["Location"]) == (302, LIST)
    assert config() == {"params": {"welcome": stored}, "masterKeyOnly": {}}
    assert Api(CLIENT).get("/config").json["params"] == {"welcome": stored}
    assert "welcome" in staff.get(LIST).text
    # What the form shows, saved again, is the same.
    page = staff.get(of("welcome")).context["form"]
    assert page.kind == kind
    change(staff, "welcome", kind=page.kind, **{f"value.{page.kind}": page.text})
    assert config()["params"] == {"welcome": stored}


@pytest.mark.parametrize(
    ("name", "kind", "entered", "code"),
    [
        ("1st", "text", "x", 105),
        ("", "text", "x", 105),
        ("__proto__", "text", "x", 105),
        ("n", "number", "twelve", 107),
        ("n", "number", "", 107),
        ("n", "boolean", "maybe", 107),
        ("n", "date", "yesterday", 111),
        ("n", "json", "{", 107),
        ("n", "json", "[" * 900 + "]" * 900, 107),
        ("n", "json", '{"__op": "Delete"}', 107),
        ("n", "json", '{"__type": "GeoPoint"}', 111),
        ("n", "text", "nul \x00", 111),
        ("n", "text", "x" * 1_100_000, 116),
    ],
)
def test_what_can_t_be_a_parameter_is_refused_and_stays_in_the_form(name, kind, entered, code):
    save(welcome="hello")
    answer = logged_in().post(ADD, {"name": name, "kind": kind, f"value.{kind}": entered})
    assert 400 <= answer.status_code < 500
    error = answer.context["error"]
    assert error.code == code
    assert answer.context["form"].text == entered
    assert config()["params"] == {"welcome": "hello"}


def test_a_parameter_for_the_master_key_alone_is_hidden_from_clients_and_back():
    staff = logged_in(ADMINISTRATORS)
    value = {"kind": "number", "value.number": "0.02"}
    staff.post(ADD, {"name": "feeRate", "hidden": "on", **value})
    assert config() == {"params": {"feeRate": 0.02}, "masterKeyOnly": {"feeRate": True}}
    assert Api(CLIENT).get("/config").json["params"] == {}
    assert "master key only" in staff.get(LIST).text
    change(staff, "feeRate", **value)
    assert config() == {"params": {"feeRate": 0.02}, "masterKeyOnly": {}}


def test_a_change_leaves_other_parameters_alone():
    service.save(MASTER, {"params": {"a": 1, "b": 2}, "masterKeyOnly": {"b": True}})
    change(logged_in(), "a", kind="text", **{"value.text": "one"})
    assert config() == {"params": {"a": "one", "b": 2}, "masterKeyOnly": {"b": True}}


def test_a_parameter_is_deleted_once_that_is_confirmed():
    save(a=1, b=2)
    staff = logged_in()
    change(staff, "a", delete="1")
    assert config()["params"] == {"a": 1, "b": 2}
    change(staff, "a", delete="1", confirm="1")
    assert config()["params"] == {"b": 2}
    assert staff.get(of("a")).status_code == 404


def test_what_another_user_has_changed_meanwhile_is_not_overwritten():
    save(a=1)
    staff = logged_in()
    old = version_shown(staff, "a")
    save(a=2)
    value = {"seen": old, "kind": "number", "value.number": "3"}
    answer = staff.post(of("a"), value)
    assert answer.status_code == 409
    assert "This parameter has changed" in answer.text
    assert answer.context["stored"] == "2"
    assert answer.context["form"].text == "3"
    assert config()["params"] == {"a": 2}
    # After seeing that, one may save all the same.
    assert staff.post(of("a"), {**value, "seen": answer.context["form"].version}).status_code == 302
    assert config()["params"] == {"a": 3}


def test_a_change_of_who_sees_it_is_a_change_too():
    save(a=1)
    staff = logged_in()
    old = version_shown(staff, "a")
    service.save(MASTER, {"params": {"a": 1}, "masterKeyOnly": {"a": True}})
    assert staff.post(of("a"), {"seen": old, "delete": "1", "confirm": "1"}).status_code == 409
    assert config()["masterKeyOnly"] == {"a": True}


def test_what_was_deleted_meanwhile_comes_back_only_if_that_is_wanted():
    save(a=1)
    staff = logged_in()
    value = {"seen": version_shown(staff, "a"), "kind": "number", "value.number": "3"}
    service.save(MASTER, {"params": {"a": {"__op": "Delete"}}})
    answer = staff.post(of("a"), value)
    assert answer.status_code == 409
    assert "It is deleted." in answer.text
    assert config()["params"] == {}
    staff.post(of("a"), {**value, "seen": ""})
    assert config()["params"] == {"a": 3}


def test_a_new_parameter_takes_the_place_of_none():
    save(a=1)
    answer = logged_in().post(ADD, {"name": "a", "kind": "text", "value.text": "x"})
    assert answer.status_code == 409
    assert of("a") in answer.text
    assert config()["params"] == {"a": 1}


@pytest.mark.django_db(transaction=True)
def test_of_several_who_save_at_once_one_does():
    save(a=0)
    user = staff_user(None)

    def client() -> Client:
        item = Client()
        item.force_login(user)
        return item

    old = version_shown(client(), "a")
    clients = [client() for _ in range(6)]

    def save_as(entry: Client, number: int) -> int:
        value = {"seen": old, "kind": "number", "value.number": str(number)}
        return entry.post(of("a"), value).status_code

    answers = at_once(
        [partial(save_as, element, number + 1) for number, element in enumerate(clients)]
    )
    assert sorted(answers) == [302, 409, 409, 409, 409, 409]


def test_maintenance_mode_holds_here_too():
    save(a=1)
    staff = logged_in()
    old = version_shown(staff, "a")
    maintenance.on("Back at noon")
    try:
        answer = staff.post(of("a"), {"seen": old, "kind": "number", "value.number": "3"})
        assert (answer.status_code, answer.context["error"].code) == (400, 119)
        assert "Back at noon" in answer.text
    finally:
        maintenance.off()
    assert config()["params"] == {"a": 1}


# -- Who may ---------------------------------------------------------------------------------------


def test_a_viewer_reads_and_changes_nothing():
    service.save(MASTER, {"params": {"a": "red", "b": 2}, "masterKeyOnly": {"b": True}})
    viewer = logged_in(VIEWERS)
    assert "Add a parameter" not in viewer.get(LIST).text
    page = viewer.get(of("a"))
    assert page.status_code == 200
    assert "red" in page.text
    assert "sv-primary" not in page.text
    assert "sv-danger" not in page.text
    before = config()
    state = service.read(MASTER).state_of("a")
    value = {"seen": state, "kind": "text", "value.text": "x"}
    assert viewer.get(ADD).status_code == 403
    assert viewer.post(ADD, {"name": "c", **value}).status_code == 403
    assert viewer.post(of("a"), value).status_code == 403
    assert viewer.post(of("a"), {**value, "delete": "1", "confirm": "1"}).status_code == 403
    assert viewer.post(LIST, value).status_code == 405
    assert config() == before


@pytest.mark.parametrize(
    ("held", "status"),
    [
        (["add_appconfig"], (302, 403, 403)),
        (["view_appconfig", "change_appconfig"], (403, 302, 403)),
        (["view_appconfig", "delete_appconfig"], (403, 403, 302)),
        ([], (403, 403, 403)),
    ],
)
def test_each_permission_is_requested(held, status):
    save(a=1, b=2)
    user = User.objects.create_user("custom", is_staff=True)
    for name in held:
        user.user_permissions.add(Permission.objects.get(codename=name))
    staff = Client()
    staff.force_login(user)
    stored = service.read(MASTER)
    value = {"kind": "number", "value.number": "3"}
    answers = (
        staff.post(ADD, {"name": "c", **value}),
        staff.post(of("a"), {"seen": stored.state_of("a"), **value}),
        staff.post(of("b"), {"seen": stored.state_of("b"), "delete": "1", "confirm": "1"}),
    )
    assert tuple(answer.status_code for answer in answers) == status


def test_others_than_staff_and_pages_of_other_sites_are_refused():
    save(a=1)
    assert Client().get(LIST).status_code == 302
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(staff_user(None))
    assert forged.post(of("a"), {"kind": "number", "value.number": "3"}).status_code == 403
    assert config()["params"] == {"a": 1}


def test_who_has_changed_what_is_logged_and_no_value(log_store_redis):
    staff = logged_in(EDITORS)
    staff.post(ADD, {"name": "pin", "hidden": "on", "kind": "text", "value.text": "s3cret"})
    change(staff, "pin", delete="1", confirm="1")
    store.flush()
    lines = [entry.fields for entry in search.search(LogFilter(text="staff write")).entries]
    assert [(entry["staff"], entry["action"], entry["parameter"]) for entry in lines] == [
        ("editors", "delete parameter", "pin"),
        ("editors", "save parameter", "pin"),
    ]
    assert search.search(LogFilter(text="s3cret")).entries == []


# -- In a browser ----------------------------------------------------------------------------------


@pytest.fixture
def page(chromium: Browser, live_server: Any) -> Iterator[Page]:
    wide = {"width": 1440, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(EDITORS), viewport=wide) as page:
        yield page


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_parameters_are_added_changed_and_deleted_in_a_browser(page):
    save(limits={"notes": 3, "deep": [EVIL]}, rate=0.25, since={"__type": "Date",
         "iso": "2030-01-31T12:30:00.000Z"}, open=True, evil=EVIL)  # fmt: skip
    page.goto("/admin/")
    page.get_by_role("link", name="Config", exact=True).first.click()
    expect(page.locator("tbody tr")).to_have_count(5)
    look(page, "config")
    page.get_by_role("link", name="Add a parameter").click()
    look(page, "config_add")
    page.get_by_label("Name").fill("welcome")
    page.get_by_label("Type").select_option("number")
    expect(page.get_by_label("Value", exact=True)).to_be_hidden()
    page.get_by_label("Number", exact=True).fill("x")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("expected a number")
    expect(page.get_by_label("Number", exact=True)).to_have_value("x")
    look(page, "config_add_refused")
    page.get_by_label("Type").select_option("text")
    page.get_by_label("Value", exact=True).fill(EVIL)
    page.get_by_label("For the master key only").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("The parameter welcome is there.")).to_be_visible()
    assert config()["params"]["welcome"] == EVIL
    assert config()["masterKeyOnly"] == {"welcome": True}

    page.get_by_role("link", name="since").click()
    expect(page.get_by_role("textbox", name="Date")).to_have_value("2030-01-31T12:30")
    page.get_by_role("textbox", name="Date").fill("2031-01-31T12:30")
    save(since=None)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("This parameter has changed")
    look(page, "config_conflict")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved: since.")).to_be_visible()
    assert config()["params"]["since"]["iso"] == "2031-01-31T12:30:00.000Z"

    page.get_by_role("link", name="limits", exact=True).click()
    look(page, "config_json")
    page.get_by_label("Yes, delete limits").check()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted: limits.")).to_be_visible()
    assert "limits" not in config()["params"]
    expect(page.locator("img[src=x]")).to_have_count(0)
    look(page, "config_in_the_end")


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_in_both_schemes(page, scheme):
    save(**{"long" * 20: "x" * 500, "list": [{"a": "y" * 300}] * 5})
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    for name, path in (("list", LIST), ("text", of("long" * 20)), ("json", of("list"))):
        page.goto(path)
        look(page, f"narrow_config_{name}_{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path

"""The page of server functions, and the form to try one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any, Literal

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from backend.kernel.principal import MASTER
from backend.logs import search, store
from backend.logs.filters import LogFilter
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from functions import (
    GeoPoint,
    Meta,
    Pointer,
    RateLimit,
    Request,
    ScriptFailed,
    TriggerRequest,
    after_save,
    before_save,
    function,
    job,
)
from functions.runtime.registry import registry
from functions.webhooks import service as hooks
from objects import service
from objects.core.query.tree import Everything
from objects.definitions import registry as class_registry
from objects.service import classes
from tests.chromium import NEEDS_CHROMIUM
from tests.functions.webhooks.receiver import Receiver
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.log_records import *  # noqa: F403
from tests.objects.admin.staff import logged_in, staff_user
from tests.people import make_role, sign_up
from tests.rest import CLIENT, Api
from tests.rest import MASTER as MASTER_KEYS

pytestmark = pytest.mark.django_db

LIST = "/admin/code/functions/"
EVIL = "<img src=x onerror=alert(1)></textarea></pre><script>alert(2)</script>"


@pytest.fixture(autouse=True)
def own_registrations() -> Iterator[None]:
    class_registry.forget_all()
    with registry.temporarily():
        yield


def of(name: str) -> str:
    return f"{LIST}{name}/"


def call(client: Client, name: str, caller: str = "master", **source: Any) -> Any:
    """The page after a call; ``p_name`` is the input of the parameter ``name``."""
    form = {key.replace("p_", "p.", 1): value for key, value in source.items()}
    return client.post(of(name), {"call": "1", "caller": caller, **form})


def result(answer: Any) -> Any:
    assert answer.status_code == 200
    outcome = answer.context["outcome"]
    assert outcome.error is None, outcome.error
    return json.loads(outcome.text)


def failure(answer: Any) -> tuple[int, str]:
    assert answer.status_code == 200
    error = answer.context["outcome"].error
    return error.code, error.message


# -- The list --------------------------------------------------------------------------------------


def test_everything_registered_is_listed_with_what_it_asks_and_where_it_is_written():
    @function("payOut", require_any_role=["Bank"], transaction=True, time_limit=7,
              rate_limit=RateLimit(3, 60, "user"))  # fmt: skip
    def pay_out(request: Request, amount: int) -> None:
        """Pay a user."""

    @function(require_master=True)
    def sweep(request: Request) -> None: ...

    @before_save("Payment", require_user=True)
    def check(request: TriggerRequest) -> None:
        """Look at it."""

    @after_save("Payment", in_transaction=True)
    def count(request: TriggerRequest) -> None: ...

    @after_save("*", background=True)
    def tell(request: TriggerRequest) -> None: ...

    @job("nightly", schedule="0 3 * * *")
    def nightly(request: Any) -> None:
        """Tidy up."""

    page = logged_in(VIEWERS).get(LIST)
    results = {item.name: item for item in page.context["functions"]}
    assert results["payOut"].asks == "a user with one of the roles Bank; or the master key"
    notes = "one transaction, at most 7 s, 3 calls in 60 s per user"
    assert ", ".join(results["payOut"].notes) == notes
    assert "test_functions_page" in results["payOut"].place
    assert results["sweep"].asks == "the master key"
    assert results["getFeatures"].asks == "everybody"
    own = [item for item in page.context["triggers"] if "test_functions_page" in item.place]
    assert [(item.of, item.name, *item.notes) for item in own] == [
        ("*", "after_save", "in the background", "at most 30 s"),
        ("Payment", "after_save", "in the transaction", "at most 30 s"),
        ("Payment", "before_save", "at most 30 s"),
    ]
    assert own[2].asks == "a user; or the master key"
    (nightly_row,) = [item for item in page.context["jobs"] if item.name == "nightly"]
    assert nightly_row.notes == ("scheduled 0 3 * * * (UTC)",)
    for text in ("Pay a user.", "Look at it.", "Tidy up.", of("payOut")):
        assert text in page.text


def test_webhooks_are_listed_without_the_secrets_of_their_addresses():
    for body in (
        {"functionName": "elsewhere", "url": "https://example.org/hook?token=s3cret"},
        {"className": "Game", "triggerName": "beforeSave", "url": "https://example.org/t"},
        {"functionName": "both", "url": "https://example.org/both"},
    ):
        hooks.create(MASTER, body)

    @function("both")
    def both(request: Request) -> int:
        return 1

    staff = logged_in(VIEWERS)
    page = staff.get(LIST)
    assert "https://example.org/hook?…" in page.text
    assert "s3cret" not in page.text
    assert [item.is_shadowed for item in page.context["functions"] if item.name == "both"] == [
        *(False, True),
    ]
    assert ("Game", "beforeSave") in {(item.of, item.name) for item in page.context["triggers"]}
    page = staff.get(of("elsewhere"))
    assert "it is a webhook" in page.text
    assert "s3cret" not in page.text


def test_a_text_narrows_the_list():
    @function("findMe")
    def item(request: Request) -> None:
        """About Whales."""

    staff = logged_in(VIEWERS)
    for text in ("FINDM", "whale", "test_functions_page"):
        names = [item.name for item in staff.get(LIST, {"q": text}).context["functions"]]
        assert names == ["findMe"], text
    assert staff.get(LIST, {"q": "nothing like it"}).context["functions"] == []


# -- Calls -----------------------------------------------------------------------------------------


def everything(
    request: Request,
    text: str = "none",
    count: Annotated[int, Meta(ge=1, le=9), "How many"] = 1,
    share: float | None = None,
    loud: bool = False,
    maybe: bool | None = None,
    colour: Literal["red", "blue", 3] = "red",
    when: datetime | None = None,
    day: date | None = None,
    owner: Pointer | None = None,
    place: GeoPoint | None = None,
    tags: list[str] | None = None,
    more: Any = None,
) -> Any:
    return request.params


def test_inputs_are_made_from_the_parameters():
    function("everything")(everything)
    page = logged_in().get(of("everything"))
    made = {entry.name: entry for entry in page.context["form"].inputs}
    assert {name: entry.kind for name, entry in made.items()} == {
        "text": "text",
        "count": "number",
        "share": "number",
        "loud": "checkbox",
        "maybe": "choice",
        "colour": "choice",
        "when": "moment",
        "day": "day",
        "owner": "json",
        "place": "json",
        "tags": "json",
        "more": "json",
    }
    assert made["count"].what == "a whole number, at least 1, at most 9"
    assert made["count"].description == "How many"
    assert made["count"].default == "1"
    assert made["colour"].options == [("3", "3"), ('"blue"', "blue"), ('"red"', "red")]
    assert '"__type": "Pointer"' in made["owner"].example


def test_a_call_has_what_was_entered_as_a_client_would_send_it():
    function("everything")(everything)
    staff = logged_in(EDITORS)
    assert result(call(staff, "everything")) == {"loud": False}
    value = {
        "p_text": "a\r\nb",
        "p_count": "3",
        "p_share": "0.5",
        "p_loud": "on",
        "p_maybe": "false",
        "p_colour": '"blue"',
        "p_when": "2030-01-31T12:30",
        "p_day": "2030-01-31",
        "p_owner": '{"__type": "Pointer", "className": "_User", "objectId": "abc"}',
        "p_place": '{"__type": "GeoPoint", "latitude": 1, "longitude": 2}',
        "p_tags": '["x"]',
        "p_more": "[null]",
        "more": '{"unknown": {"__type": "Date", "iso": "2030-01-31T12:30:00.000Z"}}',
    }
    answer = call(staff, "everything", **value)
    expected = {
        "text": "a\nb",
        "count": 3,
        "share": 0.5,
        "loud": True,
        "maybe": False,
        "colour": "blue",
        "when": {"__type": "Date", "iso": "2030-01-31T12:30:00.000Z"},
        "day": "2030-01-31",
        "owner": {"__type": "Pointer", "className": "_User", "objectId": "abc"},
        "place": {"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        "tags": ["x"],
        "more": [None],
        "unknown": {"__type": "Date", "iso": "2030-01-31T12:30:00.000Z"},
    }
    assert result(answer) == expected
    assert answer.context["form"].params == expected
    # The form still has what was entered.
    assert answer.context["form"].inputs[2].text == "0.5"


def test_an_empty_text_is_sent_where_that_is_wanted_and_null_where_something_is_required():
    @function("echo")
    def echo(request: Request, name: str, note: str | None) -> Any:
        return request.params

    staff = logged_in()
    assert failure(call(staff, "echo"))[1] == "Missing parameter: name (text)"
    assert result(call(staff, "echo", **{"p_name.empty": "on"})) == {"name": "", "note": None}


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ({"p_count": "three"}, "count"),
        ({"p_when": "yesterday"}, "when"),
        ({"p_tags": "[1"}, "tags"),
        ({"more": "[1]"}, "more"),
        ({"more": "[" * 2000}, "more"),
    ],
)
def test_what_is_no_number_date_or_json_is_shown_at_it_and_nothing_is_called(value, at):
    function("everything")(everything)
    answer = call(logged_in(), "everything", **value)
    assert answer.status_code == 400
    assert answer.context["outcome"] is None
    form = answer.context["form"]
    errors = {entry.name for entry in form.inputs if entry.error}
    assert errors | ({"more"} if form.more_error else set()) == {at}


def test_what_a_function_refuses_is_shown_as_a_client_gets_it():
    @function("refuse")
    def refuse(request: Request, code: int = 0) -> None:
        if code:
            raise ScriptFailed("as asked", code=code)
        raise RuntimeError("internal detail")

    staff = logged_in()
    assert failure(call(staff, "refuse", p_code="4711")) == (4711, "as asked")
    answer = call(staff, "refuse")
    code, message = failure(answer)
    assert code == 141
    assert "internal detail" not in answer.text
    assert answer.context["outcome"].request_id in message
    assert answer.headers["X-Request-Id"] == answer.context["outcome"].request_id
    assert staff.get(of("nothing")).status_code == 404
    assert call(staff, "nothing").status_code == 404


def test_a_function_that_takes_too_long_is_ended():
    @function("slow", time_limit=0.2)
    def slow(request: Request) -> None:
        while True:
            pass

    assert failure(call(logged_in(), "slow"))[0] == 124


def test_what_json_can_t_say_and_large_results_are_shown_too():
    @function("odd")
    def odd(request: Request, what: str) -> Any:
        return {"object": object(), "half": "\ud800", "large": "x" * 300_000, "big": 10**30}[what]

    staff = logged_in()
    assert failure(call(staff, "odd", p_what="object"))[0] == 107
    assert result(call(staff, "odd", p_what="half")) == "\N{REPLACEMENT CHARACTER}"
    assert result(call(staff, "odd", p_what="big")) == 10**30
    outcome = call(staff, "odd", p_what="large").context["outcome"]
    assert (len(outcome.text), outcome.length, outcome.is_cut) == (100_000, 300_002, True)


# -- Callers ---------------------------------------------------------------------------------------


@pytest.fixture
def who() -> None:
    @function("who")
    def who(request: Request) -> Any:
        return [request.master, request.user_id, sorted(request.roles)]


def test_it_is_called_as_the_master_key_the_public_or_a_user_with_their_roles(who):
    ann = sign_up("ann", email="ann@example.org")
    master = Api(MASTER_KEYS)
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Team", roles=[inner])
    staff = logged_in(ADMINISTRATORS)
    assert result(call(staff, "who", "master")) == [True, None, []]
    assert result(call(staff, "who", "public")) == [False, None, []]
    for named in (ann.user_id, "ann", "ANN@example.org"):
        answer = call(staff, "who", "user", user=named)
        assert result(answer) == [False, ann.user_id, ["Inner", "Team"]]
    # No other user can be named.
    assert result(call(staff, "who", "reader")) == [False, None, []]
    for nobody in ("zoe", "", "x" * 5000, "nul\x00"):
        answer = call(staff, "who", "user", user=nobody)
        assert (answer.status_code, answer.context["outcome"]) == (400, None)
        assert answer.context["form"].user_error == "There is no such user."


def test_requirements_and_access_lists_hold_for_the_chosen_caller():
    @function("note", require_user=True)
    def note(request: Request) -> Any:
        return request.objects("Note").create(text="x")

    ann = sign_up("ann")
    only_ann = {"create": {ann.user_id: True}}
    fields = {"text": {"type": "String"}}
    classes.create(MASTER, "Note", {"fields": fields, "classLevelPermissions": only_ann})
    sign_up("bob")
    staff = logged_in()
    assert failure(call(staff, "note", "public")) == (
        142,
        "Validation failed. Please login to continue.",
    )
    assert failure(call(staff, "note", "user", user="bob"))[0] == 119
    assert service.count(MASTER, "Note", Everything()) == 0
    made = result(call(staff, "note", "user", user="ann"))
    assert made["className"] == "Note"
    assert service.count(MASTER, "Note", Everything()) == 1


def test_who_is_chosen_at_first_is_who_may_call():
    @function("open")
    def open_(request: Request) -> None: ...

    @function("people", require_user=True)
    def people(request: Request) -> None: ...

    @function("own", require_master=True)
    def own(request: Request) -> None: ...

    staff = logged_in()
    chosen = {
        name: staff.get(of(name)).context["form"].caller for name in ("open", "people", "own")
    }
    assert chosen == {"open": "public", "people": "user", "own": "master"}


def test_the_address_is_the_staff_user_s_and_cookies_go_no_further():
    @function("where")
    def where(request: Request) -> Any:
        return [request.address, sorted(request.headers)]

    client = logged_in()
    answer = client.post(of("where"), {"call": "1", "caller": "public"}, REMOTE_ADDR="203.0.113.7")
    address, headers = result(answer)
    assert address == "203.0.113.7"
    assert "cookie" not in headers


def test_a_webhook_is_called_too(settings):
    settings.SERVICE = {**settings.SERVICE, "WEBHOOK_ALLOW_PRIVATE": ("127.0.0.0/8",)}
    receiver = Receiver()
    try:
        url = receiver.on("/f", {"success": {"got": EVIL}})
        hooks.create(MASTER, {"functionName": "elsewhere", "url": url})
        answer = call(logged_in(), "elsewhere", "public", more='{"a": 1}')
        assert result(answer) == {"got": EVIL}
        assert receiver.received[0].json["params"] == {"a": 1}
    finally:
        receiver.stop()


# -- curl ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caller", ["public", "user", "master"])
def test_the_command_makes_the_same_call_and_holds_no_key(live_server, settings, caller, tmp_path):
    """It is run as it stands, by a shell."""
    settings.SERVICE = {**settings.SERVICE, "PUBLIC_URL": live_server.url}

    @function("say")
    def say(request: Request, text: str) -> Any:
        return [text, request.master, request.user_id]

    ann = sign_up("ann")
    text = 'it\'s "$HOME" `id` $(id) \\ é\n!'
    answer = call(logged_in(), "say", caller, p_text=text, user="ann")
    command = answer.context["curl"]
    for secret in (*MASTER_KEYS.values(), *CLIENT.values(), ann.token):
        assert secret not in command
    variables = {
        "APP_ID": "test-app",
        "REST_API_KEY": "test-rest-key",
        "MASTER_KEY": "test-master-key",
        "SESSION_TOKEN": ann.token,
    }
    done = subprocess.run(
        ["sh", "-c", f"{command} --silent"],
        env=variables | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == {"result": result(answer)}


def test_the_command_is_shown_without_a_call_and_for_an_example():
    called = []

    @function("note")
    def note(request: Request, name: str, count: int, owner: Pointer, label: str = "") -> None:
        called.append(1)

    staff = logged_in()
    example = staff.get(of("note")).context["curl"]
    assert '"count": 1' in example
    assert '"__type": "Pointer"' in example
    assert "label" not in example
    page = staff.post(of("note"), {"show": "1", "caller": "master", "p.name": "x", "p.count": "7"})
    assert '{"name": "x", "count": 7}' in page.context["curl"]
    assert "X-Svc-Master-Key: $MASTER_KEY" in page.context["curl"]
    assert page.context["outcome"] is None
    assert called == []


# -- Who may ---------------------------------------------------------------------------------------


def test_a_viewer_sees_functions_and_may_not_call_them():
    called = []

    @function("touch")
    def touch(request: Request, name: Annotated[str, "Whose"] = "x") -> None:
        called.append(1)

    viewer = logged_in(VIEWERS)
    page = viewer.get(of("touch"))
    assert page.status_code == 200
    assert "Whose" in page.text
    assert "sv-primary" not in page.text
    assert call(viewer, "touch").status_code == 403
    assert viewer.post(of("touch"), {"show": "1"}).status_code == 403
    assert viewer.post(LIST).status_code == 405
    assert called == []
    for group in (EDITORS, ADMINISTRATORS):
        assert call(logged_in(group), "touch").status_code == 200
    assert len(called) == 2


@pytest.mark.parametrize(
    ("held", "status"),
    [([], (403, 403)), (["view_function"], (200, 403)), (["call_function"], (403, 403)),
     (["view_function", "call_function"], (200, 200))],
)  # fmt: skip
def test_each_permission_is_requested(held, status, who):
    user = User.objects.create_user("custom", is_staff=True)
    for name in held:
        user.user_permissions.add(Permission.objects.get(codename=name))
    staff = Client()
    staff.force_login(user)
    assert (staff.get(of("who")).status_code, call(staff, "who").status_code) == status


def test_others_than_staff_and_pages_of_other_sites_are_refused(who):
    assert Client().get(LIST).status_code == 302
    assert call(Client(), "who").status_code == 302
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(staff_user(None))
    assert call(forged, "who").status_code == 403


def test_who_has_called_what_as_whom_is_logged_and_no_parameter(who, log_store_redis):
    ann = sign_up("ann")
    call(logged_in(EDITORS), "who", "user", user="ann", more='{"pin": "s3cret"}')
    store.flush()
    (line,) = search.search(LogFilter(text="staff write")).entries
    event = {name: line.fields[name] for name in ("staff", "action", "function", "caller")}
    assert event == {
        "staff": "editors",
        "action": "call function",
        "function": "who",
        "caller": ann.user_id,
    }
    assert search.search(LogFilter(text="s3cret")).entries == []


# -- In a browser ----------------------------------------------------------------------------------


@pytest.fixture
def page(chromium: Browser, live_server: Any) -> Iterator[Page]:
    wide = {"width": 1440, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(EDITORS), viewport=wide) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


def book(
    request: Request,
    when: Annotated[datetime, "The first evening"],
    guests: Annotated[int, Meta(ge=1, le=20), f"How many come {EVIL}"],
    room: Literal["inside", "outside"] = "inside",
    name: str = EVIL,
    window: bool = False,
    friend: Pointer | None = None,
) -> Any:
    if guests == 13:
        raise ScriptFailed(f"Thirteen is not a number of guests {EVIL}")
    if guests == 14:
        raise RuntimeError("the table broke")
    return {"when": when, "guests": guests, "room": room, "window": window, "html": EVIL}


book.__doc__ = f"Book a table {EVIL}\n\nFor an evening, or for several."


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_a_function_is_found_and_tried_in_a_browser(page, log_store_redis):
    function("bookTable", require_user=True, rate_limit=RateLimit(100, 60, "user"))(book)

    @before_save("Booking")
    def check(request: TriggerRequest) -> None:
        """Whether there is a table."""

    @job("nightly", schedule="0 3 * * *")
    def nightly(request: Any) -> None:
        """Tidy up."""

    sign_up("ann")
    hooks.create(MASTER, {"functionName": "elsewhere", "url": "https://example.org/hook"})
    page.goto("/admin/")
    page.get_by_role("link", name="Functions", exact=True).first.click()
    expect(page.get_by_text("Book a table <img src=x")).to_be_visible()
    look(page, "functions")
    page.get_by_role("link", name="bookTable").click()
    expect(page.get_by_role("heading", level=1).first).to_contain_text("bookTable")
    look(page, "function")

    page.get_by_label("guests").fill("many")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.get_by_text("expected a number, like 3")).to_be_visible()
    expect(page.get_by_text("There is no such user.")).to_have_count(0)
    look(page, "function_wrong")

    page.get_by_label("guests").fill("4")
    page.get_by_label("room").select_option("outside")
    page.get_by_label("when").fill("2030-01-31T12:30")
    page.get_by_label("window").check()
    page.get_by_label("The user").fill("ann")
    page.get_by_role("button", name="Call", exact=True).click()
    answer = page.get_by_label("The result")
    expect(answer).to_contain_text("As ann, in")
    expect(answer).to_contain_text('"room": "outside"')
    expect(answer).to_contain_text("<script>alert(2)</script>")
    expect(page.get_by_label("The command")).to_contain_text("$SESSION_TOKEN")
    look(page, "function_result")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.get_by_label("The command").locator("pre").inner_text()

    page.get_by_label("guests").fill("13")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(answer).to_contain_text("Error 141")
    look(page, "function_error")
    page.get_by_label("guests").fill("14")
    page.get_by_label("Call as").select_option("master")
    expect(page.get_by_label("The user")).to_be_hidden()
    page.get_by_role("button", name="Call", exact=True).click()
    expect(answer).to_contain_text("The function bookTable failed.")
    expect(answer).not_to_contain_text("the table broke")
    store.flush()
    expect(page.locator("img[src=x]")).to_have_count(0)


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_from_a_failed_call_to_its_log(chromium, live_server, log_store_redis):
    function("bookTable")(book)
    wide = {"width": 1440, "height": 900}
    with staff_page(chromium, live_server.url, staff_user(None), viewport=wide) as page:
        page.goto(of("bookTable"))
        page.get_by_label("guests").fill("14")
        page.get_by_label("when").fill("2030-01-31T12:30")
        page.get_by_role("button", name="Call", exact=True).click()
        result = page.get_by_label("The result")
        expect(result).to_contain_text("The function bookTable failed.")
        store.flush()
        result.get_by_role("link").click()
        expect(page.get_by_text("code of the deployment failed")).to_be_visible()
        expect(page.get_by_text("staff write")).to_be_visible()
        look(page, "function_log")


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_in_both_schemes(page, scheme):
    function("bookTable")(book)
    function("long" * 30)(everything)
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    for name, path in (("list", LIST), ("form", of("bookTable")), ("long", of("long" * 30))):
        page.goto(path)
        if name == "form":
            page.get_by_label("guests").fill("4")
            page.get_by_label("when").fill("2030-01-31T12:30")
            page.get_by_role("button", name="Call", exact=True).click()
            expect(page.get_by_label("The result")).to_contain_text("Result")
        look(page, f"narrow_function_{name}_{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path

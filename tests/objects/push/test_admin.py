"""The admin's pages of pushes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from objects.database import maintenance
from objects.push import expansion, statuses
from objects.push.adapters.base import failed
from objects.push.models import Push
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import logged_in, staff_user
from tests.objects.push.pushing import api, cancel, install, push, send, status, work
from tests.objects.push.recorder import Recorder

PAGE = "/admin/push/"


def text_of(staff: Client, path: str) -> str:
    response = staff.get(path)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.django_db
def test_viewers_see_pushes_and_send_none(recorder: Recorder) -> None:
    installation = install(2)[0]
    recorder.outcomes = {"token-0": failed("FCM: 400 INVALID_ARGUMENT")}
    push_id = push(data={"alert": "<b>Hello</b>"})
    work(push_id)
    staff = logged_in("Viewers")
    listed = text_of(staff, PAGE)
    assert push_id in listed
    assert "&lt;b&gt;Hello" in listed
    assert "Send a test push" not in listed
    shown = text_of(staff, f"{PAGE}{push_id}/")
    assert "FCM: 400 INVALID_ARGUMENT" in shown
    assert "1 sent, 1 failed" in shown
    assert staff.post(PAGE, {"installation": installation, "text": "x"}).status_code == 403
    assert staff.get(f"{PAGE}nothing/").status_code == 404
    assert Push.objects.count() == 1


@pytest.mark.django_db
def test_staff_without_permissions_see_nothing() -> None:
    from django.contrib.auth.models import User

    staff = Client()
    staff.force_login(User.objects.create_user("other", is_staff=True))
    assert staff.get(PAGE).status_code == 403
    assert staff.get(f"{PAGE}x/").status_code == 403


@pytest.mark.django_db
def test_administrators_send_to_one_installation(recorder: Recorder) -> None:
    first, _ = install(2)
    staff = logged_in("Administrators")
    response = staff.post(PAGE, {"installation": first, "text": "Test"})
    row = Push.objects.get()
    assert response["Location"] == f"{PAGE}{row.pk}/"
    assert row.source == "admin"
    work(row.pk)
    assert [(message.installation, message.data) for message in recorder.messages] == [
        (first, {"alert": "Test"})
    ]
    without = install(1, deviceToken=None)[0]
    for form, complaint in (
        ({"installation": without, "text": "x"}, "has no device token"),
        ({"installation": "nobody", "text": "x"}, "nobody as objectId or installationId."),
        ({"installation": first, "text": " "}, "needs a text"),
        ({"installation": "../x", "text": "x"}, "No installation has ../x"),
    ):
        assert complaint in staff.post(PAGE, form).content.decode()
    assert Push.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["installation-1", "INSTALLATION-1"])
def test_staff_may_name_an_installation_by_its_installation_id(
    recorder: Recorder, text: str
) -> None:
    _, second = install(2)
    staff = logged_in("Administrators")
    assert staff.post(PAGE, {"installation": text, "text": "Test"}).status_code == 302
    work(Push.objects.get().pk)
    assert [message.installation for message in recorder.messages] == [second]


@pytest.mark.django_db
def test_pages_show_the_status_that_the_api_has(recorder: Recorder) -> None:
    install(1)
    staff = logged_in("Viewers")

    def check(push_id: str, expected: str) -> None:
        assert status(push_id)["status"] == expected
        for path in (PAGE, f"{PAGE}{push_id}/"):
            assert f"<td>{expected}" in text_of(staff, path)
        Push.objects.all().delete()

    scheduled = push(push_time=2**31)
    check(scheduled, "scheduled")
    check(push(), "pending")
    running = push()
    expansion.expand(running)
    statuses.publish(running)
    check(running, "running")
    succeeded = push()
    work(succeeded)
    check(succeeded, "succeeded")
    failing = push(where={"$nonsense": 1})
    work(failing)
    check(failing, "failed")


@pytest.mark.django_db
def test_a_push_that_is_cancelled_over_rest_is_shown_as_cancelled(recorder: Recorder) -> None:
    push_id = push(push_time=2**31)
    cancel(push_id)
    staff = logged_in("Viewers")
    for path in (PAGE, f"{PAGE}{push_id}/"):
        assert "<td>cancelled" in text_of(staff, path)


@pytest.mark.django_db
@pytest.mark.parametrize("is_running", [False, True])
def test_administrators_cancel_a_push(recorder: Recorder, is_running: bool) -> None:
    install(2)
    push_id = push() if is_running else push(push_time=2**31)
    if is_running:
        expansion.expand(push_id)
    staff = logged_in("Administrators")
    page = f"{PAGE}{push_id}/cancel/"
    assert page in text_of(staff, f"{PAGE}{push_id}/")
    assert text_of(staff, page)
    assert status(push_id)  # a visit alone changes nothing
    assert staff.post(page)["Location"] == f"{PAGE}{push_id}/"
    assert "<td>cancelled" in text_of(staff, PAGE)
    assert page not in text_of(staff, f"{PAGE}{push_id}/")
    assert api.get(f"/classes/_PushStatus/{push_id}").error == (404, 101)
    send(push_id)
    assert recorder.messages == []


@pytest.mark.django_db
def test_a_push_that_has_ended_is_not_cancelled(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    work(push_id)
    staff = logged_in("Administrators")
    assert "/cancel/" not in text_of(staff, f"{PAGE}{push_id}/")
    response = staff.post(f"{PAGE}{push_id}/cancel/")
    assert response.status_code == 400
    assert "has ended already" in response.content.decode()
    assert status(push_id)["status"] == "succeeded"
    assert staff.post(f"{PAGE}nothing/cancel/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("group", ["Viewers", "Editors"])
def test_others_cancel_no_push(recorder: Recorder, group: str) -> None:
    push_id = push(push_time=2**31)
    staff = logged_in(group)
    assert "/cancel/" not in text_of(staff, f"{PAGE}{push_id}/")
    for response in (
        staff.get(f"{PAGE}{push_id}/cancel/"),
        staff.post(f"{PAGE}{push_id}/cancel/"),
    ):
        assert response.status_code == 403
    assert status(push_id)["status"] == "scheduled"


@pytest.mark.django_db(transaction=True)
def test_maintenance_mode_refuses_to_cancel(recorder: Recorder) -> None:
    push_id = push(push_time=2**31)
    staff = logged_in("Administrators")
    maintenance.on("Moving")
    try:
        response = staff.post(f"{PAGE}{push_id}/cancel/")
        assert "Moving" in response.content.decode()
    finally:
        maintenance.off()
    assert status(push_id)["status"] == "scheduled"


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_a_test_push_in_a_browser(live_server: Any, recorder: Recorder) -> None:
    first = install(3)[0]
    recorder.outcomes = {"token-1": failed("APNs: 400 BadDeviceToken")}
    push_id = push(data={"alert": "Hello", "title": "News"})
    work(push_id)
    scheduled = push(push_time="2030-01-15T12:00:00")
    user = staff_user("Administrators")
    with browser() as chromium, staff_page(chromium, live_server.url, user) as page:
        page.goto(PAGE)
        look(page, "pushes")
        button, table = (
            page.locator(part).bounding_box() for part in ("button.sv-primary", ".sv-scroll")
        )
        assert button is not None
        assert table is not None
        assert table["y"] - (button["y"] + button["height"]) >= 12
        assert page.get_by_role("link", name=push_id).is_visible()
        page.locator("input[name=installation]").fill(first)
        page.locator("input[name=text]").fill("Test")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("The push is being sent.").wait_for()
        page.goto(f"{PAGE}{push_id}/")
        look(page, "push")
        assert page.get_by_text("APNs: 400 BadDeviceToken").is_visible()
        page.goto(f"{PAGE}{scheduled}/")
        look(page, "push-scheduled")
        page.get_by_role("link", name="Cancel the push").click()
        look(page, "push-cancel")
        page.get_by_role("button", name="Cancel the push").click()
        page.get_by_text("The push is cancelled.").wait_for()
        look(page, "push-cancelled")

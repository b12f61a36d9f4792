"""The admin's pages of pushes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from objects.push.adapters.base import failed
from objects.push.models import Push
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import logged_in, staff_user
from tests.objects.push.pushing import install, push, work
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
        ({"installation": "nobody", "text": "x"}, "Object not found."),
        ({"installation": first, "text": " "}, "needs a text"),
        ({"installation": "../x", "text": "x"}, "Object not found."),
    ):
        assert complaint in staff.post(PAGE, form).content.decode()
    assert Push.objects.count() == 1


@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_a_test_push_in_a_browser(live_server: Any, recorder: Recorder) -> None:
    first = install(3)[0]
    recorder.outcomes = {"token-1": failed("APNs: 400 BadDeviceToken")}
    push_id = push(data={"alert": "Hello", "title": "News"})
    work(push_id)
    push(push_time="2030-01-15T12:00:00")
    user = staff_user("Administrators")
    with browser() as chromium, staff_page(chromium, live_server.url, user) as page:
        page.goto(PAGE)
        look(page, "pushes")
        assert page.get_by_role("link", name=push_id).is_visible()
        page.locator("input[name=installation]").fill(first)
        page.locator("input[name=text]").fill("Test")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("The push is being sent.").wait_for()
        page.goto(f"{PAGE}{push_id}/")
        look(page, "push")
        assert page.get_by_text("APNs: 400 BadDeviceToken").is_visible()

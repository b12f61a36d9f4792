"""Webhooks and their deliveries in the admin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from functions.webhooks.models import Delivery, Hook
from tests.functions.webhooks.receiver import Receiver
from tests.objects.admin.staff import logged_in
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db

HOOKS = "/admin/functions/hook/"
DELIVERIES = "/admin/functions/delivery/"


@pytest.fixture
def delivery(receiver: Receiver) -> Delivery:
    """One that was given up."""
    url = f"{receiver.url}/path?token=secret"
    hook = {"className": "Game", "triggerName": "afterSave", "url": url}
    Api(MASTER).post("/hooks/triggers", hook)
    Api(MASTER).make("Game", name="chess")
    Delivery.objects.update(state="dead", attempts=8, last_error="it responded with status 500")
    return Delivery.objects.get()


def send_again(client: Client, delivery: Delivery) -> int:
    message = {"action": "send_again", "_selected_action": [delivery.pk]}
    return client.post(DELIVERIES, message).status_code


def test_staff_see_webhooks_without_what_may_be_secret(delivery: Delivery) -> None:
    client = logged_in("Viewers")
    for url in (HOOKS, f"{HOOKS}{delivery.hook_id}/change/"):
        page = client.get(url)
        assert page.status_code == 200
        assert b"/path?\xe2\x80\xa6" in page.content
        assert b"secret" not in page.content


def test_staff_see_what_became_of_deliveries(delivery: Delivery) -> None:
    client = logged_in("Viewers")
    page = client.get(DELIVERIES, {"state__exact": "dead"}).content.decode()
    assert delivery.key in page
    assert "it responded with status 500" in page
    page = client.get(f"{DELIVERIES}{delivery.pk}/change/").content.decode()
    assert "chess" in page


def test_administrators_send_again(delivery: Delivery) -> None:
    assert send_again(logged_in("Administrators"), delivery) == 302
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("pending", 0, "")


@pytest.mark.parametrize("group", ["Viewers", "Editors"])
def test_others_do_not(delivery: Delivery, group: str) -> None:
    send_again(logged_in(group), delivery)
    delivery.refresh_from_db()
    assert delivery.state == "dead"


@pytest.mark.parametrize("url", [f"{HOOKS}add/", f"{DELIVERIES}add/"])
def test_nothing_is_added_or_changed_there(delivery: Delivery, url: str) -> None:
    client = logged_in()
    assert client.get(url).status_code == 403
    assert (
        client.post(f"{HOOKS}{delivery.hook_id}/change/", {"url": "https://x"}).status_code == 403
    )
    assert client.post(f"{DELIVERIES}{delivery.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_pause_is_shown_until_it_is_over(delivery: Delivery) -> None:
    client = logged_in("Viewers")
    own_page = f"{HOOKS}{delivery.hook_id}/change/"

    def shown(moment: datetime) -> list[bool]:
        Hook.objects.update(rests_until=moment)
        year = str(moment.year)
        return [year in client.get(page).content.decode() for page in (HOOKS, own_page)]

    assert shown(datetime(2071, 2, 3, tzinfo=UTC)) == [True, True]
    assert shown(datetime(2001, 2, 3, tzinfo=UTC)) == [False, False]


def test_each_change_of_a_webhook_sets_its_time_of_change(delivery: Delivery) -> None:
    hook = Hook.objects.get()
    Api(MASTER).post("/hooks/functions", {"functionName": "greet", "url": hook.url})
    client = logged_in("Administrators")
    action = {"action": "deliver_by_worker", "_selected_action": [hook.pk]}
    past = datetime(2001, 2, 3, tzinfo=UTC)
    for class_name, change in (
        ("Game", lambda: client.post(HOOKS, action)),
        ("Game", lambda: Api(MASTER).put("/hooks/triggers/Game/afterSave", {"background": False})),
        ("Game", lambda: Api(MASTER).put("/hooks/triggers/Game/afterSave", {"url": hook.url})),
        (None, lambda: Api(MASTER).put("/hooks/functions/greet", {"url": hook.url})),
    ):
        Hook.objects.update(updated_at=past)
        change()
        assert Hook.objects.get(class_name=class_name).updated_at > past


def test_administrators_choose_the_way_of_delivery(delivery: Delivery) -> None:
    hook = Hook.objects.get()
    clients = {group: logged_in(group) for group in ("Viewers", "Administrators")}
    for group, action, background in (
        ("Viewers", "deliver_by_worker", False),
        ("Administrators", "deliver_by_worker", True),
        ("Viewers", "deliver_in_request", True),
        ("Administrators", "deliver_in_request", False),
    ):
        clients[group].post(HOOKS, {"action": action, "_selected_action": [hook.pk]})
        hook.refresh_from_db()
        assert hook.background is background

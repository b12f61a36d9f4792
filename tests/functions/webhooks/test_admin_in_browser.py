"""The pages of webhooks in headless Chromium."""

from __future__ import annotations

from typing import Any

import pytest

from functions.webhooks.models import Delivery
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.functions.webhooks.receiver import Receiver
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import staff_user
from tests.rest import MASTER, Api

pytestmark = [pytest.mark.django_db(transaction=True), NEEDS_CHROMIUM]


@pytest.mark.slow
def test_a_delivery_that_was_given_up_is_sent_again(live_server: Any, receiver: Receiver) -> None:
    for trigger in ("beforeDelete", "afterSave"):
        hook = {"className": "Game", "triggerName": trigger, "url": f"{receiver.url}/path?token=x"}
        Api(MASTER).post("/hooks/triggers", hook)
    Api(MASTER).post("/hooks/functions", {"functionName": "greet", "url": receiver.url})
    for name in ("chess", "go"):
        Api(MASTER).make("Game", name=name)
    Delivery.objects.update(state="dead", attempts=8, last_error="it responded with status 500")
    user = staff_user(None)
    with browser() as chromium, staff_page(chromium, live_server.url, user) as page:
        page.goto("/admin/functions/hook/")
        look(page, "hooks")
        assert page.get_by_text("afterSave of Game").is_visible()
        page.goto("/admin/functions/delivery/?state__exact=dead")
        look(page, "deliveries")
        page.locator("input[name=_selected_action]").first.check()
        page.locator("select[name=action]").select_option("send_again")
        page.locator("button[name=index]").click()
        page.get_by_text("One delivery is sent again.").wait_for()
        look(page, "sent-again")
        again = Delivery.objects.get(state="pending")
        page.goto(f"/admin/functions/delivery/{again.pk}/change/")
        look(page, "delivery")

"""Webhooks of functions with names that only webhooks may have, in the admin."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.functions.webhooks.receiver import Receiver
from tests.objects.admin.staff import logged_in
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["my function", "search.it", "<b>&", "a:b(c)+d@e"])
def test_staff_see_and_call_functions_of_any_name(receiver: Receiver, name: str) -> None:
    hook = {"functionName": name, "url": receiver.on("/", raw=b"")}
    assert Api(MASTER).post("/hooks/functions", hook).json == hook
    client = logged_in("Administrators")
    assert client.get(reverse("admin:code_functions")).status_code == 200
    page = client.get(reverse("admin:code_function", args=[name]))
    assert page.status_code == 200
    assert b"<b>&" not in page.content
    form = {"call": "1", "caller": "master", "params": "{}"}
    called = client.post(reverse("admin:code_function", args=[name]), form)
    assert called.status_code == 200
    assert [item.json["functionName"] for item in receiver.received] == [name]

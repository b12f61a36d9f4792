"""Pushes to installations whose clients store odd values: no other device misses the push."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from functions import FindRequest, after_find
from functions.runtime.registry import registry
from objects.push.adapters.base import failed
from objects.push.expansion import LARGEST_FIELD
from objects.push.models import Push
from objects.push.requests import LARGEST_BADGE, BadgeChange, is_badge
from objects.push.totals import MAX_TYPES
from tests.objects.push.pushing import api, install, push, status, sweep, targets, work
from tests.objects.push.recorder import Recorder

pytestmark = pytest.mark.django_db

LONG = "x" * (LARGEST_FIELD + 1)


@pytest.fixture
def few_results(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "MAX_RESPONSE_SIZE": 10_000}


def grow(object_id: str, size: int) -> None:
    """Let an installation have this many characters more, more than a request may have."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE objects_installation SET data = data"
            " || jsonb_build_object('junk', repeat('j', %s)) WHERE object_id = %s",
            [size, object_id],
        )


# -- Size -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_large_installations_get_it_as_all_others_do(recorder: Recorder) -> None:
    large = install(6)
    install(3, localeIdentifier="fr", badge=7)
    for object_id in large:
        grow(object_id, 16_000_000)
    data = {"alert": "Hello", "alert-fr": "Bonjour", "badge": "Increment"}
    stored = work(push(data=data))
    assert (stored["status"], stored["numSent"]) == ("succeeded", 9)
    shown = sorted((message.data["alert"], message.data["badge"]) for message in recorder.messages)
    assert shown == [("Bonjour", 8)] * 3 + [("Hello", 1)] * 6


def test_a_page_of_too_large_results_is_divided(recorder: Recorder, few_results: None) -> None:
    install(30, localeIdentifier="x" * 2000)
    push_id = push()
    assert work(push_id)["numSent"] == 30
    assert len(recorder.messages) == 30


def test_texts_that_no_service_takes_are_not_read(recorder: Recorder) -> None:
    install(1, deviceToken=None, pushType="x")
    install(1, deviceToken="a" * (LARGEST_FIELD - 2))
    install(1, deviceToken="b" * (LARGEST_FIELD - 1))
    install(1, deviceType=LONG, appIdentifier=LONG, pushType=LONG, localeIdentifier=LONG)
    push_id = push()
    stored = work(push_id)
    assert stored["sentPerType"] == {"android": 1, "other": 1}
    rows = [(len(t.device_token), t.device_type, t.app_identifier) for t in targets(push_id)]
    assert sorted(rows) == [(7, "", ""), (LARGEST_FIELD - 2, "android", "")]


def test_a_trigger_gets_no_large_value(recorder: Recorder) -> None:
    acl = {f"reader{number}": {"read": True} for number in range(500)}
    install(1, localeIdentifier="de", ACL={"role:Editors": {"read": True}})
    install(1, localeIdentifier=LONG, ACL=acl, junk=LONG)
    shown = []

    with registry.temporarily():

        @after_find("_Installation")
        def look(request: FindRequest) -> None:
            assert request.results is not None
            shown.extend(dict(result) for result in request.results)

        assert work(push())["numSent"] == 2
    fields = {result["localeIdentifier"] for result in shown if "localeIdentifier" in result}
    assert fields == {"de"}
    assert not any("junk" in result for result in shown)
    lists = [result["ACL"] for result in shown]
    assert {} in lists
    assert {"role:Editors": {"read": True}} in lists


def test_channels_have_a_largest_size() -> None:
    object_id = install(1)[0]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE objects_installation SET channels = jsonb_build_array(repeat('x', %s))",
            [16 * 1024 * 1024 - 20],
        )
    reply = api.put(f"/installations/{object_id}", {"badge": 1})
    assert reply.status == 200
    more = {"__op": "AddUnique", "objects": ["twenty-characters-it-is"]}
    reply = api.put(f"/installations/{object_id}", {"channels": more})
    assert reply.error == (413, 116)
    assert api.put(f"/installations/{object_id}", {"channels": ["news"]}).status == 200


# -- Badges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "badge",
    [10**400, -(10**400), 10**999 + 1, 10**1000 - 1, 1.7e308, LARGEST_BADGE + 1, -(2**63) - 1],
    ids=["long", "negative", "longer", "longest", "double", "next", "bigint"],
)
@pytest.mark.parametrize("change", ["Increment", {"__op": "Increment", "amount": 0.5}])
def test_a_badge_that_no_device_shows_is_replaced(
    recorder: Recorder, badge: float, change: Any
) -> None:
    odd, other = install(1, badge=badge) + install(1, badge=3)
    amount = 1 if change == "Increment" else 0.5
    stored = work(push(data={"badge": change}))
    assert (stored["status"], stored["numSent"]) == ("succeeded", 2)
    badges = {message.installation: message.data["badge"] for message in recorder.messages}
    assert badges == {odd: amount, other: 3 + amount}
    assert {row["objectId"]: row["badge"] for row in api.results("_Installation")} == badges


def test_a_badge_has_a_largest_value(recorder: Recorder) -> None:
    install(1, badge=LARGEST_BADGE)
    work(push(data={"badge": "Increment"}))
    assert recorder.messages[0].data["badge"] == LARGEST_BADGE


def test_an_installation_that_cannot_be_changed_gets_it(recorder: Recorder) -> None:
    full, other = install(2)
    # With a badge it would be larger than an object may be.
    grow(full, 16 * 1024 * 1024 - 12)
    stored = work(push(data={"badge": "Increment"}))
    assert (stored["status"], stored["numSent"]) == ("succeeded", 2)
    assert {message.data["badge"] for message in recorder.messages} == {1}
    badges = {
        row["objectId"]: row.get("badge") for row in api.results("_Installation", keys="badge")
    }
    assert badges == {full: None, other: 1}


# -- Types of devices -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "device_type",
    ["constructor", "prototype", "__proto__", "_bsontype", "a.b", "$a", "__op", "x" * 33, "-"],
)
def test_types_that_cannot_be_keys_are_counted_together(
    recorder: Recorder, device_type: str
) -> None:
    install(1)
    install(1, deviceType=device_type)
    install(1, deviceType=device_type, deviceToken="bad")
    recorder.outcomes = {"bad": failed("bad")}
    stored = work(push())
    assert (stored["status"], stored["numSent"]) == ("succeeded", 2)
    assert stored["sentPerType"] == {"android": 1, "other": 1}
    assert stored["failedPerType"] == {"other": 1}


def test_a_status_has_few_types(recorder: Recorder) -> None:
    for number in range(MAX_TYPES + 5):
        install(1, deviceType=f"type-{number}")
    stored = work(push())
    assert (stored["status"], stored["numSent"]) == ("succeeded", MAX_TYPES + 5)
    assert len(stored["sentPerType"]) == MAX_TYPES + 1
    assert stored["sentPerType"]["other"] == 5


def test_statuses_that_earlier_versions_could_not_write_are_written() -> None:
    push_id = push()
    work(push_id)
    counts = {"sentPerType": {"constructor": 2, "other": 1, "ios": 3}}
    Push.objects.filter(pk=push_id).update(totals=counts, sent=6, is_published=False)
    sweep()
    assert status(push_id)["sentPerType"] == {"other": 3, "ios": 3}


@given(
    badge=st.one_of(st.integers(), st.integers(min_value=10**300), st.floats(), st.booleans()),
    amount=st.integers(-LARGEST_BADGE, LARGEST_BADGE) | st.floats(-LARGEST_BADGE, LARGEST_BADGE),
)
def test_every_sum_is_a_badge(badge: float, amount: float) -> None:
    assert is_badge(BadgeChange(amount, True).after(badge))

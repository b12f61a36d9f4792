"""``/events``: apps report what happens, operators count it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from objects.analytics.models import Event
from objects.tasks import remove_expired
from tests.people import make_role, sign_up


def today(days: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%d")


def test_a_client_reports_events_and_the_master_key_counts_them(client, master, reader):
    for name in ("search", "search", "AppOpened"):
        reply = client.post(f"/events/{name}", {})
        assert (reply.status, reply.json) == (200, {})
    searches = {"day": today(), "name": "search", "count": 2}
    opened = {"day": today(), "name": "AppOpened", "count": 1}
    for api in (master, reader):
        assert api.get("/events").json == {"results": [searches, opened]}
        assert api.get("/events/search").json == {"results": [searches]}
        assert api.get("/events/never").json == {"results": []}


def test_events_are_distinguished_by_their_dimensions(client, master):
    for price in ("low", "high", "low", None):
        body = {} if price is None else {"dimensions": {"price": price, "source": "web"}}
        client.post("/events/search", body)
    results = master.get("/events/search", dimension="price").json["results"]
    assert [(result["value"], result["count"]) for result in results] == [
        ("low", 2),
        ("high", 1),
        (None, 1),
    ]


def test_an_event_counts_on_the_day_that_its_sender_names(client, master):
    when = {"__type": "Date", "iso": f"{today(-2)}T23:59:59.999Z"}
    client.post("/events/search", {"at": when})
    client.post("/events/search", {"at": f"{today(-1)}T12:00:00Z", "push_hash": "x"})
    results = master.get("/events", since=today(-2), until=today(-1)).json["results"]
    assert results == [{"day": today(-2), "name": "search", "count": 1}]
    assert len(master.get("/events").json["results"]) == 2
    assert master.get("/events", until=today(-2)).json["results"] == []


def test_who_has_no_master_key_counts_nothing_and_the_read_only_one_reports_nothing(
    client, master, reader, application
):
    ann, bob = sign_up("ann"), sign_up("bob")
    make_role(master, "Team", users=[ann])
    for api in (ann, bob, client):
        assert api.post("/events/search").status == 200
        assert api.get("/events").error == (403, 119)
        assert api.get("/events/search").error == (403, 119)
    assert application.post("/events/search").error == (403, 262)
    assert reader.post("/events/search").error == (400, 119)
    assert Event.objects.count() == 3


@pytest.mark.parametrize(
    ("name", "body", "code", "place"),
    [
        ("%20", {}, 160, "event name"),
        ("x" * 129, {}, 160, "event name"),
        ("a%00b", {}, 105, "name"),
        ("a%0Ab", {}, 105, "name"),
        ("a", {"at": "soon"}, 111, "at"),
        ("a", {"at": 5}, 111, "at"),
        ("a", {"at": {"__type": "Date"}}, 111, "at"),
        ("a", {"dimensions": ["a"]}, 107, "dimensions"),
        ("a", {"dimensions": {"n": 1}}, 111, "dimensions.n"),
        ("a", {"dimensions": {"n": "a\u0000"}}, 111, "dimensions.n"),
        ("a", {"dimensions": {"n": "x" * 257}}, 107, "dimensions.n"),
        ("a", {"dimensions": {"": "x"}}, 107, "dimensions"),
        ("a", {"dimensions": {f"n{n}": "x" for n in range(9)}}, 107, "dimensions"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(client, name, body, code, place):
    reply = client.post(f"/events/{name}", body)
    assert reply.error == (400, code)
    assert place in reply.json["error"]
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    "requests",
    [
        {"since": "soon"},
        {"since": "2020-01-01", "until": "2021-06-01"},
        {"since": "2020-01-02", "until": "2020-01-01"},
        {"limit": "5"},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(master, requests):
    assert master.get("/events", **requests).error == (400, 102)


def test_old_events_are_removed_and_those_beyond_the_limit(client, settings):
    settings.SERVICE = {**settings.SERVICE, "EVENT_RETENTION": 10, "EVENT_LIMIT": 3}
    for number in range(6):
        client.post(f"/events/number{number}")
    newest = Event.objects.order_by("-id").first()
    assert newest is not None
    old = datetime.now(UTC) - timedelta(days=11)
    Event.objects.filter(pk=newest.pk).update(received_at=old)
    remove_expired()
    names = Event.objects.order_by("id").values_list("name", flat=True)
    assert list(names) == ["number2", "number3", "number4"]


def test_the_admin_lists_events(client, admin_client):
    client.post("/events/search", {"dimensions": {"source": "web"}})
    page = admin_client.get("/admin/objects/event/?q=search")
    assert page.status_code == 200
    assert "search" in page.text
    assert "web" in page.text

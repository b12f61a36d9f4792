"""Logs, rate limits, maintenance mode and reasons in the admin."""

from __future__ import annotations

import html
import itertools
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.test import Client

import backend.limits.decisions
from backend.kernel.principal import MASTER
from backend.limits import state
from backend.logs import search, setup, store
from backend.logs.filters import LogFilter
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects import service
from objects.database import maintenance
from tests.callers import *  # noqa: F403
from tests.objects.admin.log_records import *  # noqa: F403
from tests.objects.admin.staff import logged_in
from tests.people import log_in, make_role, sign_up

pytestmark = pytest.mark.django_db
EVIL = '"><script>alert(1)</script>'


def main_part(text: str) -> str:
    """The page without the frame around it."""
    return text.partition('id="content"')[2] or text


# -- Logs -----------------------------------------------------------------------------------------


def test_the_records_of_a_request_are_found_by_its_id(log_store_redis):
    log = setup.get_logger("api")
    for number in range(3):
        setup.request_line(f"{number}" * 32, "GET", f"/api/classes/Room{number}", 200, 1.5)
    try:
        raise RuntimeError("the disk is gone")
    except RuntimeError:
        log.exception("request failed", request_id="1" * 32)
    store.flush()
    staff = logged_in(VIEWERS)
    text = staff.get("/admin/logs/", {"request_id": "1" * 32}).text
    assert "/api/classes/Room1" in text
    assert "request failed" in text
    assert "Room2" not in text
    text = staff.get("/admin/logs/", {"level": "error"}).text
    assert "Room" not in main_part(text)
    (place,) = set(re.findall(r'href="/admin/logs/(\d+-\d+)/"', text))
    text = staff.get(f"/admin/logs/{place}/").text
    assert "RuntimeError: the disk is gone" in text
    assert "1" * 32 in text
    for missing in ("1-1", "x", "+", "9" * 40):
        assert staff.get(f"/admin/logs/{missing}/").status_code == 404


def test_older_records_are_on_the_next_page(log_store_redis):
    for number in range(130):
        setup.get_logger("test").info(f"event-{number}.")
    store.flush()
    staff = logged_in(VIEWERS)
    first = staff.get("/admin/logs/", {"text": "event"}).text
    assert "event-129." in first
    assert "event-29." not in first
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = staff.get("/admin/logs/" + older[1].replace("&amp;", "&")).text
    assert "event-29." in second
    assert "event-0." in second
    assert 'rel="next"' not in second


REFUSED: dict[str, Any] = {
    "route": "/classes/{class_name}/{object_id}",
    "class_name": "Note",
    "object_id": "aB3dE5fG7h",
    "key": "rest key",
    "user": "bYdr2LokBV",
    "code": 101,
    "error": "Object not found.",
}


def refuse(request_id: str = "1" * 32, method: str = "PUT", **about: Any) -> str:
    """Log a refused request; return the place of its record."""
    path = "/api/classes/Note/aB3dE5fG7h"
    setup.request_line(request_id, method, path, 404, 1.5, about={**REFUSED, **about})
    store.flush()
    return search.search(LogFilter(request_id=request_id, method=method)).entries[0].place


def test_400_is_a_status_and_not_digits_anywhere(log_store_redis):
    setup.request_line("1" * 32, "GET", "/api/classes/Fine", 200, 400.0, about={"bytes": 400})
    setup.get_logger("test").info("task ended", took="0.0609479540004", task_id="a-4000-b")
    setup.request_line("2" * 32, "GET", "/api/classes/Bad", 400, 1.0)
    store.flush()
    staff = logged_in(VIEWERS)
    for query in ({"status": "400"}, {"text": "400"}, {"status": "4xx"}):
        text = main_part(staff.get("/admin/logs/", query).text)
        assert "/api/classes/Bad" in text
        assert "/api/classes/Fine" not in text
        assert "task ended" not in text
    text = main_part(staff.get("/admin/logs/", {"text": "took=0.06"}).text)
    assert "task ended" in text
    assert "/api/classes/Bad" not in text


def test_the_chart_counts_what_the_filters_select_and_its_bars_lead_to_their_period(
    log_store_redis,
):
    for number in range(3):
        setup.request_line(f"{number}" * 32, "GET", "/api/classes/Room", 200, 1.5)
    refuse("a" * 32)
    setup.get_logger("test").error("broken")
    store.flush()
    staff = logged_in(VIEWERS)
    text = staff.get("/admin/logs/").text
    for expected in ("5 records", "3 2xx", "1 4xx", "1 error"):
        assert expected in text
    bars = [html.unescape(bar) for bar in re.findall(r'<a href="(\?[^"]*)" tabindex="-1"', text)]
    assert sum(staff.get(f"/admin/logs/{bar}").text.count("<tr ") - 1 for bar in bars) == 5
    text = staff.get("/admin/logs/", {"class_name": "Note"}).text
    assert "1 record<" in text
    assert "2xx</a>" not in text


def test_a_period_selects_records_and_an_odd_time_is_explained(log_store_redis):
    refuse()
    staff = logged_in(VIEWERS)
    ago = datetime.now(UTC) - timedelta(minutes=1)
    soon = datetime.now(UTC) + timedelta(minutes=1)
    east = ago.astimezone(timezone(timedelta(hours=9)))

    def has_record(**query: str) -> bool:
        return "Object not found." in staff.get("/admin/logs/", query).text

    assert has_record(**{"from": east.isoformat()})
    assert has_record(**{"from": ago.isoformat(), "until": soon.isoformat()})
    assert not has_record(until=ago.isoformat())
    assert not has_record(**{"from": soon.isoformat()})
    for period in ("15m", "1h", "6h", "24h", "7d", "all", "odd"):
        assert has_record(period=period)
    for odd in ("yesterday", "2026-99-99", "\x00", "9999-12-31T23:59:59-23:59"):
        for name in ("from", "until"):
            response = staff.get("/admin/logs/", {name: odd})
            assert response.status_code == 200
    assert "“yesterday” is no time" in staff.get("/admin/logs/", {"from": "yesterday"}).text
    for bound in ("0001-01-01", "9999-12-31"):
        assert staff.get("/admin/logs/", {"from": bound, "until": bound}).status_code == 200


def test_a_search_that_has_used_its_time_says_how_far_it_read(log_store_redis, monkeypatch):
    for number in range(600):
        setup.get_logger("test").info(f"event-{number}.")
    store.flush()
    staff = logged_in(VIEWERS)
    # Time itself: each look at the clock finds it a minute later.
    minutes = itertools.count(step=60)
    monkeypatch.setattr(search, "monotonic", lambda: next(minutes))
    text = staff.get("/admin/logs/", {"text": "event-3."}).text
    assert "Counted back to" in text
    older = re.search(r'rel="next" href="([^"]+)">Search older entries', text)
    assert older is not None
    assert "event-3." in main_part(staff.get("/admin/logs/" + html.unescape(older[1])).text)


def test_a_record_leads_to_its_explanation_object_class_function_and_user(log_store_redis):
    place = refuse()
    administrator = logged_in(ADMINISTRATORS)
    text = html.unescape(administrator.get(f"/admin/logs/{place}/").text)
    question = "caller=user&user=bYdr2LokBV&action=update&class=Note&object=aB3dE5fG7h"
    for address in (
        f"/admin/access/?{question}",
        "/admin/data/Note/o/aB3dE5fG7h/",
        "/admin/data/Note/",
        "/admin/people/users/bYdr2LokBV/",
        "/admin/logs/?class_name=Note",
        "/admin/logs/?code=101",
    ):
        assert f'href="{address}"' in text, address
    place = refuse("2" * 32, function="pay", **{"class_name": "", "user": ""})
    assert 'href="/admin/code/functions/pay/"' in administrator.get(f"/admin/logs/{place}/").text
    for method, action in (("GET", "get"), ("DELETE", "delete")):
        place = refuse("3" * 32, method=method, key="master", user="")
        text = html.unescape(administrator.get(f"/admin/logs/{place}/").text)
        assert f"caller=master&user=&action={action}&class=Note" in text
    place = refuse("4" * 32, item="POST /classes/Note", object_id="")
    assert "action=create" in administrator.get(f"/admin/logs/{place}/").text


def test_a_record_leads_only_where_the_staff_user_may_go(log_store_redis):
    place = refuse()
    bare = Client()
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_logrecord"))
    bare.force_login(user)
    text = bare.get(f"/admin/logs/{place}/").text
    assert "Object not found." in text
    for address in ("/admin/access/", "/admin/data/", "/admin/people/"):
        assert address not in text


def test_a_record_shows_everything_of_its_request_in_order(log_store_redis):
    log = setup.get_logger("test")
    log.info("first step", request_id="1" * 32)
    setup.name_process("worker")
    log.info("webhook delivered", request_id="1" * 32)
    setup.name_process("test")
    log.info("of another request", request_id="2" * 32)
    place = refuse()
    text = logged_in(VIEWERS).get(f"/admin/logs/{place}/").text
    steps = text.partition("Everything of this request")[2]
    assert "3 records of 2 processes" in steps
    assert steps.index("first step") < steps.index("webhook delivered") < steps.index("/api/cl")
    assert "of another request" not in text


def test_new_records_come_as_rows_after_a_place(log_store_redis):
    place = refuse("1" * 32)
    refuse("2" * 32, class_name="Room")
    refuse("3" * 32)
    staff = logged_in(VIEWERS)
    text = staff.get("/admin/logs/new/", {"after": place, "class_name": "Note"}).text
    assert text.count("<tr ") == 1
    newest = re.search(r'data-newest="([0-9-]+)"', text)
    assert newest is not None
    assert "<tr " not in staff.get("/admin/logs/new/", {"after": newest[1]}).text
    for odd in ("", "x", "+", "9" * 40):
        assert staff.get("/admin/logs/new/", {"after": odd}).status_code == 404
    assert "data-follow=" not in staff.get("/admin/logs/", {"before": place}).text


def test_what_is_logged_is_text_and_nothing_else(log_store_redis):
    log = setup.get_logger("test")
    log.error(EVIL, path=EVIL, request_id=EVIL, process=EVIL, exception=EVIL, **{EVIL: EVIL})
    setup.request_line("1" * 32, "GET", EVIL, 200, 1.0)
    store.flush()
    staff = logged_in(VIEWERS)
    listed = staff.get("/admin/logs/").text
    assert "<script>alert" not in listed
    for place in set(re.findall(r'href="/admin/logs/(\d+-\d+)/"', listed)):
        assert "<script>alert" not in staff.get(f"/admin/logs/{place}/").text
    filters = [field.name for field in fields(LogFilter)]
    for name in (*filters, "before", "from", "until", "period"):
        assert "<script>alert" not in staff.get("/admin/logs/", {name: EVIL}).text


def test_odd_records_and_odd_questions_do_no_harm(log_store_redis):
    log_store_redis.xadd(store.STREAM, {"r": '{"event": {"a": 1}, "timestamp": 5, "level": []}'})
    log_store_redis.xadd(store.STREAM, {"r": '{"timestamp": "2026-99-99T00:00:00Z"}'})
    log_store_redis.xadd(store.STREAM, {"r": "{}"})
    staff = logged_in(VIEWERS)
    text = staff.get("/admin/logs/").text
    for place in set(re.findall(r'href="/admin/logs/(\d+-\d+)/"', text)):
        assert staff.get(f"/admin/logs/{place}/").status_code == 200
    assert "no such page" in staff.get("/admin/logs/", {"before": "x"}).text


def test_without_redis_the_page_says_so(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    staff = logged_in(VIEWERS)
    for path in ("/admin/logs/", "/admin/limits/", "/admin/logs/1-1/"):
        assert "answer" in staff.get(path).text
    assert staff.get("/admin/logs/new/?after=1-1").status_code == 503
    assert staff.get("/admin/logs/1-1/").status_code == 503


# -- Who may ---------------------------------------------------------------------------------------

PAGES = (
    *(
        "/admin/logs/",
        "/admin/logs/new/?after=1-1",
        "/admin/logs/1-1/",
        "/admin/limits/",
        "/admin/access/",
    ),
    *("/admin/maintenance/", "/admin/people/users/", "/admin/people/users/missing000/"),
    *("/admin/people/sessions/", "/admin/people/roles/", "/admin/people/roles/missing000/"),
    "/admin/people/installations/",
)


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_for_staff_who_may_view_and_viewers_post_nothing(path):
    assert Client().get(path).status_code == 302
    assert Client().post(path).status_code == 302
    viewer = logged_in(VIEWERS)
    assert viewer.get(path).status_code in (200, 404)
    assert viewer.post(path).status_code in (403, 405)
    bare = Client()
    bare.force_login(User.objects.create_user("bare", is_staff=True))
    assert bare.get(path).status_code == 403
    assert bare.post(path).status_code == 403
    assert path not in bare.get("/admin/").text


# -- Rate limits -----------------------------------------------------------------------------------

RULES: list[dict[str, Any]] = [
    {"path": "/login", "per": "ip", "count": 4, "window": 600},
    {"path": "/login", "per": "account", "count": 3, "window": 600},
    {"path": "/functions/*", "per": ["function", "user"], "count": 5, "window": 60},
    {"path": "/users", "methods": ["GET"], "per": ["user", "ip"], "count": 9, "window": 60,
     "message": EVIL},
]  # fmt: skip


@pytest.fixture
def limited(settings):
    settings.SERVICE = {**settings.SERVICE, "RATE_LIMITS": RULES}
    with redis.Redis.from_url(settings.REDIS_URL) as server:
        server.delete("limits:", *server.keys("limit*"))
        backend.limits.decisions._names.cache_clear()
        yield server
        server.delete("limits:", *server.keys("limit*"))


def used(buckets: list[state.Fullness]) -> dict[str, int]:
    return {" ".join(bucket.rule.per): bucket.used for bucket in buckets}


def test_the_fullest_buckets_and_those_of_one_caller(limited):
    sign_up("ann")
    for _ in range(3):
        log_in("ann", "wrong")
    log_in("bob", "wrong")
    assert log_in("ann").status == 429
    everything = state.fullest()
    assert everything.complete
    assert [(bucket.used, bucket.rule.count) for bucket in everything.buckets] == [
        (4, 4),
        (3, 3),
        (1, 3),
    ]
    assert all(0 < bucket.more_in <= 610 for bucket in everything.buckets)
    assert used(state.of_caller(address="127.0.0.1")) == {"ip": 4, "user ip": 0}
    assert used(state.of_caller(account="ANN")) == {"account": 3}
    assert used(state.of_caller(account="zoe")) == {"account": 0}
    assert used(state.of_caller(address="127.0.0.1", user_id="x", account="bob")) == {
        "ip": 4,
        "account": 1,
        "user ip": 0,
    }


def test_whose_a_nearly_full_bucket_is_but_not_what_a_user_has_typed(limited):
    for _ in range(3):
        log_in("hunter2", "wrong")
    named = {" ".join(bucket.rule.per): bucket.whose for bucket in state.fullest().buckets}
    assert named == {"account": "", "ip": ""}
    log_in("other", "wrong")
    named = {
        " ".join(bucket.rule.per): bucket.whose
        for bucket in state.fullest().buckets
        if bucket.used > 1
    }
    assert named == {"account": "", "ip": "ip 127.0.0.1"}
    assert "ip 127.0.0.1" in logged_in(VIEWERS).get("/admin/limits/").text
    names = [limited.get(key) for key in limited.keys("limit-names:*")]
    assert names == [b"ip 127.0.0.1"]


def test_looking_counts_nothing_and_counting_restarts(limited):
    sign_up("ann")
    for _ in range(3):
        log_in("ann", "wrong")
    for _ in range(5):
        state.of_caller(account="ann")
    (bucket,) = state.of_caller(account="ann")
    assert bucket.used == 3
    for group in (VIEWERS, EDITORS):
        staff = logged_in(group)
        assert staff.post("/admin/limits/reset/", {"bucket": bucket.key}).status_code == 403
    staff = logged_in(ADMINISTRATORS)
    assert staff.get("/admin/limits/reset/").status_code == 405
    where = "/admin/limits/?account=ann"
    answer = staff.post("/admin/limits/reset/", {"bucket": bucket.key, "next": where})
    assert answer.headers["Location"] == where
    assert log_in("ann").status == 200
    for other in ("limits:x", "celery", "logs", f"{bucket.key} x", ""):
        limited.set(other or "empty", "1")
        staff.post("/admin/limits/reset/", {"bucket": other})
        assert limited.delete(other or "empty") == 1
    assert (
        staff.post(
            "/admin/limits/reset/", {"bucket": bucket.key, "next": "//evil.example"}
        ).headers["Location"]
        == "/admin/limits/"
    )


def test_the_page_shows_rules_and_who_is_near_them(limited):
    for _ in range(3):
        log_in("ann", "wrong")
    limited.hset("limits:0123456789abcdef:" + "0" * 32, "1", "1")  # of a rule that is gone
    text = logged_in(VIEWERS).get("/admin/limits/").text
    assert "3 of 3" in text
    assert "3 of 4" in text
    assert "function and user" in text
    assert "Reset" not in text
    assert "<script>alert" not in text
    administrator = logged_in(ADMINISTRATORS)
    assert "Reset" in administrator.get("/admin/limits/").text
    for name in ("address", "user", "account"):
        assert "<script>alert" not in administrator.get("/admin/limits/", {name: EVIL}).text


def test_no_rules_are_said_to_be_none():
    assert "RATE_LIMITS is off" in logged_in(VIEWERS).get("/admin/limits/").text


# -- Why? ------------------------------------------------------------------------------------------


def test_the_answer_names_the_rule_and_the_way_to_the_role(master):
    ann = sign_up("ann")
    inner = make_role(master, "Inner", [ann])
    make_role(master, "Team", roles=[inner])
    note = service.create(MASTER, "Note", {"ACL": {"role:Team": {"read": True}}}).object_id
    staff = logged_in(VIEWERS)
    request = {"class": "Note", "action": "get", "object": note, "caller": "user", "user": "ann"}
    text = staff.get("/admin/access/", request).text
    assert "Yes, the caller may." in text
    assert "The access list lets role:Team read." in text
    assert "Inner → Team" in text
    text = staff.get("/admin/access/", {**request, "action": "update"}).text
    assert "No, the caller may not." in text
    assert "<code>101</code> Object not found." in text
    assert (
        "With some objects"
        in staff.get("/admin/access/", {"class": "Note", "action": "find", "caller": "public"}).text
    )
    assert "no such user" in staff.get("/admin/access/", {**request, "user": "zoe"}).text


def test_what_is_asked_is_text_and_nothing_else():
    staff = logged_in(VIEWERS)
    request = {"class": "Note", "action": "get", "object": "1", "caller": "public", "user": ""}
    for name in request:
        assert "<script>alert" not in staff.get("/admin/access/", {**request, name: EVIL}).text
    assert staff.get(
        "/admin/access/", {**request, "object": "\x00", "user": "\x00"}
    ).status_code == (200)


# -- Maintenance mode ------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_administrators_switch_maintenance_mode_and_every_page_says_so():
    service.create(MASTER, "Note", {})
    for group in (VIEWERS, EDITORS):
        staff = logged_in(group)
        assert staff.post("/admin/maintenance/", {"on": "1"}).status_code == 403
    assert maintenance.state() is None
    staff = logged_in(ADMINISTRATORS)
    response = staff.post("/admin/maintenance/", {"on": "1", "message": f"Back at noon {EVIL}"})
    assert response.status_code == 302
    results = maintenance.state()
    assert results is not None
    assert (results.message, results.chain_paused) == (f"Back at noon {EVIL}", False)
    for path in ("/admin/", "/admin/logs/", "/admin/maintenance/", "/admin/people/users/"):
        text = staff.get(path).text
        assert "Maintenance mode is on" in text, path
        assert "Back at noon" in text, path
        assert "<script>alert" not in text, path
    assert staff.post("/admin/maintenance/", {"on": "1", "pause_chain": "1"}).status_code == 302
    results = maintenance.state()
    assert results is not None
    assert results.chain_paused
    assert staff.post("/admin/maintenance/", {"off": "1"}).status_code == 302
    assert maintenance.state() is None
    assert "Maintenance mode is on" not in staff.get("/admin/logs/").text


@pytest.mark.django_db(transaction=True)
def test_a_message_that_can_not_be_shown_is_refused():
    staff = logged_in(ADMINISTRATORS)
    for message in ("x" * 501, "two\nlines", "\x00"):
        text = staff.post("/admin/maintenance/", {"on": "1", "message": message}).text
        assert "The message is one line" in text
        assert maintenance.state() is None

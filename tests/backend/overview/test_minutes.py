"""The service's own figures: each minute is counted once, whatever ends, restarts or is lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from django.db import connection
from django.test import Client

from backend.kernel import request_counts
from backend.kernel.connections.redis import asking_once
from backend.overview import active_users, collection, storage
from backend.overview.models import Hour, Minute
from functions.jobs.models import JobStatus
from functions.webhooks.models import Delivery
from objects.core.names import new_object_id
from objects.push.models import Push
from tests.backend.overview.figures import *  # noqa: F403
from tests.backend.overview.figures import MINUTE, store, this_minute
from tests.people import sign_up
from tests.rest import CLIENT, Api

pytestmark = pytest.mark.django_db


def count(*statuses: int, seconds: float = 0.01, **options: Any) -> datetime:
    """Count requests as a web process does, and return the minute in which it adds them."""
    for status in statuses:
        request_counts.count("GET", "/classes", status, seconds, **options)
    request_counts.add_up_in_thread()
    request_counts._counts.is_added_elsewhere = False
    return this_minute()


def counted(minute: datetime) -> tuple[int | None, ...]:
    row = Minute.objects.get(pk=minute)
    return row.succeeded, row.redirected, row.rejected, row.failed


def test_requests_of_all_processes_are_summed_by_class_of_status(server: redis.Redis) -> None:
    minute = count(200, 201, 304, 404, 503)
    server.hincrby(request_counts.minute_key(int(minute.timestamp()) // 60), "2 7", 10)
    collection.collect(minute + MINUTE)
    assert counted(minute) == (12, 1, 1, 1)
    row = Minute.objects.get(pk=minute)
    assert sum(row.latencies) == 15
    assert (row.minutes, row.queued) == (1, 0)
    hours = Hour.objects.exclude(minutes=0)
    assert [(hour.minutes, hour.succeeded, sum(hour.latencies)) for hour in hours] == [(1, 12, 15)]


def test_requests_of_the_api_count_and_pages_of_the_admin_do_not(server: redis.Redis) -> None:
    Api(CLIENT).get("/classes/Nothing")
    Client().get("/admin/login/")
    minute = count()
    collection.collect(minute + MINUTE)
    assert sum(number or 0 for number in counted(minute)) == 1


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_a_minute_that_is_written_again_counts_once(server: redis.Redis, runs: int) -> None:
    minute = count(200, 500)
    for _ in range(runs):
        collection.collect(minute + MINUTE)
    assert counted(minute) == (1, 0, 0, 1)
    assert list(Hour.objects.exclude(minutes=0).values_list("succeeded", flat=True)) == [1]


def test_counts_that_come_late_are_added(server: redis.Redis) -> None:
    minute = count(200)
    collection.collect(minute + MINUTE)
    key = request_counts.minute_key(int(minute.timestamp()) // 60)
    server.hincrby(key, "5 20", 2)
    collection.collect(minute + 2 * MINUTE)
    assert counted(minute) == (1, 0, 0, 2)


def test_a_stored_minute_outlives_redis(server: redis.Redis) -> None:
    minute = count(200, 200, 200)
    collection.collect(minute + MINUTE)
    server.flushdb()
    count(500)  # in the same minute: what is there is more
    collection.collect(minute + MINUTE)
    assert counted(minute) == (3, 0, 0, 0)


def test_minutes_without_a_run_are_made_up_for(server: redis.Redis) -> None:
    now = this_minute()
    store({2: 1}, at=now - 90 * MINUTE)
    for ago in (80, 40, 1):
        key = request_counts.minute_key(int((now - ago * MINUTE).timestamp()) // 60)
        server.hset(key, mapping={"reports": 12, "2 5": ago})
    collection.collect(now)
    answered = dict(Minute.objects.exclude(minutes=0).values_list("start", "succeeded"))
    assert answered == {now - ago * MINUTE: ago or 1 for ago in (80, 40, 1)} | {
        now - 90 * MINUTE: 1
    }
    assert Minute.objects.count() == 90
    # Measured is what is now, so only the last minute has it.
    assert list(Minute.objects.exclude(queued=None).values_list("start", flat=True)) == [
        now - MINUTE
    ]


def test_requests_while_redis_is_away_count_in_their_own_minutes(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = this_minute()
    unreachable = asking_once("redis://127.0.0.1:1/0", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(request_counts._counts, "client", unreachable)
        for ago in (30, 20, 10):
            patch.setattr(request_counts, "time", lambda at=now - ago * MINUTE: at.timestamp())
            request_counts.count("GET", "/classes", 200, 0.01)
            request_counts.add_up()
            collection.collect(now - (ago - 1) * MINUTE)
    assert not Minute.objects.exclude(minutes=0).exists()
    request_counts.add_up()
    collection.collect(now)
    starts = Minute.objects.filter(succeeded=1).values_list("start", flat=True)
    assert sorted(starts) == [now - ago * MINUTE for ago in (30, 20, 10)]


def test_a_minute_in_which_no_process_reported_is_unknown_and_not_zero(
    server: redis.Redis,
) -> None:
    now = this_minute()
    collection.collect(now)
    assert counted(now - MINUTE) == (None, None, None, None)


def test_what_ends_a_run_changes_nothing(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    minute = count(200)

    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", die)
        with pytest.raises(Killed):
            collection.collect(minute + MINUTE)
    collection.collect(minute + MINUTE)
    assert counted(minute) == (1, 0, 0, 0)


def test_events_are_counted_in_the_minute_of_their_rows(server: redis.Redis) -> None:
    now = this_minute()
    sign_up("ann")
    JobStatus.objects.create(
        object_id=new_object_id(), created_at=now, updated_at=now, status="failed", finished_at=now
    )
    for state in ("dead", "delivered"):
        Delivery.objects.create(
            key=state, hook_id=1, about="x", body="", state=state,
            created_at=now, due_at=now, ended_at=now,
        )  # fmt: skip
    for number, outcome in enumerate(({"error": "no"}, {"failed": 3}, {"failed": 3, "sent": 1})):
        Push.objects.create(
            id=f"p{number}", request="{}", source="rest", state="ended", push_at=now,
            due_at=now, created_at=now, ended_at=now, **outcome,
        )  # fmt: skip
    collection.collect(this_minute() + MINUTE)
    rows = Minute.objects.filter(start__gte=now)
    assert [sum(getattr(row, name) or 0 for row in rows) for name in storage.EVENTS] == [1, 1, 1, 2]


def test_without_redis_the_database_is_still_counted(server: redis.Redis, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    minute = this_minute()
    sign_up("bob")
    collection.collect(minute + MINUTE)
    row = Minute.objects.get(pk=minute)
    assert (row.succeeded, row.queued) == (None, None)
    assert row.database_bytes > 0
    assert Minute.objects.filter(sign_ups=1).exists()


def test_figures_are_stored_for_thirty_days(server: redis.Redis) -> None:
    now = this_minute()
    for days in (29, 31):
        store({2: 1}, at=now - timedelta(days=days))
    collection.collect(now)
    assert Minute.objects.order_by("start").first().start == now - timedelta(days=29)
    assert Hour.objects.filter(start__lt=now - timedelta(days=30)).count() == 0


def test_active_users_count_once_and_outlive_redis(server: redis.Redis) -> None:
    now = this_minute()
    count(200, 200, user="ann")
    count(200, user="bob")
    active_users.store(server, now)
    assert active_users.number(server, now - timedelta(hours=1), now) == 2
    server.flushdb()
    count(200, user="cy")
    active_users.store(server, now)
    assert active_users.number(server, now - timedelta(hours=1), now) == 3

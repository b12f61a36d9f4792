"""The start page: its numbers, whom it shows them, and what it does when a part can't be read."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any

import psycopg
import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client

from backend.backups.models import BackupRun
from backend.kernel import request_counts
from backend.kernel.process import reports
from backend.overview import figures
from backend.overview.ranges import RANGES
from backend.overview.storage import HOUR
from backend.site.staff import ADMINISTRATORS, VIEWERS
from chain.models import Blockchain, Reorganisation
from functions.webhooks.models import Delivery
from objects.core.names import new_object_id
from objects.definitions.models import ObjectClass
from objects.learned.models import QueryShape
from tests.backend.overview.figures import *  # noqa: F403
from tests.backend.overview.figures import MINUTE, store, this_minute
from tests.objects.admin.staff import logged_in
from tests.other_process import database_url

pytestmark = pytest.mark.django_db

PAGES = ("/admin/", "/admin/overview/")


def numbers(page: Any) -> dict[str, str]:
    """Return the key numbers of a page by their titles, with their notes."""
    text = page.content.decode()
    tiles = re.findall(r'<li class="ov-number.*?</li>', text, re.DOTALL)
    plain = [
        [*filter(None, (part.strip() for part in re.split(r"<[^>]+>", tile)))] for tile in tiles
    ]
    return {title: " | ".join(rest) for title, *rest in plain}


def links(page: Any) -> list[str]:
    tiles = re.findall(r'<li class="ov-number.*?</li>', page.content.decode(), re.DOTALL)
    return [address for tile in tiles for address in re.findall(r'href="([^"]+)"', tile)]


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("group", [None, ADMINISTRATORS, VIEWERS])
def test_staff_who_may_see_figures_get_them(
    server: redis.Redis, address: str, group: str | None
) -> None:
    page = logged_in(group).get(address)
    assert page.status_code == 200
    assert "Requests a minute" in numbers(page)


def test_staff_without_the_right_get_the_menu_and_no_figures(server: redis.Redis) -> None:
    user = User.objects.create_user("hand", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_logrecord"))
    client = Client()
    client.force_login(user)
    page = client.get("/admin/")
    assert numbers(page) == {}
    assert 'class="sv-cards"' in page.content.decode()
    assert client.get("/admin/overview/").status_code == 403


@pytest.mark.parametrize("address", PAGES)
def test_others_have_to_log_in(server: redis.Redis, address: str) -> None:
    page = Client().get(address)
    assert (page.status_code, page["Location"].partition("?")[0]) == (302, "/admin/login/")


def test_the_numbers_of_an_hour(server: redis.Redis) -> None:
    now = this_minute()
    store({2: 90, 4: 8, 5: 2}, at=now - 2 * MINUTE, sign_ups=3, failed_jobs=1, sockets=7)
    store({2: 100}, at=now - MINUTE, sign_ups=1, failed_deliveries=2)
    store({2: 5000}, at=now - 61 * MINUTE, sign_ups=50)
    for name in ("ann", "bob"):
        server.pfadd(request_counts.users_key(int(now.timestamp()) // 3600), name)
    BackupRun.objects.create(started_at=now, finished_at=now, state="ok", size=2048, name="a")
    shown = numbers(logged_in().get("/admin/"))
    assert shown["Requests a minute"] == "100 | 200 in the last hour"
    assert shown["Duration, p95"].startswith("11 ms") or shown["Duration, p95"].startswith("12 ms")
    assert shown["Errors"] == "2 | 1.0% of all requests; 8 were rejected (4xx)"
    assert shown["Sign-ups"] == "4"
    assert shown["Active users"].startswith("2 ")
    assert (shown["Failed jobs"], shown["Failed webhooks"], shown["Failed pushes"]) == (
        *("1", "2"),
        "-",
    )
    assert shown["Last backup"].endswith("ago | 2.0 KB")
    assert "Chain lag" not in shown


@pytest.mark.parametrize("name", RANGES)
def test_each_range_shows_its_figures(server: redis.Redis, name: str) -> None:
    now = this_minute()
    for ago, kind in ((5 * MINUTE, 2), (5 * HOUR, 4), (timedelta(days=20), 5)):
        store({kind: 10}, at=now - ago)
    page = logged_in().get("/admin/", {"range": name})
    total = {"hour": 10, "day": 20, "month": 30}[name]
    assert f"{total} in the last" in numbers(page)["Requests a minute"]
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page.content.decode())
    chart = json.loads(texts[0])
    assert len(chart["times"]) == len(chart["series"][0]["values"]) <= 180
    assert chart["times"] == sorted(chart["times"])


def test_an_unknown_range_is_the_last_hour(server: redis.Redis) -> None:
    page = logged_in().get("/admin/", {"range": "<script>"})
    assert re.search(r'href="\?range=hour" aria-current="true"', page.content.decode())


def test_each_number_leads_to_its_list_for_those_who_may_see_it(server: redis.Redis) -> None:
    client = logged_in()
    addresses = links(client.get("/admin/"))
    assert len(addresses) == len(numbers(client.get("/admin/")))
    for address in addresses:
        assert client.get(address.replace("&amp;", "&")).status_code == 200, address
    user = User.objects.create_user("hand", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_minute"))
    other = Client()
    other.force_login(user)
    assert links(other.get("/admin/")) == []


def test_a_disk_that_grows_says_when_it_is_full(server: redis.Redis) -> None:
    now = this_minute()
    for hours in range(48):
        used = 80e9 - hours * 1e9 / 24  # a gigabyte a day
        store(at=now - hours * HOUR - MINUTE, disk_used=int(used), disk_total=int(100e9))
    shown = numbers(logged_in().get("/admin/"))["Disk"]
    full = now + timedelta(days=20)
    assert shown.startswith("80% | 18.6 GB left; full on ")
    days = [full + timedelta(days=days) for days in (-1, 0, 1)]
    assert any(f"{day.day} {day:%B %Y}" in shown for day in days), shown


@pytest.mark.parametrize("growth", [0, -1e9, 1e3])
def test_a_disk_that_does_not_fill_up_says_nothing(server: redis.Redis, growth: float) -> None:
    now = datetime.now(UTC)
    for hours in range(48):
        used = int(50e9 - hours * growth)
        store(at=this_minute() - hours * HOUR, disk_used=used, disk_total=int(100e9))
    assert figures.full_at(50e9, 100e9, now) is None


def test_networks_appear_with_the_first_one(server: redis.Redis) -> None:
    client = logged_in()
    assert "Networks" not in re.findall(
        r"<h2[^>]*>(?:<a[^>]*>)?(\w+)", client.get("/admin/").content.decode()
    )
    Blockchain.objects.create(
        object_id=new_object_id(), created_at=this_minute(), updated_at=this_minute(),
        name="Testnet", network_id=5, active=True,
    )  # fmt: skip
    Reorganisation.objects.create(
        network_id=5, fork_number=1, fork_hash="a", old_number=4, old_hash="b", depth=3,
        removed_events=0, seen_at=this_minute(),
    )  # fmt: skip
    page = client.get("/admin/")
    assert numbers(page)["Chain lag"] == "- | 1 reorganisation in 1 network"
    assert "3 blocks" in page.content.decode()


def test_slow_queries_and_processes_are_listed(server: redis.Redis) -> None:
    reports.send(server)
    row = ObjectClass.objects.create(name="Game", version=1)
    QueryShape.objects.create(
        class_id=row.pk, digest="d", shape='{"where":{"score":"range"},"order":[]}', version=1,
        window_start=this_minute(), last_at=this_minute(), slow_at=this_minute(),
        slow_calls=4, slow_seconds=6,
    )  # fmt: skip
    text = logged_in().get("/admin/").content.decode()
    assert "score (range)" in text
    assert "1.50 s" in text
    assert re.search(r"<td>test</td>", text)


def test_queues_have_the_age_of_what_is_next(server: redis.Redis) -> None:
    sent = {"headers": {"sent_at": time() - 90}}
    server.lpush("celery:jobs", json.dumps(sent))
    due = this_minute() - 2 * HOUR
    Delivery.objects.create(
        key="k", hook_id=1, about="x", body="", state="pending", created_at=due, due_at=due
    )
    page = logged_in().get("/admin/")
    rows = re.findall(
        r"<tr><td>(\w+)</td><td[^>]*>(\d+)</td><td[^>]*>([\d.-]+)", page.content.decode()
    )
    queues = {name: (int(tasks), age) for name, tasks, age in rows}
    assert queues["default"] == (0, "-")
    assert queues["jobs"][0] == queues["webhooks"][0] == 1
    assert 89 < float(queues["jobs"][1]) < 150
    assert 7199 < float(queues["webhooks"][1]) < 7400
    assert numbers(page)["Waiting tasks"].startswith("1 | the next one for 9")


def test_without_redis_the_rest_is_there_and_says_what_is_missing(
    server: redis.Redis, settings: Any
) -> None:
    store({2: 10}, at=this_minute() - MINUTE)
    client = logged_in()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    page = client.get("/admin/")
    assert page.status_code == 200
    shown = numbers(page)
    assert shown["Requests a minute"].startswith("10 ")
    assert "Redis didn&#x27;t respond in time" in shown["Waiting tasks"]


def test_a_part_that_cannot_be_read_leaves_the_others(server: redis.Redis) -> None:
    client = logged_in()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE backend_minute RENAME TO elsewhere")
    page = client.get("/admin/")
    assert page.status_code == 200
    assert "this can&#x27;t be shown" in page.content.decode()
    shown = numbers(page)
    assert shown["Requests a minute"] == "-"
    assert shown["Waiting tasks"] == "0"


@pytest.mark.django_db(transaction=True)
def test_a_part_that_waits_for_a_lock_is_given_up(server: redis.Redis) -> None:
    client = logged_in()
    with psycopg.connect(database_url()) as other:
        other.execute("LOCK TABLE backend_minute, objects_query_shape IN ACCESS EXCLUSIVE MODE")
        page = client.get("/admin/")
        other.rollback()
    assert page.status_code == 200
    text = page.content.decode()
    assert text.count("The database didn&#x27;t respond in time") == 2
    assert numbers(page)["Waiting tasks"] == "0"


def test_the_scripts_of_the_page_are_small(server: redis.Redis) -> None:
    text = logged_in().get("/admin/").content.decode()
    names = [*re.findall(r'<script[^>]* src="/static/([^"?]+)', text), "backend/charts.js"]
    assert "backend/overview.js" in names
    sizes = {
        name: len(gzip.compress(Path(finders.find(name) or "").read_bytes())) for name in names
    }
    assert sum(sizes.values()) < 150_000, sizes


def test_the_page_takes_few_statements_whatever_is_stored(
    server: redis.Redis, django_assert_max_num_queries: Any
) -> None:
    for ago in range(1, 60):
        store({2: 10}, at=this_minute() - ago * MINUTE)
    client = logged_in()
    with django_assert_max_num_queries(60):
        client.get("/admin/")

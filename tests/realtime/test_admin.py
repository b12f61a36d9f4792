"""The live channel in the admin and in the metrics: events, connections, and lag."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from time import time
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import WebSocketRoute, expect

from backend.site.staff import EDITORS, VIEWERS
from chain.models import Blockchain, Cursor, OutboxEntry
from objects.core.names import new_object_id
from realtime import metrics
from realtime.process import reports
from tests.chromium import NEEDS_CHROMIUM, browser
from tests.objects.admin.browser import look, staff_page
from tests.objects.admin.staff import logged_in
from tests.realtime.server_process import serving

pytestmark = pytest.mark.django_db

EVIL = "<script>alert(1)</script>"
PLACE = "/admin/live/"


@pytest.fixture(autouse=True)
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        # What an earlier test has killed is shown for as long as what lives.
        forget_processes(client)
        yield client
        forget_processes(client)


def forget_processes(client: redis.Redis) -> None:
    for key in client.scan_iter("realtime:*"):
        client.delete(key)


def status(**changed: Any) -> dict[str, Any]:
    """What a process reports."""
    return {
        "id": "a1",
        "host": "here",
        "pid": 7,
        "at": time(),
        "startedAt": time() - 60,
        "ready": True,
        "connections": {"events": 12, "livequery": 3},
        "refused": {"429": 2},
        "closed": {"1013": 1},
        "listening": True,
        "failures": {},
        "parts": {
            "events": {
                "messages": 120,
                "catching_up": 1,
                "networks": {"5": {"newest": 40, "told": 37, "lag": 3}},
            },
            "livequery": {"subscriptions": 9, "classes": 2, "events": 55, "lag": 0.004},
        },
        **changed,
    }


def report(client: redis.Redis, **changed: Any) -> None:
    figures = status(**changed)
    reports._store(client, figures["id"], figures)


def network(newest: int) -> None:
    now = timezone.now()
    Blockchain.objects.create(
        object_id=new_object_id(), created_at=now, updated_at=now, network_id=5, name="Five"
    )
    Cursor.objects.update_or_create(network_id=5, defaults={"outbox": newest})


def event(seq: int, op: str = "added", **fields: Any) -> None:
    payload = {
        "objectId": f"event{seq:05}",
        "networkId": "5",
        "contractName": "Gem",
        "eventName": "Transfer",
        "blockNumber": 1000 + seq,
        "transactionHash": f"0x{seq:064x}",
        "args": {"tokenId": "77"},
        **fields,
    }
    OutboxEntry.objects.create(
        network_id=5,
        seq=seq,
        op=op,
        event_id=payload["objectId"],
        payload=json.dumps(payload),
        created_at=timezone.now(),
    )


def page(group: str | None = VIEWERS) -> str:
    answer = logged_in(group).get(PLACE)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_strangers_and_staff_without_permission_see_nothing() -> None:
    client = Client()
    assert client.get(PLACE).status_code == 302
    client.force_login(User.objects.create_user("nobody", is_staff=True))
    assert client.get(PLACE).status_code == 403


def test_the_page_is_read_only() -> None:
    assert logged_in(EDITORS).post(PLACE).status_code == 405


def test_connections_and_lag_are_shown_for_each_process_and_network(server: redis.Redis) -> None:
    network(40)
    report(server)
    behind = {"events": {"messages": 1, "catching_up": 0, "networks": {"5": {"told": 30}}}}
    report(server, id="b2", pid=8, ready=False, parts=behind, failures={"listener": 4})

    shown = page()

    assert "here:7: 3, here:8: 10" in shown
    assert "events 12, livequery 3" in shown
    assert "not ready" in shown
    assert "listener 4" in shown


def test_a_process_that_stopped_reporting_is_not_shown(server: redis.Redis) -> None:
    old = status(at=time() - 60)
    server.set("realtime:a1", json.dumps(old))
    server.zadd("realtime:processes", {"a1": time() - 60})

    assert "No realtime process has reported" in page()


def test_the_last_events_are_shown_newest_first_as_text() -> None:
    network(3)
    event(1)
    event(2, contractName=EVIL, args={"name": EVIL})
    event(3, op="removed")

    shown = page()

    assert EVIL not in shown
    assert shown.index("1003") < shown.index("1002") < shown.index("1001")
    assert "removed" in shown


def test_events_are_shown_without_redis(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    network(1)
    event(1)

    shown = page()

    assert "Redis doesn&#x27;t answer" in shown
    assert "1001" in shown


def test_metrics_have_a_sample_for_each_process(server: redis.Redis) -> None:
    report(server)

    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.metrics()
        for sample in family.samples
    }

    assert samples["svc_realtime_ready", "here:7"] == 1
    assert samples["svc_realtime_connections", "here:7", "events"] == 12
    assert samples["svc_realtime_refused_total", "here:7", "429"] == 2
    assert samples["svc_events_lag_messages", "here:7", "5"] == 3
    assert samples["svc_events_messages_total", "here:7"] == 120
    assert samples["svc_livequery_subscriptions", "here:7"] == 9


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.django_db(transaction=True)
def test_events_appear_on_the_page_as_they_are_sent(live_server: Any, tmp_path: Any) -> None:
    network(1)
    event(1)
    root = User.objects.create_superuser("root")
    sockets: list[WebSocketRoute] = []
    with (
        serving(tmp_path) as realtime,
        browser() as chromium,
        staff_page(chromium, live_server.url, root) as tab,
    ):
        # In place of the proxy, which has pages and sockets at one address.
        tab.route_web_socket(re.compile("/ws"), lambda item: sockets.append(item))
        tab.goto(PLACE)
        expect(tab.get_by_text("Connected: new events appear here.")).to_be_visible()
        partition = sockets[0].url.partition("/ws")[2]
        connection = realtime.connect(f"/ws{partition}")
        sockets[0].send(connection.recv())

        event(2, args={"name": EVIL})
        Cursor.objects.filter(network_id=5).update(outbox=2)
        sockets[0].send(connection.recv())

        expect(tab.get_by_role("row").nth(-2)).to_contain_text("1002")
        expect(tab.get_by_role("row").nth(-1)).to_contain_text("1001")
        look(tab, "live-channel")
        connection.close()

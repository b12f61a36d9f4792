"""``/metrics``: off by default, readable only with permission; and what Prometheus reads there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from backend.instance.folder import DataFolder
from backend.kernel import request_counts
from backend.kernel.process import heartbeats, liveness, restart_report
from backend.kernel.process.liveness import Signs
from backend.kernel.process.restart_report import Restarted
from backend.settings.environment import BadSetting
from chain.models import Backfill, Blockchain, Cursor, Reorganisation, Transaction
from objects.core.names import new_object_id
from tests.other_process import ROOT, database_url
from tests.rest import CLIENT, MASTER, Api
from tests.setting_areas import metrics as metrics_settings

TOKEN = "a-token-of-some-length"
Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def on(settings: Any) -> Any:
    settings.SERVICE = {**settings.SERVICE, "METRICS": True, "METRICS_TOKEN": TOKEN}
    return settings


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        client.delete(request_counts.KEY, request_counts.DURATIONS_KEY)
        yield client
        client.delete(request_counts.KEY, request_counts.DURATIONS_KEY)
        client.delete("celery:chain", "celery:jobs", "heartbeat:beat")


def ask(token: str | None = TOKEN, method: str = "GET", **meta: Any) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return Client(raise_request_exception=False).generic(
        method, "/metrics", headers=headers, **meta
    )


def read() -> Read:
    """The samples by name and labels, as Prometheus understands them."""
    answer = ask()
    assert answer.status_code == 200, answer.content
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def of(metrics: Read, name: str, **labels: str) -> float | None:
    return metrics.get((f"svc_{name}", tuple(sorted(labels.items()))))


# -- Who may read them ----------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, TOKEN])
def test_it_isn_t_there_unless_it_is_switched_on(db: None, token: str | None) -> None:
    answer = ask(token)
    assert (answer.status_code, answer.json()) == (404, {"code": 108, "error": "unknown route"})


@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], f"{TOKEN}é", "test-master-key"])
def test_without_the_token_nothing_is_said(db: None, on: Any, token: str | None) -> None:
    answer = ask(token)
    assert (answer.status_code, answer.json()["code"]) == (403, 119)


def test_an_empty_token_opens_nothing(db: None, on: Any) -> None:
    on.SERVICE = {**on.SERVICE, "METRICS_TOKEN": "", "METRICS_NETWORKS": ("10.0.0.0/8",)}
    assert ask("").status_code == 403
    assert ask(None, REMOTE_ADDR="10.1.2.3").status_code == 200
    assert ask(None, REMOTE_ADDR="11.1.2.3").status_code == 403
    forged = {"REMOTE_ADDR": "11.1.2.3", "HTTP_X_FORWARDED_FOR": "10.1.2.3"}
    assert ask(None, **forged).status_code == 403


def test_prometheus_names_the_address_of_a_pod(db: None, on: Any) -> None:
    assert ask(HTTP_HOST="10.1.2.3:8000").status_code == 200
    assert ask(None, HTTP_HOST="10.1.2.3:8000").status_code == 403


def test_it_is_read_and_nothing_else(db: None, on: Any) -> None:
    assert ask(method="POST").status_code == 405
    assert ask(method="HEAD").content == b""
    assert ask().headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"METRICS": "on"}, "METRICS_TOKEN or METRICS_NETWORKS"),
        ({"METRICS": "on", "METRICS_TOKEN": "short"}, "METRICS_TOKEN must have 16"),
        ({"METRICS": "maybe"}, "METRICS must be on or off"),
    ],
)
def test_open_to_everyone_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, source: dict[str, str], named: str
) -> None:
    for name, value in source.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=named) as refused:
        metrics_settings.service_values(())
    assert source.get("METRICS_TOKEN", "-none-") not in str(refused.value)


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0"])
def test_everyone_is_no_network(network: str) -> None:
    with pytest.raises(BadSetting, match="must not be everybody"):
        metrics_settings.service_values(["10.0.0.0/8", network])


# -- What is read ---------------------------------------------------------------------------------


def transaction(status: str, age: float, **fields: Any) -> None:
    since = timezone.now() - timedelta(seconds=age)
    object_id = new_object_id()
    Transaction.objects.create(
        object_id=object_id,
        created_at=since,
        updated_at=since,
        hash=f"0x{object_id}",
        network_id="5",
        status=status,
        **fields,
    )


def test_networks_and_transactions_are_counted(db: None, on: Any, master: Api) -> None:
    secret = "https://node.example/SECRET"
    master.make("Blockchain", networkId=5, rpcEndpoint=secret)
    master.make("Blockchain", networkId=6)
    Blockchain.objects.filter(network_id=6).update(active=False)
    now = timezone.now()
    Cursor.objects.create(
        network_id=5,
        head=1000,
        number=990,
        safe=960,
        finalized=940,
        outbox=77,
        looked_at=now - timedelta(seconds=3),
        moved_at=now - timedelta(seconds=40),
    )
    due = {"next_check_at": now}
    for age in (10, 20, 200, 5000):
        transaction("pending", age, **due)
    transaction("pending", 1, failed_checks=2, replaced_suspected=True, **due)
    transaction("stalled", 7200, **due)
    transaction("stalled", 10**6)
    transaction("confirmed", 50, finality="included")
    transaction("failed", 50, finality="finalized")
    common = {"fork_hash": "0x", "old_hash": "0x", "old_number": 9, "network_id": 5}
    for depth in (1, 3):
        Reorganisation.objects.create(
            fork_number=9 - depth, depth=depth, removed_events=4, seen_at=now, **common
        )
    Backfill.objects.create(network_id=5, address="0x", first_block=0, last_block=99, next_block=50)
    metrics = read()
    item = {"network": "5"}
    expected = {
        "chain_active": 1,
        "chain_head_block": 1000,
        "chain_cursor_block": 990,
        "chain_lag_blocks": 10,
        "chain_safe_block": 960,
        "chain_finalized_block": 940,
        "chain_halted": 0,
        "chain_outbox_seq": 77,
        "chain_transactions_stalled": 1,
        "chain_transactions_unanswered": 1,
        "chain_transactions_replaced_suspected": 1,
        "chain_reorganisations_total": 2,
        "chain_removed_events_total": 8,
        "chain_reorganisation_depth_max": 3,
        "chain_backfills_open": 1,
        "chain_backfill_blocks": 50,
        "chain_backfills_unavailable": 0,
    }
    assert {name: of(metrics, name, **item) for name in expected} == expected
    pending = {
        up_to: of(metrics, "chain_transactions_pending", up_to=up_to, **item)
        for up_to in ("60", "300", "900", "3600", "+Inf")
    }
    assert pending == {"60": 3, "300": 4, "900": 4, "3600": 4, "+Inf": 5}
    assert of(metrics, "chain_transactions_pending_oldest_seconds", **item) == pytest.approx(
        5000, 1
    )
    assert of(metrics, "chain_transactions_unfinal", finality="included", **item) == 1
    assert of(metrics, "chain_look_age_seconds", **item) == pytest.approx(3, abs=30)
    assert of(metrics, "chain_active", network="6") == 0
    assert of(metrics, "chain_head_block", network="6") is None
    assert {labels for name, labels in metrics if name == "svc_chain_provider_up"} == {
        (("network", "5"), ("provider", "public"))
    }
    assert b"SECRET" not in ask().content


def test_restarts_are_counted(db: None, on: Any, settings: Any, tmp_path: Path) -> None:
    settings.DATA_FOLDER = DataFolder(tmp_path)
    settings.DATA_FOLDER.reports.mkdir(parents=True)
    restart_report.write(
        settings.DATA_FOLDER.reports, "roles", [Restarted("web", 3, False, "SIGKILL", 1)]
    )
    assert of(read(), "process_restarts_total", process="web") == 3


def test_ended_threads_are_counted(db: None, on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    signs = Signs(2)
    monkeypatch.setattr(liveness, "_own", (signs, 0))
    assert of(read(), "request_threads_ended_total") == 0
    signs.count_ended_thread(1)
    assert of(read(), "request_threads_ended_total") == 1


def test_queues_processes_and_requests_are_counted(db: None, on: Any, server: redis.Redis) -> None:
    request_counts.add_up()
    server.delete(request_counts.KEY)
    server.rpush("celery:chain", "{}", "{}")
    heartbeats.note(server, heartbeats.BEAT)
    Api(CLIENT).get("/classes/Thing")
    Api(MASTER).post("/classes/Thing", {})
    Api(MASTER).get("/nowhere")
    Api(CLIENT).call("BREW", "/classes/Thing")
    metrics = read()
    assert of(metrics, "queue_length", queue="chain") == 2
    assert of(metrics, "queue_length", queue="backfill") == 0
    silence = of(metrics, "process_silence_seconds", process="beat")
    assert silence is not None
    assert silence < 60
    assert of(metrics, "process_silence_seconds", process="chain") is None
    assert of(metrics, "requests_total", method="POST", status="201") == 1
    assert of(metrics, "requests_total", method="GET", status="404") == 1
    assert of(metrics, "requests_total", method="other", status="405") == 1
    seconds = of(metrics, "request_seconds_total", method="POST", status="201")
    assert seconds is not None
    assert 0 < seconds < 60


def test_counts_of_all_processes_are_added(db: None, on: Any, server: redis.Redis) -> None:
    request_counts.add_up()
    server.delete(request_counts.KEY)
    other = (
        "from backend.kernel import request_counts as counts;"
        " import django.conf; counts.count('GET', '/health', 200, 0.5); counts.add_up()"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    environment |= {"DATABASE_URL": database_url(), "REDIS_URL": django_settings.REDIS_URL}
    subprocess.run([sys.executable, "-c", other], cwd=ROOT, env=environment, timeout=60, check=True)
    request_counts.count("GET", "/health", 200, 0.25)
    metrics = read()
    assert of(metrics, "requests_total", method="GET", status="200") == 2
    assert of(metrics, "request_seconds_total", method="GET", status="200") == 0.75
    kind = {"method": "GET", "route": "/health", "status": "2xx"}
    limits = ("0.1", "0.25", "0.5", "10.0", "+Inf")
    counts = [of(metrics, "request_duration_seconds_bucket", **kind, le=limit) for limit in limits]
    assert counts == [0, 1, 2, 2, 2]
    assert of(metrics, "request_duration_seconds_sum", **kind) == 0.75


def test_durations_are_distinguished_by_route(db: None, on: Any, server: redis.Redis) -> None:
    request_counts.add_up()
    server.delete(request_counts.KEY, request_counts.DURATIONS_KEY)
    for name in ("One", "Two"):
        Api(MASTER).get(f"/classes/{name}")
    Api(MASTER).get("/classes/Thing/nowhere")
    Api(MASTER).get("/nowhere/at/all")
    Client().get("/health")
    Client().get("/admin/login/")
    Client().get("/x" * 100)
    metrics = read()
    counted = {
        (dict(labels)["route"], dict(labels)["status"]): value
        for (name, labels), value in metrics.items()
        if name == "svc_request_duration_seconds_count"
    }
    assert counted == {
        ("/classes/{class_name}", "2xx"): 2,
        ("/classes/{class_name}/{object_id}", "4xx"): 1,
        ("/health", "2xx"): 1,
        ("/admin", "2xx"): 1,
        ("other", "4xx"): 2,
    }


@pytest.mark.slow
def test_what_could_not_be_added_up_is_added_later(
    db: None, on: Any, server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_counts.add_up()
    server.delete(request_counts.KEY, request_counts.DURATIONS_KEY)
    with redis.Redis(host="127.0.0.1", port=1) as unreachable:
        monkeypatch.setattr(request_counts._counts, "client", unreachable)
        request_counts.count("GET", "/health", 200, 0.25)
        request_counts.add_up()
    monkeypatch.setattr(request_counts._counts, "client", None)
    request_counts.count("GET", "/health", 200, 0.25)
    metrics = read()
    assert of(metrics, "requests_total", method="GET", status="200") == 2
    kind = {"method": "GET", "route": "/health", "status": "2xx"}
    assert of(metrics, "request_duration_seconds_count", **kind) == 2
    assert of(metrics, "request_duration_seconds_sum", **kind) == 0.5


def test_the_first_task_that_waits_is_as_old_as_its_sending(
    db: None, on: Any, server: redis.Redis
) -> None:
    from backend.celery import app

    assert of(read(), "queue_oldest_seconds", queue="jobs") is None
    with app.connection_for_write() as broker:
        for age in (30, 10):
            app.send_task(
                "backend.beat_is_alive",
                connection=broker,
                queue="jobs",
                headers={heartbeats.SENT_AT: time() - age},
            )
    server.lpush("celery:jobs", "no JSON")
    oldest = of(read(), "queue_oldest_seconds", queue="jobs")
    assert oldest is not None
    assert 30 <= oldest < 60


def test_connections_to_the_database_are_counted(db: None, on: Any) -> None:
    metrics = read()
    limit = of(metrics, "database_connections_limit")
    assert limit is not None
    counted = sum(
        value for (name, _), value in metrics.items() if name == "svc_database_connections"
    )
    assert 1 <= counted <= limit
    active = of(metrics, "database_connections", process="test", state="active")
    assert active is not None
    assert active >= 1


def test_learned_indexes_are_counted_by_state(db: None, on: Any) -> None:
    assert of(read(), "learned_indexes", state="valid") == 0
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO objects_learned_index (class_id, name, fields, state, shape, reason,"
            " attempts, started_at, version, before_calls, before_seconds, scans)"
            " VALUES (1, 'a', '[]', 'valid', '', '', 0, now(), 0, 0, 0, 0)"
        )
    assert of(read(), "learned_indexes", state="valid") == 1


def test_deliveries_that_are_due_are_counted_with_the_age_of_the_first(db: None, on: Any) -> None:
    metrics = read()
    assert of(metrics, "webhook_deliveries_due") == 0
    assert of(metrics, "webhook_oldest_seconds") is None
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO functions_delivery (key, hook_id, about, body, state, attempts,"
            " last_error, created_at, due_at)"
            " SELECT state || seconds, 1, '', '', state, 0, '', now(),"
            " now() + make_interval(secs => seconds)"
            " FROM (VALUES ('pending'), ('dead')) s (state), (VALUES (-90), (-5), (60)) d (seconds)"
        )
    metrics = read()
    assert of(metrics, "webhook_deliveries_due") == 2
    oldest = of(metrics, "webhook_oldest_seconds")
    assert oldest is not None
    assert 90 <= oldest < 120


def test_what_does_not_answer_is_missing(db: None, on: Any) -> None:
    metrics = read()
    assert (of(metrics, "up", dependency="database"), of(metrics, "up", dependency="redis")) == (
        1,
        1,
    )
    on.REDIS_URL = "redis://127.0.0.1:1/0"
    metrics = read()
    assert (of(metrics, "up", dependency="database"), of(metrics, "up", dependency="redis")) == (
        1,
        0,
    )
    assert of(metrics, "queue_length", queue="chain") is None


def test_a_database_that_fails_is_missing(db: None, on: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE chain_cursor RENAME TO chain_cursor_elsewhere")
    metrics = read()
    assert (of(metrics, "up", dependency="database"), of(metrics, "up", dependency="redis")) == (
        0,
        1,
    )


def test_the_questions_are_answered_by_indexes(db: None, on: Any) -> None:
    """However many transactions are done with."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO chain_transaction (object_id, created_at, updated_at, data, hash, status,"
            " network_id, finality) SELECT 'done' || n, now(), now(), '{}', 'h' || n, 'confirmed',"
            " '5', 'finalized' FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE chain_transaction")
        for sql in _questions():
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Seq Scan on chain_transaction" not in plan, plan


def _questions() -> Iterator[str]:
    from chain.networks import metrics

    for name, value in vars(metrics).items():
        if name.startswith("_") and isinstance(value, str) and "FROM chain_transaction" in value:
            yield value

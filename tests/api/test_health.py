"""``/health`` and ``/ready``."""

from __future__ import annotations

import time

import pytest
import redis
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from django.test import Client

from backend import heartbeats
from backend.api import health

NOWHERE = "127.0.0.1", "1"


@pytest.fixture
def store():
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def _worker(store: redis.Redis):
    heartbeats.note(store, heartbeats.WORKER)


def test_health_needs_no_header_and_no_dependency(client: Client):
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


def test_health_refuses_other_methods_in_the_service_s_form(client: Client):
    response = client.post("/health")
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"
    assert response.json()["code"] == 108


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_ready_when_everything_answers(client: Client):
    response = client.get("/ready")
    assert response.status_code == 200
    assert response.json()["status"] == "ok"


@pytest.mark.django_db
def test_a_silent_worker_is_named(client: Client, store: redis.Redis):
    store.set("heartbeat:worker", repr(time.time() - 3600))
    response = client.get("/ready")
    assert response.status_code == 503
    assert response.json()["code"] == 1
    assert response.json()["error"] == "not ready: worker"
    assert response.json()["checks"]["worker"] == "not heard from"


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_an_unreachable_database_is_named_without_its_address(client: Client, settings):
    entry = settings.DATABASES["default"] | {"HOST": NOWHERE[0], "PORT": NOWHERE[1]}
    settings.DATABASES = {"default": entry}
    response = client.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: database, migrations"
    assert NOWHERE[0] not in response.text


@pytest.mark.django_db
def test_an_unreachable_redis_is_named_without_its_address(client: Client, settings):
    settings.REDIS_URL = f"redis://user:secret@{NOWHERE[0]}:{NOWHERE[1]}/0"
    response = client.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: redis, worker"
    assert "secret" not in response.text


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_a_missing_migration_is_named(client: Client, db):
    from django.db import connection

    health._known_migrations.cache_clear()
    known = health._known_migrations()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        assert cursor.fetchone()[0] >= len(known)


@pytest.mark.django_db(transaction=True)
def test_a_worker_leaves_a_sign_of_life(store: redis.Redis):
    from backend.celery import app, beat_is_alive

    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        beat_is_alive.delay()
        assert wait_for(store, heartbeats.BEAT)
    assert time.time() - (heartbeats.latest(store, heartbeats.BEAT) or 0) < 60


def wait_for(store: redis.Redis, which: str) -> bool:
    return False

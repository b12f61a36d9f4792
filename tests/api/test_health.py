"""``/health`` and ``/ready``."""

from __future__ import annotations

import time

import pytest
import redis
from django.conf import settings
from django.test import Client, override_settings

from backend import heartbeats

NOWHERE = "127.0.0.1", "1"


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.fixture
def store():
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def _worker(store: redis.Redis):
    heartbeats.note(store, heartbeats.WORKER)


@pytest.mark.django_db
def test_health_needs_no_header_and_no_dependency(browser: Client, django_assert_num_queries):
    with django_assert_num_queries(0):
        response = browser.get("/health")
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/health", "/api/health"])
def test_health_answers_the_post_that_sdks_send(browser: Client, path: str):
    body = {"_method": "GET", "_ApplicationId": "test-app", "_InstallationId": "x"}
    response = browser.post(path, body, content_type="application/json")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[", b"[]", b'{"_method": 5}', b'{"_method": "PUT"}', b" " * 5000]
)
def test_health_refuses_other_methods_in_the_service_s_form(browser: Client, body: bytes):
    response = browser.post("/health", body, content_type="application/json")
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"
    assert response.json()["code"] == 108


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_ready_when_everything_answers(browser: Client):
    response = browser.get("/ready")
    assert response.status_code == 200
    assert response.json()["status"] == "ok"


@pytest.mark.django_db
def test_a_silent_worker_is_named(browser: Client, store: redis.Redis):
    store.set("heartbeat:worker", repr(time.time() - 3600))
    response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["code"] == 1
    assert response.json()["error"] == "not ready: worker"
    assert response.json()["checks"]["worker"] == "not heard from"


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_an_unreachable_database_is_named_without_its_address(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    entry = settings.DATABASES["default"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setitem(entry, "HOST", NOWHERE[0])
        elsewhere.setitem(entry, "PORT", NOWHERE[1])
        response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: database, migrations"
    assert NOWHERE[0] not in response.text


@pytest.mark.django_db
def test_an_unreachable_redis_is_named_without_its_address(browser: Client):
    with override_settings(REDIS_URL=f"redis://user:secret@{NOWHERE[0]}:{NOWHERE[1]}/0"):
        response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: redis, worker"
    assert "secret" not in response.text


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_missing_migrations_are_named(browser: Client, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as elsewhere:
        # The server's maintenance database has none of ours.
        elsewhere.setitem(settings.DATABASES["default"], "NAME", "postgres")
        response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: migrations"


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_a_silent_beat_is_shown_but_stops_nothing(browser: Client):
    response = browser.get("/ready")
    assert response.status_code == 200
    assert response.json()["checks"]["beat"] == "not heard from"

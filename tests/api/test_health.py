"""``/health`` and ``/ready``."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from django.test import Client, override_settings

from backend.kernel.process import heartbeats, liveness
from backend.kernel.process.liveness import Signs

NOWHERE = "127.0.0.1", "1"
PATIENCE = 30.0  # seconds, for a machine that is busy with other things


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
@pytest.mark.usefixtures("_worker")
@pytest.mark.parametrize("path", ["/health", "/ready"])
@pytest.mark.parametrize("host", ["10.1.2.3:8000", "[fd00::1]", "balancer.example", "not a host"])
def test_health_and_readiness_are_answered_under_every_host(browser: Client, path: str, host: str):
    response = browser.get(path, headers={"Host": host})
    assert response.status_code == 200
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/admin/", "/health/"])
def test_pages_are_served_under_the_service_s_hosts_alone(browser: Client, path: str):
    assert browser.get(path, headers={"Host": "balancer.example"}).status_code == 400


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


class MutePostgres:
    """Accepts one connection of a client of PostgreSQL, and answers no statement on it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self.statement = b""
        self.is_closed_by_client = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            while connection.recv(8192)[4:8] in (ENCRYPTION, GSS_ENCRYPTION):
                connection.sendall(b"N")
            connection.sendall(b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\x05I")
            self.statement = connection.recv(8192)
            while connection.recv(8192):
                pass
            self.is_closed_by_client = True

    def wait_until_closed(self) -> None:
        self._thread.join()
        self._listener.close()


ENCRYPTION, GSS_ENCRYPTION = (number.to_bytes(4, "big") for number in (80877103, 80877104))


@pytest.fixture
def mute_postgres() -> Iterator[MutePostgres]:
    server = MutePostgres()
    yield server
    server.wait_until_closed()


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_a_database_that_answers_no_statement_is_left_at_the_deadline(
    browser: Client, monkeypatch: pytest.MonkeyPatch, mute_postgres: MutePostgres
):
    entry = settings.DATABASES["default"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setitem(entry, "HOST", "127.0.0.1")
        elsewhere.setitem(entry, "PORT", str(mute_postgres.port))
        response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: migrations"
    assert response.json()["checks"]["migrations"] == "unreachable"
    mute_postgres.wait_until_closed()
    assert b"django_migrations" in mute_postgres.statement
    assert mute_postgres.is_closed_by_client


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_ready_sends_redis_one_command_on_one_connection(browser: Client, store: redis.Redis):
    with store.monitor() as monitor:
        assert browser.get("/ready").status_code == 200
        store.echo("the end")
        commands = list(itertools.takewhile(is_before_the_end, monitor.listen()))
    database = store.get_connection_kwargs().get("db", 0)
    reads = [
        command
        for command in commands
        if command["db"] == database and "heartbeat:" in command["command"]
    ]
    assert len(reads) == 1


def is_before_the_end(command: dict[str, str]) -> bool:
    return "the end" not in command["command"]


@pytest.mark.django_db
@pytest.mark.usefixtures("_worker")
def test_a_web_process_that_takes_no_requests_is_named(
    browser: Client, monkeypatch: pytest.MonkeyPatch
):
    signs = Signs(2)
    monkeypatch.setattr(liveness, "_own", (signs, 0))
    assert "web" not in browser.get("/ready").json()["checks"]
    signs.hang(1)
    response = browser.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"] == "not ready: web"
    assert response.json()["checks"]["web"] == "takes no requests"

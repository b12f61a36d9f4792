"""Celery: the request id travels with a task, and the processes leave heartbeats."""

from __future__ import annotations

import json
import logging
import time

import pytest
import redis
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from structlog.contextvars import bound_contextvars, clear_contextvars, get_contextvars

from backend.celery import app
from backend.kernel.process import heartbeats
from backend.logs import setup
from backend.tasks import broker

PATIENCE = 30  # seconds


@app.task(name="tests.tell_context")
def tell_context(key: str) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.rpush(key, json.dumps(get_contextvars()))


@pytest.fixture
def store():
    # The library's own limit of 5 s would end a BLPOP before its time.
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def _worker(store: redis.Redis):
    with start_worker(app, perform_ping_check=False, loglevel="warning"):
        yield


def reported(store: redis.Redis, key: str) -> dict[str, str]:
    item = store.blpop([key], timeout=PATIENCE)
    assert item, "The task was not run."
    return json.loads(item[1])


@pytest.mark.usefixtures("_worker")
def test_a_task_logs_with_the_id_of_the_request_that_started_it(store: redis.Redis):
    clear_contextvars()
    with bound_contextvars(request_id="request-1"):
        tell_context.delay("first")
    tell_context.delay("second")
    first, second = reported(store, "first"), reported(store, "second")
    assert first["request_id"] == "request-1"
    assert first["task"] == "tests.tell_context"
    # What no request has caused gives its own id to what it causes.
    assert second["request_id"] == second["task_id"] != first["task_id"]


@app.task(name="tests.start_another")
def start_another(key: str) -> None:
    tell_context.delay(key)


@pytest.mark.usefixtures("_worker")
@pytest.mark.parametrize("request_id", ["request-2", ""])
def test_a_task_that_a_task_has_started_has_the_same_id(store: redis.Redis, request_id: str):
    clear_contextvars()
    with bound_contextvars(**({"request_id": request_id} if request_id else {})):
        task = start_another.delay("third")
    assert reported(store, "third")["request_id"] == request_id or task.id


@pytest.mark.usefixtures("_worker")
def test_a_task_that_waited_for_the_broker_has_the_id_of_its_request(store: redis.Redis):
    clear_contextvars()
    with bound_contextvars(request_id="request-3"):
        broker._broker.send_later(tell_context, ("fourth",))
    assert reported(store, "fourth")["request_id"] == "request-3"


@pytest.mark.usefixtures("_worker")
def test_a_worker_tells_that_it_lives(store: redis.Redis):
    assert time.time() - (heartbeats.latest(store, heartbeats.WORKER) or 0) < PATIENCE


def test_beat_is_proven_alive_by_a_task_that_it_schedules(store: redis.Redis):
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert "backend.beat_is_alive" in scheduled
    app.tasks["backend.beat_is_alive"]()
    assert time.time() - (heartbeats.latest(store, heartbeats.BEAT) or 0) < PATIENCE


def test_a_channel_without_a_connection_is_a_lost_connection_that_workers_survive():
    with app.connection_for_read() as connection:
        channel = connection.channel()
        lost = connection.connection_errors
        connection.transport.client = None  # as closing it leaves its transport
        with pytest.raises(lost, match="has been closed"):
            channel._create_client()


@pytest.mark.parametrize(("level", "is_written"), [("INFO", False), ("DEBUG", True)])
def test_that_a_task_has_succeeded_is_a_debug_line(level: str, is_written: bool):
    def passes(text: str) -> tuple[bool, str]:
        record = logging.LogRecord("celery.app.trace", logging.INFO, "", 1, text, (), None)
        filters = [item for handler in logging.getLogger().handlers for item in handler.filters]
        return all(item.filter(record) for item in filters), record.levelname

    setup.configure(level, "json", "test")
    try:
        success = passes("Task functions.run_job[1] succeeded in 0.02s: None")
        assert success == (is_written, "DEBUG")
        assert passes("Task functions.run_job[1] retry: Retry in 3s") == (True, "INFO")
    finally:
        setup.configure("WARNING", "json", "test")

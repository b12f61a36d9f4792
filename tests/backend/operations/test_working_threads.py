"""Which threads of a web process may have been running a request for long, and which are stuck."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import redis
from django.conf import settings
from django.db import connection, connections

from backend.operations.processes.server_rules import is_working
from functions import Request, function
from functions.runtime.registry import registry
from objects.database.statements import fetch
from tests.polling import until

WORD = "tests:working-threads"
PATIENCE = 30.0


def waiting_for_a_statement() -> None:
    fetch("SELECT pg_advisory_lock(815)", (), prepare=False)


def waiting_for_a_statement_of_django() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(815)")


def waiting_for_redis() -> None:
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None) as client:
        client.blpop([WORD], timeout=60)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "work", [waiting_for_a_statement, waiting_for_a_statement_of_django, waiting_for_redis]
)
def test_a_thread_that_waits_for_an_engine_works(work: Callable[[], None]) -> None:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    fetch("SELECT pg_advisory_lock(815)", (), prepare=False)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: is_working(thread.ident or 0, inf), PATIENCE)
    finally:
        fetch("SELECT pg_advisory_unlock(815)", (), prepare=False)
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.rpush(WORD, "go on")
        thread.join(PATIENCE)
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.delete(WORD)


def test_a_thread_that_waits_for_anything_else_works_as_long_as_functions_may(
    settings: Any,
) -> None:
    settings.SERVICE = {**settings.SERVICE, "FUNCTION_TIME_LIMIT": 20}
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    number = thread.ident or 0
    try:
        with registry.temporarily():
            registry.functions.clear()
            registry.triggers.clear()
            assert is_working(number, 49)
            assert not is_working(number, 51)

            @function(time_limit=100)
            def slow(request: Request) -> None:
                return None

            assert is_working(number, 129)
            assert not is_working(number, 131)

            @function(time_limit=0)
            def endless(request: Request) -> None:
                return None

            assert is_working(number, 1_000_000)
    finally:
        event.set()
        thread.join()

"""Reports of processes: what each runs and uses, until it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import time

import msgspec
import pytest
import redis
from django.conf import settings

from backend import __version__
from backend.kernel.process import reports


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
        yield client
        client.flushdb()


def test_a_process_reports_what_it_runs_and_uses(server: redis.Redis) -> None:
    reports.send(server)
    reports.send(server)
    (report,) = reports.read(server)
    assert (report.pid, report.role, report.version) == (os.getpid(), "test", __version__)
    assert abs(report.at - time()) < 60
    assert report.started_at <= report.at
    assert report.memory > 10 * 2**20
    assert 0 <= report.cpu <= (os.cpu_count() or 1)
    assert 0 < report.disk_used < report.disk_total


def test_the_report_of_a_process_that_has_ended_expires(server: redis.Redis) -> None:
    reports.send(server)
    (name,) = server.keys("process:*")
    assert 0 < server.ttl(name) <= reports.EXPIRY
    server.delete(name)
    assert reports.read(server) == []


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"role": 5}', b"\xff"])
def test_a_report_of_another_release_is_left_out(server: redis.Redis, text: bytes) -> None:
    reports.send(server)
    server.set("process:other:1", text)
    server.zadd("processes", {"other:1": time()})
    assert len(reports.read(server)) == 1


def test_reports_are_read_up_to_a_limit(server: redis.Redis) -> None:
    reports.send(server)
    (mine,) = reports.read(server)
    for pid in range(reports.MOST + 20):
        name = f"node:{pid}"
        server.set(f"process:{name}", msgspec.json.encode(msgspec.structs.replace(mine, pid=pid)))
        server.zadd("processes", {name: time() - pid})
    assert len(reports.read(server)) == reports.MOST

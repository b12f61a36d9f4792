"""A Redis that is there and doesn't answer delays no request: tasks are submitted later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.backend.operations.mixed_load import headers
from tests.backend.operations.service import PATIENCE, Service
from tests.polling import until

pytestmark = pytest.mark.slow

MODULE = """
from functions import JobRequest, TriggerRequest, after_save, job

@after_save("Watched", background=True)
def note(request: TriggerRequest) -> None:
    request.objects("Noted").create(number=request.object["number"])

@job("tidy")
def tidy(request: JobRequest) -> None:
    pass
"""
LONGEST = 10.0
"""Seconds of any answer, on a busy machine; without an end before Redis had a time limit."""


@pytest.fixture
def service(start: Callable[..., Service], tmp_path: Path) -> Service:
    (tmp_path / "watching.py").write_text(MODULE)
    return start(PYTHONPATH=tmp_path, CLOUD_MODULES="watching")


@pytest.fixture
def redis_process(service: Service) -> Iterator[psutil.Process]:
    process = service.child("redis-server")
    yield process
    if process.is_running():
        process.resume()


def answer(service: Service, path: str, body: object) -> int:
    """The status of a ``POST``, which may not take long."""
    began = time.monotonic()
    response = httpx.post(
        f"{service.url}/api{path}", headers=headers(service), json=body, timeout=PATIENCE
    )
    assert time.monotonic() - began < LONGEST, path
    return response.status_code


def noted(service: Service) -> set[int]:
    answer = service.get("/api/classes/Noted?limit=1000", headers(service))
    return {row["number"] for row in answer.json()["results"]}


def job_states(service: Service) -> set[str]:
    answer = service.get("/api/classes/_JobStatus", headers(service))
    return {row["status"] for row in answer.json()["results"]}


def test_what_needs_workers_is_answered_and_done_later(
    service: Service, redis_process: psutil.Process
) -> None:
    assert answer(service, "/classes/Watched", {"number": 0}) == 201
    until(lambda: noted(service) == {0}, PATIENCE)
    redis_process.suspend()
    for number in range(1, 21):
        assert answer(service, "/classes/Watched", {"number": number}) == 201
    assert answer(service, "/jobs/tidy", {}) == 200
    assert answer(service, "/requestPasswordReset", {"email": "a@example.org"}) in (200, 503)
    assert noted(service) == {0}
    redis_process.resume()
    until(lambda: noted(service) == {*range(21)}, PATIENCE)
    until(lambda: job_states(service) == {"succeeded"}, PATIENCE)


def test_tasks_that_wait_are_handed_over_when_the_process_is_replaced(
    service: Service, redis_process: psutil.Process
) -> None:
    redis_process.suspend()
    assert answer(service, "/classes/Watched", {"number": 1}) == 201
    redis_process.resume()
    for process in service.processes_of("web"):
        process.terminate()
    until(lambda: noted(service) == {1}, PATIENCE)
    assert not [line for line in service.errors if "tasks are lost" in line]

"""``/ready`` answers in time, also while PostgreSQL or Redis hang."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from backend.embedded.folder import temporary_folder
from tests.process.mixed_load import is_whole
from tests.process.service import PATIENCE, Service
from tests.process.stalls import stalled
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ready_during_stalls")]

LONGEST = 5.0
"""Seconds of an answer, on a busy machine: two are the deadline of the checks."""
OF_POSTGRES = {"database", "migrations"}
OF_REDIS = {"redis", "worker", "jobs", "chain", "backfill", "beat", "realtime"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with temporary_folder() as folder:
        service = Service(folder.path)
        until(lambda: is_whole(service), PATIENCE)
        yield service
        service.stop()


@pytest.mark.parametrize(
    ("engines", "unreachable"),
    [
        (["redis-server"], OF_REDIS),
        (["/postgres"], OF_POSTGRES),
        (["redis-server", "/postgres"], OF_REDIS | OF_POSTGRES),
    ],
    ids=["redis", "postgres", "both"],
)
def test_ready_answers_while_engines_hang(
    service: Service, engines: list[str], unreachable: set[str]
) -> None:
    with stalled(service, *engines):
        for _ in range(2):
            began = time.monotonic()
            answer = service.get("/ready")
            seconds = time.monotonic() - began
            assert answer.status_code == 503
            checks = answer.json()["checks"]
            assert {name for name, state in checks.items() if state == "unreachable"} == unreachable
            assert seconds < LONGEST
    until(lambda: is_whole(service), PATIENCE)

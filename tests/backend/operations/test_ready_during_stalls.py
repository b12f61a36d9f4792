"""While PostgreSQL or Redis hang, ``/ready`` answers in time. Clients aren't blamed for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from backend.instance.folder import temporary_folder
from tests.backend.operations.mixed_load import is_whole
from tests.backend.operations.service import PATIENCE, Service
from tests.backend.operations.stalls import stalled
from tests.polling import until

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


STALL = 1.5
"""Seconds, several times those after which a statement is slow."""
CLIENTS = 16
"""Of one address: more than it may have slow requests."""
SEARCHES = 40 * CLIENTS


def test_no_client_is_refused_for_searches_that_postgresql_held_up(service: Service) -> None:
    keys = {
        "X-Svc-Application-Id": service.printed(r"X-Svc-Application-Id: ([\w-]+)"),
        "X-Svc-REST-API-Key": service.printed(r"X-Svc-REST-API-Key: ([\w-]+)"),
    }

    with (
        httpx.Client(base_url=service.url, headers=keys, timeout=PATIENCE) as connections,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):

        def search(number: int = 0) -> int:
            return connections.get("/api/classes/_Role").status_code

        assert set(clients.map(search, range(SEARCHES))) == {200}
        with stalled(service, "/postgres"):
            over = time.monotonic() + STALL
            searches = [clients.submit(search) for _ in range(CLIENTS)]
            until(lambda: time.monotonic() > over, PATIENCE)
        assert {each.result() for each in searches} == {200}
        assert set(clients.map(search, range(SEARCHES))) == {200}

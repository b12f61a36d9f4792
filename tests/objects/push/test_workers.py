"""Pushes with real workers, which are killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.test import override_settings

from objects.push import delivery
from objects.push.service import continue_sending, start
from tests.functions.jobs.processes import Processes, until
from tests.objects.push.fake_fcm import FakeFcm
from tests.objects.push.pushing import api, install, pass_time, push, status, targets

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture
def fcm() -> Iterator[FakeFcm]:
    fake = FakeFcm()
    yield fake
    fake.stop()


@pytest.fixture
def processes(settings: Any, fcm: FakeFcm) -> Iterator[Processes]:
    with redis.Redis.from_url(settings.REDIS_URL) as store:
        store.flushdb()
        results = Processes("")
        results.environment |= {
            "PUSH_ADAPTERS": "*=fcm",
            "FCM_URL": fcm.url,
            "FCM_SERVICE_ACCOUNT": fcm.account,
            "WORKER_CONCURRENCY": "2",
        }
        service = {**settings.SERVICE, "PUSH_ADAPTERS": {"*": "fcm"}}
        with override_settings(SERVICE=service):
            yield results
        results.stop()
        store.flushdb()


def sent(fcm: FakeFcm) -> list[str]:
    return [str(message["token"]) for message in fcm.received]


@pytest.mark.slow
def test_no_target_is_lost_when_workers_are_killed(fcm: FakeFcm, processes: Processes) -> None:
    install(130)
    released = threading.Event()
    answer = fcm.answer

    def answer_slowly(path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if "messages" in path and len(fcm.received) > 60:
            released.wait(60)
        return answer(path, headers, body)

    fcm.answer = answer_slowly  # type: ignore[method-assign]
    push_id = push(data={"alert": "Hello", "badge": "Increment"})
    processes.start("worker")
    until(lambda: len(fcm.received) > 60)
    processes.kill("worker")
    before = {*sent(fcm)}
    recorded = [target for target in targets(push_id) if target.state == "sent"]
    assert len(recorded) < 130
    released.set()
    pass_time(delivery.LEASE.total_seconds() + 1)
    processes.start("worker")
    delivery.start_due(start, continue_sending)
    until(lambda: status(push_id)["status"] == "succeeded")
    stored = status(push_id)
    assert (stored["numSent"], stored["sentPerType"]) == (130, {"android": 130})
    assert "count" not in stored
    assert {*sent(fcm)} | before == {f"token-{number}" for number in range(130)}
    # What was recorded before isn't sent again; the last chunks of the killed worker may be.
    tokens = sent(fcm)
    assert all(tokens.count(target.device_token) == 1 for target in recorded)
    badges = {row["badge"] for row in api.results("_Installation", limit=1000)}
    assert badges == {1}


@pytest.mark.slow
def test_a_push_is_sent_at_once(fcm: FakeFcm, processes: Processes) -> None:
    processes.start("worker")
    install(3)
    push_id = push()
    until(lambda: status(push_id)["status"] == "succeeded")
    assert sorted(sent(fcm)) == ["token-0", "token-1", "token-2"]

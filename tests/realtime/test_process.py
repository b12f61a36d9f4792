"""What a realtime process has once: its parts, its state, its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.test import override_settings

from realtime.process import reports
from realtime.process.process import Process
from tests.realtime.in_process import Client, eventually, run


class Worker:
    """A part that does what ``next`` says: run on, fail, end."""

    name = "worker"
    makes = 0
    runs = 0
    next = "run"
    ended = 0

    def __init__(self, process: Process) -> None:
        type(self).makes += 1

    async def run(self) -> None:
        type(self).runs += 1
        match self.next:
            case "fail":
                raise ValueError("as it was told")
            case "end":
                return
            case "cancel":
                raise asyncio.CancelledError
        try:
            await asyncio.Event().wait()
        finally:
            type(self).ended += 1

    def status(self) -> dict[str, Any]:
        return {"runs": self.runs}


@pytest.fixture
def worker() -> type[Worker]:
    return type("Own", (Worker,), {})


def test_a_part_is_made_once_and_ends_with_the_process(worker):
    async def scenario() -> None:
        process = Process.current()
        assert process is Process.current()
        assert process.part(worker) is process.part(worker)
        await eventually(lambda: worker.runs)
        assert process.is_ready
        assert process.status()["parts"] == {"worker": {"runs": 1}}
        await process.stop()
        assert (worker.makes, worker.runs, worker.ended) == (1, 1, 1)
        assert Process.current() is not process

    run(scenario())


@pytest.mark.slow
def test_a_part_that_ends_is_run_again_and_the_process_is_not_ready_meanwhile():
    ways = ("fail", "end", "cancel")
    workers = {how: type(how, (Worker,), {"next": how, "name": how}) for how in ways}

    async def scenario() -> None:
        process = Process.current()
        for worker in workers.values():
            process.part(worker)
        await eventually(lambda: all(worker.runs > 1 for worker in workers.values()))
        assert not process.is_ready
        assert not process.is_hopeless
        for worker in workers.values():
            worker.next = "run"
        await eventually(lambda: process.is_ready)
        assert all(process.status()["failures"][how] >= 2 for how in ways)
        assert all(worker.makes == 1 for worker in workers.values())

    run(scenario())


def test_a_process_that_stops_sends_its_clients_elsewhere_and_lets_nobody_in():
    async def scenario() -> None:
        process = Process.current()
        clients = [await Client().open() for _ in range(3)]
        stopping = asyncio.create_task(process.stop())
        assert [await client.closed() for client in clients] == [1001] * 3
        await stopping
        assert not process.sockets
        assert process.admission.is_closed

    run(scenario())


def test_a_process_reports_its_state_until_it_ends():
    async def scenario() -> None:
        process = Process.current()
        client = await Client().open()

        def reported() -> dict[str, Any] | None:
            results = {item["id"]: item for item in reports.processes()}
            return results.get(process.id)

        first = await eventually(reported)
        assert first["ready"] is True
        assert first["pid"]
        assert process.status()["connections"] == {"echo": 1}
        await client.leave()
        await process.stop()
        assert reported() is None

    run(scenario())


def test_a_redis_that_is_away_stops_nobody():
    async def scenario() -> None:
        client = await Client().open()
        await client.say("here")
        assert await client.heard() == "here"
        assert Process.current().is_ready
        await client.leave()

    with override_settings(REDIS_URL="unix:///nowhere/redis.sock"):
        run(scenario())

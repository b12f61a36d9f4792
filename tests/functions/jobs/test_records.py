"""What a worker may write of a run, and what is removed when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from backend.kernel.texts.encoding import LONGEST_TEXT
from functions import JobRequest, ScriptFailed, job, start_job
from functions.jobs import records, stuck_runs
from functions.jobs.models import JobStatus
from functions.jobs.records import Run
from objects.database.statements import fetch
from tests.rest import Api

pytestmark = pytest.mark.django_db


def held(**options: Any) -> Run:
    made = records.add("work", {"a": 1}, **{"source": "api", "exclusive": True, **options})
    assert made is not None
    run = records.claim(made)
    assert run is not None
    return run


def of(run: Run) -> JobStatus:
    return JobStatus._default_manager.get(object_id=run.status_id)


def aged(run: Run, **columns: str) -> None:
    """Let times of a run be so long ago."""
    for column, interval in columns.items():
        fetch(
            f"UPDATE functions_job_status SET {column} = statement_timestamp() - %s::interval"
            " WHERE object_id = %s",
            (interval, run.status_id),
            prepare=False,
        )


def test_a_run_is_claimed_once() -> None:
    run = held()
    assert run.params == {"a": 1}
    assert records.claim(run.status_id) is None


WRITES: list[Callable[[Run], bool]] = [
    lambda run: records.beat(run, None),
    lambda run: records.beat(run, "later"),
    lambda run: records.finish(run, "succeeded", "later", None),
]


@pytest.mark.parametrize("write", WRITES)
def test_who_holds_it_no_longer_writes_nothing(write: Callable[[Run], bool]) -> None:
    run = held()
    assert records.finish(run, "failed", "The worker died.", "The worker died.")
    before = of(run).updated_at, of(run).message, of(run).heartbeat_at
    assert not write(run)
    assert (of(run).updated_at, of(run).message, of(run).heartbeat_at) == before


def test_nor_does_a_former_attempt() -> None:
    first = held()
    aged(first, heartbeat_at="1 hour")
    (silent,) = records.silent(30)
    assert records.queue_again(silent, 30)
    second = records.claim(first.status_id)
    assert second is not None
    assert second.attempt == 2
    assert not records.beat(first, "I'm still here")
    assert records.beat(second, None)


def test_one_that_shows_life_in_time_is_not_given_up() -> None:
    run = held()
    aged(run, heartbeat_at="1 hour")
    (silent,) = records.silent(30)
    assert records.beat(run, None)
    assert not records.finish(silent, "failed", None, "The worker died.", silence=30)
    assert not records.queue_again(silent, 30)
    assert of(run).status == "running"


def test_a_job_that_kills_each_worker_is_given_up() -> None:
    @job("work", restart=True)
    def work(request: JobRequest) -> None: ...

    run = held()
    for _ in range(stuck_runs.MOST_ATTEMPTS - 1):
        aged(run, heartbeat_at="1 hour")
        stuck_runs.retry_stuck()
        assert of(run).status == "queued"
        assert records.claim(run.status_id) is not None
    aged(run, heartbeat_at="1 hour")
    stuck_runs.retry_stuck()
    assert (of(run).status, of(run).error) == ("failed", "The worker died.")


def test_one_that_could_only_be_killed_took_too_long() -> None:
    @job("work", time_limit=60)
    def work(request: JobRequest) -> None: ...

    run = held()
    aged(run, heartbeat_at="1 minute", started_at="2 minutes")
    stuck_runs.retry_stuck()
    assert of(run).error == "The job work took longer than 60 seconds."


def test_messages_are_cut_and_cleaned() -> None:
    run = held()
    records.beat(run, "a\x00\ud800" + "b" * 20_000)
    message = of(run).message
    assert message is not None
    assert len(message) == LONGEST_TEXT
    assert message.startswith("a\ufffd\ufffdb")


def test_a_tick_makes_one_run() -> None:
    first = records.add("work", {}, source="schedule", exclusive=False, occasion="tick 1")
    assert records.add("work", {}, source="schedule", exclusive=False, occasion="tick 1") is None
    assert records.of_occasion("tick 1") == first


def test_old_runs_are_removed_when_they_are_over() -> None:
    old, recent, running = held(exclusive=False), held(exclusive=False), held(exclusive=False)
    for run in (old, recent):
        records.finish(run, "succeeded", None, None)
    for run in (old, running):
        aged(run, created_at="31 days")
    aged(old, finished_at="31 days")
    assert records.remove_old(30) == 1
    rows = set(JobStatus._default_manager.values_list("object_id", flat=True))
    assert rows == {recent.status_id, running.status_id}


def test_functions_start_jobs_with_python_values(master: Api) -> None:
    @job("work")
    def work(request: JobRequest, since: datetime) -> None: ...

    made = start_job("work", since=datetime(2030, 1, 1, tzinfo=UTC))
    shown = master.get(f"/classes/_JobStatus/{made}").json
    assert shown["source"] == "function"
    assert shown["params"] == {"since": {"__type": "Date", "iso": "2030-01-01T00:00:00.000Z"}}
    with pytest.raises(ScriptFailed, match="already queued"):
        start_job("work", since=datetime(2030, 1, 1, tzinfo=UTC))

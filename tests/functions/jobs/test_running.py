"""Runs in real workers: how they end, what they say meanwhile, and what becomes of them when a
worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.kernel.principal import MASTER
from functions.jobs import records
from functions.jobs.start import JobBusy, publish, start
from functions.runtime.registry import registry
from objects.database.statements import fetch
from tests.functions.jobs.processes import Processes, ended, find, say, saying, status, until
from tests.threads import at_once

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("known_jobs")]


@pytest.fixture(scope="module")
def processes(emptied: None, django_db_setup: None, django_db_blocker: Any) -> Iterator[Processes]:
    """A worker, a worker for jobs, and beat. What tests do is committed."""
    with django_db_blocker.unblock():
        results = Processes("tests.functions.jobs.cloud")
        for role in ("jobs", "worker", "beat"):
            results.start(role)
        yield results
        results.stop()


@pytest.fixture(autouse=True)
def db(processes: Processes) -> None:
    """In place of a transaction for each test: the processes have to see what is done."""


def begin(name: str, **params: Any) -> str:
    return start(name, params, source="api", principal=MASTER)


@pytest.mark.slow
def test_a_run_succeeds_in_another_process_with_the_rights_of_the_master_key() -> None:
    run = ended(begin("cloud_note", text="hello", times=2))
    assert run["status"] == "succeeded"
    assert run["attempt"] == 1
    assert run["message"].startswith("2 written by ")
    assert run["message"] != f"2 written by {os.getpid()}"
    assert len(find("JobNote", by=run["objectId"])) == 2
    times = [run[name]["iso"] for name in ("startedAt", "finishedAt")]
    assert run["createdAt"] <= times[0] <= times[1] == run["updatedAt"]


def test_any_result_becomes_the_message() -> None:
    assert ended(begin("cloud_adds_up"))["message"] == '{"sum":3}'


def test_an_exception_is_reported_by_a_neutral_text_with_the_request_s_id() -> None:
    run = ended(begin("cloud_breaks"))
    assert run["status"] == "failed"
    assert run["error"] == run["message"]
    assert run["error"].startswith("The job cloud_breaks failed. Request id: ")
    assert "s3cr3t" not in str(run)


def test_an_error_for_clients_is_reported_as_it_is() -> None:
    run = ended(begin("cloud_refuses"))
    assert (run["status"], run["error"]) == ("failed", "The report is there already.")


def test_a_job_can_not_end_its_worker() -> None:
    assert ended(begin("cloud_exits"))["status"] == "failed"
    assert ended(begin("cloud_adds_up"))["status"] == "succeeded"


def test_a_run_that_takes_too_long_fails() -> None:
    run = ended(begin("cloud_spins_too_long"))
    assert run["error"] == "The job cloud_spins_too_long took longer than 1 seconds."


@pytest.mark.slow
def test_one_that_can_not_be_stopped_is_ended_with_its_process() -> None:
    run = ended(begin("cloud_sleeps"))
    assert run["error"] == "The job cloud_sleeps took longer than 1 seconds."
    assert ended(begin("cloud_adds_up"))["status"] == "succeeded"


@pytest.mark.slow
def test_child_processes_end_with_the_time_limit(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    run_id = begin("cloud_has_children", file=str(file))
    until(file.exists)
    child = psutil.Process(int(file.read_text()))
    family = [child, *child.children()]
    run = ended(run_id)
    assert run["error"] == "The job cloud_has_children took longer than 1 seconds."
    assert psutil.wait_procs(family, 10)[1] == []


def test_signs_of_life_come_also_while_a_job_computes(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    made = begin("cloud_spins", until=str(enough))
    until(lambda: status(made)["status"] == "running")
    observed = {status(made)["heartbeatAt"]["iso"]}
    until(lambda: observed.add(status(made)["heartbeatAt"]["iso"]) or len(observed) > 2)
    enough.touch()
    assert ended(made)["status"] == "succeeded"


def test_messages_are_seen_at_once_and_the_last_one_stays() -> None:
    made = begin("cloud_talks", word="talk")
    until(lambda: status(made).get("message") == "999 of 1000 \N{REPLACEMENT CHARACTER} done")
    assert find("JobNote", text="talk") == []
    say("talk")
    assert ended(made)["message"] == "999 of 1000 \N{REPLACEMENT CHARACTER} done"
    assert len(find("JobNote", text="talk")) == 1


def test_of_many_that_start_a_job_at_once_one_does() -> None:
    def try_it(number: int) -> str | None:
        try:
            return begin("cloud_alone", word=f"alone {number}")
        except JobBusy:
            return None

    made = [item for item in at_once([lambda n=n: try_it(n) for n in range(8)]) if item]
    assert len(made) == 1
    until(lambda: status(made[0])["status"] == "running")
    with pytest.raises(JobBusy, match="already running"):
        begin("cloud_alone", word="later")
    say(status(made[0])["params"]["word"])
    ended(made[0])


def test_a_task_that_comes_again_does_nothing() -> None:
    made = begin("cloud_waits", word="again")
    first = saying(made)
    for _ in range(3):
        publish(made, registry.jobs["cloud_waits"])
    # A later run is begun after them.
    ended(begin("cloud_adds_up"))
    say("again")
    run = ended(made)
    assert (run["attempt"], run["message"], run["status"]) == (1, "heard", "succeeded")
    publish(made, registry.jobs["cloud_waits"])
    ended(begin("cloud_adds_up"))
    assert status(made) == run
    assert first.isdigit()


@pytest.mark.slow
def test_a_run_whose_process_is_killed_has_failed() -> None:
    made = begin("cloud_waits", word="nobody says this")
    os.kill(int(saying(made)), signal.SIGKILL)
    run = ended(made)
    assert (run["status"], run["error"]) == ("failed", "The worker died.")
    assert run["attempt"] == 1
    # And the job may be started again.
    again = begin("cloud_waits", word="again")
    say("again")
    assert ended(again)["status"] == "succeeded"


@pytest.mark.slow
def test_a_job_that_bears_it_is_run_again() -> None:
    made = begin("cloud_comes_back", word="nobody says this either")
    os.kill(int(saying(made)), signal.SIGKILL)
    run = ended(made)
    assert (run["status"], run["message"]) == ("succeeded", "attempt 2")


@pytest.mark.slow
def test_a_run_is_found_dead_when_its_whole_worker_is_killed(processes: Processes) -> None:
    made = begin("cloud_waits", word="nor this")
    saying(made)
    processes.kill("jobs")
    run = ended(made)
    assert (run["status"], run["error"]) == ("failed", "The worker died.")
    waiting = begin("cloud_note", text="after the end")
    processes.start("jobs")
    assert ended(waiting)["status"] == "succeeded"


@pytest.mark.slow
def test_who_holds_a_run_no_longer_is_stopped() -> None:
    made = begin("cloud_spins", until="never")
    until(lambda: status(made)["status"] == "running")
    fetch(
        "UPDATE functions_job_status SET attempt = 7 WHERE object_id = %s", (made,), prepare=False
    )
    # The process is free again long before the job would have ended.
    for number in range(8):
        assert ended(begin("cloud_note", text=str(number)))["status"] == "succeeded"
    run = records.Run(made, 7, "cloud_spins", {}, "")
    assert ended(made)["error"] == "The worker died."
    assert not records.beat(run, "too late")


@pytest.mark.slow
def test_workers_are_notified_again_of_a_run_that_the_broker_has_lost() -> None:
    lost = records.add("cloud_adds_up", {}, source="api", exclusive=True)
    assert lost is not None
    fetch(
        "UPDATE functions_job_status SET updated_at = now() - interval '1 hour'"
        " WHERE object_id = %s",
        (lost,),
        prepare=False,
    )
    assert ended(lost)["status"] == "succeeded"


def test_beat_starts_a_job_again_and_again() -> None:
    def runs() -> list[dict[str, Any]]:
        return find("_JobStatus", jobName="cloud_ticks", status="succeeded")

    results = until(lambda: len(runs()) > 2 and runs())
    assert {run["source"] for run in results} == {"schedule"}


@pytest.mark.slow
def test_a_tick_is_skipped_and_counted_while_the_job_runs() -> None:
    def slow() -> list[dict[str, Any]]:
        return find("_JobStatus", jobName="cloud_ticks_slowly", status="running")

    run = until(lambda: (rows := slow()) and rows[0]["skipped"] > 1 and rows[0])
    assert len(slow()) == 1
    say("slow tick")
    assert ended(run["objectId"])["status"] == "succeeded"


@pytest.mark.slow
def test_a_schedule_made_over_rest_is_run_by_beat(master_call: Any) -> None:
    schedule = {"jobName": "cloud_once", "params": '{"text": "by and by"}', "description": "x"}
    made = master_call("POST", "/cloud_code/jobs", {"job_schedule": schedule})
    assert made.status == 201
    (run,) = until(lambda: find("_JobStatus", jobName="cloud_once", status="succeeded"))
    assert (run["message"], run["source"]) == ("by and by", "schedule")

    def is_off() -> bool:
        shown = master_call("GET", "/cloud_code/jobs").json
        return [item["enabled"] for item in shown if item["jobName"] == "cloud_once"] == [False]

    until(is_off)
    assert datetime.fromisoformat(run["finishedAt"]["iso"])


@pytest.fixture
def master_call() -> Any:
    from tests.rest import MASTER as HEADERS
    from tests.rest import Api

    return Api(HEADERS).call


@pytest.mark.slow
def test_the_command_waits_for_the_end(processes: Processes) -> None:
    done = processes.manage("run_job", "cloud_note", "--param", "text=by hand", "--wait")
    assert done.returncode == 0, done.stderr
    assert "1 written by " in done.stdout
    failed = processes.manage("run_job", "cloud_refuses", "--wait")
    assert failed.returncode == 1
    assert "The report is there already." in failed.stderr

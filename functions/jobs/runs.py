"""Execution of a run in a worker."""

from __future__ import annotations

from typing import Any

from backend.kernel.errors import ServiceError
from backend.kernel.texts.encoding import encode_json
from backend.logs.correlation import caused_by
from backend.logs.failures import contained
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from functions.jobs import child_processes, records
from functions.jobs.models import FAILED, SUCCEEDED
from functions.jobs.records import Run
from functions.jobs.reports import Outcome, Report, RunLost
from functions.jobs.request import JobRequest
from functions.runtime import runner
from functions.runtime.registry import Job, registry
from functions.runtime.values import decode, encode

GONE = "Invalid job."

log = get_logger("jobs")


def execute(status_id: str) -> None:
    """Execute a queued run. A repeated task has no effect."""
    run = records.claim(status_id)
    if run is None:
        log.info("run is begun already", status=status_id)
        return
    # The message may have been lost and sent again, by a task that no request has caused.
    with caused_by(run.request_id):
        _execute(run, status_id)


def _execute(run: Run, status_id: str) -> None:
    job = registry.jobs.get(run.job_name)
    if job is None:
        records.finish(run, FAILED, GONE, GONE)
        log.warning("job not there any more", job=run.job_name, status=status_id)
        return
    try:
        with Report(run, service_settings.JOB_HEARTBEAT) as report:
            outcome = _outcome(job, run, report)
            held = report.conclude(outcome)
    except RunLost:
        held = False
    if held:
        log.info("job ended", job=job.name, status=status_id, outcome=outcome.status)
    else:
        log.error("job was given up while it ran", job=job.name, status=status_id)


def time_limit_of(job: Job) -> float:
    """Return the time limit of a run in seconds; 0 means no limit."""
    return service_settings.JOB_TIME_LIMIT if job.time_limit is None else job.time_limit


def _outcome(job: Job, run: Run, report: Report) -> Outcome:
    what = f"job {job.name}"
    try:
        params = decode(run.params)
        arguments = contained(what, lambda: job.parameters.read(params))
        request = JobRequest(
            job.name, params, status_id=run.status_id, attempt=run.attempt, say=report.say
        )

        def body() -> str | None:
            return _as_text(job.body(request, **arguments))

        seconds = time_limit_of(job)
        with child_processes.ended_after(seconds):
            return Outcome(SUCCEEDED, runner.run(what, body, seconds))
    except ServiceError as error:
        return Outcome(FAILED, error.message, error.message)


def _as_text(result: Any) -> str | None:
    """Return the result of a job as the text of its last message."""
    if result is None or isinstance(result, str):
        return result or None
    try:
        return encode_json(encode(result)).decode()
    except (ServiceError, RecursionError):
        return None

"""Recovery of runs whose worker has died or whose message the broker has lost."""

from __future__ import annotations

from typing import Final

from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from functions.jobs import records
from functions.jobs.models import FAILED
from functions.jobs.records import Open
from functions.jobs.runs import time_limit_of
from functions.jobs.start import publish
from functions.runtime.registry import Job, registry

MISSED: Final = 4
"""So many heartbeats are missing before a worker is taken for dead."""
MOST_ATTEMPTS: Final = 5
"""A job with ``restart`` that ends its worker each time is given up then."""
_UNPUBLISHED_AFTER: Final = 15.0  # seconds
_UNCLAIMED_AFTER: Final = 300.0

log = get_logger("jobs")


def retry_stuck() -> None:
    """Fail or retry runs whose worker has died, and publish unclaimed runs again.

    Safe to run concurrently.
    """
    silence = MISSED * service_settings.JOB_HEARTBEAT
    for run in records.silent(silence):
        _retry_or_fail(run, silence)
    for status_id, name in records.unclaimed(_UNPUBLISHED_AFTER, _UNCLAIMED_AFTER):
        job = registry.jobs.get(name)
        if job is not None:
            publish(status_id, job)


def _retry_or_fail(run: Open, silence: float) -> None:
    job = registry.jobs.get(run.job_name)
    if job is not None and job.restart and run.attempt < MOST_ATTEMPTS:
        if records.queue_again(run, silence):
            log.warning("job is run again", job=run.job_name, status=run.status_id)
            publish(run.status_id, job)
        return
    text = _reason(run, job)
    if records.finish(run, FAILED, text, text, silence=silence):
        log.error("job failed", job=run.job_name, status=run.status_id, reason=text)


def _reason(run: Open, job: Job | None) -> str:
    limit = 0 if job is None else time_limit_of(job)
    if limit and run.seconds > limit:
        return f"The job {run.job_name} took longer than {limit:g} seconds."
    return "The worker died."

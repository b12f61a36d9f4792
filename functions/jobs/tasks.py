"""Celery tasks of jobs. Runs use a separate queue, so a long job doesn't delay emails."""

from __future__ import annotations

from typing import Any

from celery import Task, shared_task, signals

from backend.kernel.errors import ServiceError
from backend.kernel.principal import MASTER
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from functions.jobs import records, schedule_rows
from functions.jobs.runs import execute
from functions.jobs.start import RUN_TASK, JobBusy, start
from functions.jobs.stuck_runs import retry_stuck
from objects.database import hold

log = get_logger("jobs")


@shared_task(name=RUN_TASK, ignore_result=True)
def run_job(status_id: str) -> None:
    """Execute a run."""
    execute(status_id)


@shared_task(name=schedule_rows.START_TASK, bind=True, ignore_result=True)
def start_scheduled_job(
    self: Task[Any, Any], job: str, params: dict[str, Any] | None = None
) -> None:
    """Start a job that is due. A repeated tick starts it only once."""
    parameters = params or {}
    once = schedule_rows.once(getattr(self.request, "periodic_task_name", None))
    try:
        start(
            job,
            parameters,
            source="schedule",
            principal=MASTER,
            occasion=once.occasion if once else self.request.id,
        )
    except JobBusy:
        records.note_skipped(job)
        log.warning("schedule skipped: the job is under way", job=job)
    except ServiceError as error:
        records.add_failed(job, parameters, source="schedule", error=error.message)
        log.error("schedule can't start its job", job=job, error=error.message)
    if once is not None:
        schedule_rows.switch_off(once)


@shared_task(name="functions.tend_jobs", ignore_result=True)
def tend_jobs() -> None:
    """Retry or fail runs whose worker or message was lost.

    Those of a restored instance wait while it is held.
    """
    if not hold.is_on():
        retry_stuck()


@shared_task(name="functions.remove_old_job_runs", ignore_result=True)
def remove_old_job_runs() -> None:
    """Delete runs older than ``JOB_STATUS_KEEP`` days; 0 retains them."""
    days = service_settings.JOB_STATUS_KEEP
    removed = records.remove_old(days) if days else 0
    if removed:
        log.info("old job runs removed", rows=removed)


@signals.beat_init.connect
def _synchronise_schedules(**kwargs: Any) -> None:
    schedule_rows.synchronise()

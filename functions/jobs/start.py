"""Start of jobs by requests, schedules, the admin, commands and functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

from django.db import transaction

from backend.kernel.errors import (
    MasterKeyRequired,
    OperationForbidden,
    ScriptFailed,
    ServiceError,
)
from backend.kernel.principal import MASTER, Principal
from backend.kernel.request_context import current
from backend.logs.failures import contained
from backend.logs.setup import get_logger
from backend.tasks import broker
from backend.tasks.broker import BrokerAway
from functions.jobs import records
from functions.jobs.runs import GONE, time_limit_of
from functions.runtime.registry import Job, registry
from functions.runtime.values import decode, encode
from objects.core.values import normalise

Source: TypeAlias = Literal["api", "schedule", "admin", "command", "function"]

RUN_TASK = "functions.run_job"
# Bounds, in seconds, of the grace period after the time limit before the process is killed. It is
# as long as the time limit itself.
_KILL_AFTER_AT_LEAST = 5
_KILL_AFTER_AT_MOST = 30

log = get_logger("jobs")


class JobBusy(ScriptFailed):
    """Another run of the job is queued or running, and the job doesn't allow overlap."""


def start(
    name: str,
    params: Mapping[str, Any],
    *,
    source: Source,
    principal: Principal,
    occasion: str | None = None,
) -> str:
    """Queue a run of a job and return the id of its ``_JobStatus``.

    ``params`` are wire values. The run starts after the current transaction commits. Raises
    ``MasterKeyRequired``, ``OperationForbidden`` for the read-only master key, ``ScriptFailed`` for
    an unknown job and for parameters that its signature doesn't accept, ``JobBusy``. Calls with the
    same ``occasion`` return the same run.
    """
    check_may_start(principal)
    job = checked(name, params)
    status_id = records.add(
        name,
        params,
        source=source,
        exclusive=not job.overlap,
        request_id=current().request_id,
        occasion=occasion,
    )
    if status_id is None:
        existing_id = occasion and records.of_occasion(occasion)
        if existing_id:
            return existing_id
        state = "queued" if records.open_status(name) == "queued" else "running"
        raise JobBusy(f"The job {name} is already {state}.")
    transaction.on_commit(partial(publish, status_id, job))
    return status_id


def start_job(name: str, /, **params: Any) -> str:
    """Queue a run of a job with Python values, as ``start`` does."""
    wire = encode(params, as_field=True)
    return start(name, wire, source="function", principal=MASTER)


def check_may_start(principal: Principal) -> None:
    """Raise ``MasterKeyRequired`` or ``OperationForbidden`` unless the caller may start jobs."""
    if not principal.has_master_key:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to run a job.")


def checked(name: str, params: Mapping[str, Any]) -> Job:
    """Return the job after checking its wire parameters.

    Raises ``ScriptFailed``, and value errors for parameters that can't be stored.
    """
    job = registry.jobs.get(name)
    if job is None:
        raise ScriptFailed(GONE)
    normalise(dict(params), "params")
    contained(f"job {name}", lambda: job.parameters.read(decode(dict(params))))
    return job


def publish(status_id: str, job: Job) -> None:
    """Publish a queued run to workers. Without a broker ``stuck_runs`` publishes it later."""
    seconds = time_limit_of(job)
    more = min(max(seconds, _KILL_AFTER_AT_LEAST), _KILL_AFTER_AT_MOST)
    limit = seconds + more if seconds else None
    try:
        broker.send(RUN_TASK, status_id, time_limit=limit, queue="jobs")
        records.note_published(status_id)
    except (BrokerAway, ServiceError) as error:
        log.error("workers not told of a job yet", job=job.name, status=status_id, exc_info=error)

"""Starting jobs: the one way in for requests, schedules, the admin, commands and functions."""

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
# Seconds over the time limit, for code that can't be stopped otherwise: as long again, but this.
_KILL_AFTER_AT_LEAST = 5
_KILL_AFTER_AT_MOST = 30

log = get_logger("jobs")


class JobBusy(ScriptFailed):
    """Another run of the job is queued or under way, and the job allows none beside it."""


def start(
    name: str,
    params: Mapping[str, Any],
    *,
    source: Source,
    principal: Principal,
    occasion: str | None = None,
) -> str:
    """Queue a run of a job; the id of its ``_JobStatus``. ``params`` are wire values.

    It is begun when the transaction under way is committed. Raises ``MasterKeyRequired``,
    ``OperationForbidden`` for the read-only master key, ``ScriptFailed`` for a job that isn't
    there and for parameters that its signature doesn't take, ``JobBusy``. Starting twice at one
    ``occasion`` gives the same run.
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
        known = occasion and records.of_occasion(occasion)
        if known:
            return known
        state = "queued" if records.open_status(name) == "queued" else "running"
        raise JobBusy(f"The job {name} is already {state}.")
    transaction.on_commit(partial(publish, status_id, job))
    return status_id


def start_job(name: str, /, **params: Any) -> str:
    """Queue a run of a job from other server code, with Python values; as ``start``."""
    wire = encode(params, as_field=True)
    return start(name, wire, source="function", principal=MASTER)


def check_may_start(principal: Principal) -> None:
    """Raise ``MasterKeyRequired`` or ``OperationForbidden`` unless the caller may start jobs."""
    if not principal.is_master:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to run a job.")


def checked(name: str, params: Mapping[str, Any]) -> Job:
    """The job, if it takes these wire parameters; raises ``ScriptFailed`` and, for what can't be
    stored, the errors of values."""
    job = registry.jobs.get(name)
    if job is None:
        raise ScriptFailed(GONE)
    normalise(dict(params), "params")
    job.parameters.read(decode(dict(params)))
    return job


def publish(status_id: str, job: Job) -> None:
    """Tell the workers of a queued run. Without a broker they are told later, by ``tending``."""
    seconds = time_limit_of(job)
    more = min(max(seconds, _KILL_AFTER_AT_LEAST), _KILL_AFTER_AT_MOST)
    limit = seconds + more if seconds else None
    try:
        broker.send(RUN_TASK, status_id, time_limit=limit, queue="jobs")
        records.note_published(status_id)
    except (BrokerAway, ServiceError) as error:
        log.error("workers not told of a job yet", job=job.name, status=status_id, exc_info=error)

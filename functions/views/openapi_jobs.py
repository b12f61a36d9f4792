"""The part of jobs in the API document."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Operation, Part, answer, body, contribute, ref

Json = dict[str, Any]

_TAG = "Jobs"
_MASTER = Requires.MASTER_KEY
_TIME: Json = {"type": "string", "format": "date-time"}
_NOTHING: Json = {"type": "object", "maxProperties": 0}

_FIELDS: Json = {
    "jobName": {"type": "string"},
    "description": {"type": ["string", "null"], "maxLength": 1000},
    "params": {
        "type": ["object", "string", "null"],
        "description": "The job's parameters; also as the text of a JSON object.",
    },
    "schedule": {
        "type": ["string", "number", "null"],
        "description": "Seconds between runs, a crontab line in UTC (`0 3 * * *`), or a time;"
        " in place of the four fields that follow.",
    },
    "startAfter": {"description": "When it runs first: a time, as text or as a Date."},
    "repeatMinutes": {"type": ["integer", "null"], "minimum": 0, "maximum": 525_600},
    "timeOfDay": {
        "type": ["string", "null"],
        "description": "The time, in UTC, that repetitions are counted from: `03:30`.",
    },
    "daysOfWeek": {
        "type": ["array", "null"],
        "items": {"enum": [0, 1]},
        "minItems": 7,
        "maxItems": 7,
        "description": "On which days, from Sunday on.",
    },
    "enabled": {"type": "boolean", "default": True},
}
_SCHEMAS: dict[str, Json] = {
    "JobSchedule": {
        "type": "object",
        "description": "A schedule as it is; `lastRun` is in milliseconds since 1970.",
        "properties": {
            "objectId": {"type": "string"},
            "createdAt": _TIME,
            "updatedAt": _TIME,
            "jobName": {"type": "string"},
            "description": {"type": "string"},
            "params": {"type": "string"},
            "schedule": {"type": "string"},
            "startAfter": _TIME,
            "repeatMinutes": {"type": "integer"},
            "timeOfDay": {"type": "string"},
            "daysOfWeek": {"type": "array", "items": {"type": "integer"}},
            "lastRun": {"type": "integer"},
            "enabled": {"type": "boolean"},
        },
        "required": ["objectId", "jobName", "params", "schedule", "enabled"],
    },
    "JobScheduleForm": {
        "type": "object",
        "properties": {"job_schedule": {"type": "object", "properties": _FIELDS}},
        "required": ["job_schedule"],
    },
    "JobNames": {
        "type": "object",
        "properties": {
            "in_use": {"type": "array", "items": {"type": "string"}},
            "jobs": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["in_use", "jobs"],
    },
}


def contribute_jobs() -> None:
    """Describe the routes of ``functions.views.jobs``."""
    contribute(_jobs, schemas=_SCHEMAS)


def _jobs(principal: Principal) -> Offer:
    return Offer(None, _part)


def _part(names: Names) -> Part:
    return Part({**_starting(), **_schedules()})


def _started() -> Json:
    return {
        "200": {
            **answer("The run is queued.", _NOTHING),
            "headers": {
                "X-Svc-Job-Status-Id": {
                    "description": "The id of the run's object of `_JobStatus`.",
                    "schema": {"type": "string"},
                }
            },
        }
    }


def _starting() -> Json:
    return {
        "/jobs/{name}": {
            "post": Operation(
                "startJob",
                _TAG,
                "Start a job",
                _started(),
                requires=_MASTER,
                description="The body has the job's parameters. The answer doesn't wait for it.",
                body=body({"type": "object"}, required=False),
            )
        },
        "/jobs": {
            "post": Operation(
                "startJobByName",
                _TAG,
                "Start a job, its name beside its parameters",
                _started(),
                requires=_MASTER,
                body=body(
                    {
                        "type": "object",
                        "properties": {"jobName": {"type": "string"}},
                        "required": ["jobName"],
                    }
                ),
            )
        },
    }


def _schedules() -> Json:
    created: Json = {"objectId": {"type": "string"}, "createdAt": _TIME}
    return {
        "/cloud_code/jobs": {
            "get": Operation(
                "listJobSchedules",
                _TAG,
                "The schedules of jobs",
                {"200": answer("All of them.", {"type": "array", "items": ref("JobSchedule")})},
                requires=_MASTER,
            ),
            "post": Operation(
                "addJobSchedule",
                _TAG,
                "Make a schedule for a job",
                {
                    "201": answer(
                        "It is made.",
                        {"type": "object", "properties": created, "required": [*created]},
                    )
                },
                requires=_MASTER,
                body=body(ref("JobScheduleForm")),
            ),
        },
        "/cloud_code/jobs/data": {
            "get": Operation(
                "listJobs",
                _TAG,
                "Which jobs there are, and which have schedules",
                {"200": answer("Their names.", ref("JobNames"))},
                requires=_MASTER,
            )
        },
        "/cloud_code/jobs/{name}": {
            "put": Operation(
                "changeJobSchedule",
                _TAG,
                "Change a schedule, by its id or its job's name",
                {
                    "200": answer(
                        "It is changed.",
                        {
                            "type": "object",
                            "properties": {"updatedAt": _TIME},
                            "required": ["updatedAt"],
                        },
                    )
                },
                requires=_MASTER,
                body=body(ref("JobScheduleForm")),
            ),
            "delete": Operation(
                "removeJobSchedule",
                _TAG,
                "Remove a schedule; one that code has made is switched off",
                {"200": answer("It is gone.", _NOTHING)},
                requires=_MASTER,
            ),
        },
    }

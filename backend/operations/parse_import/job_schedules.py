"""Schedules of the Parse Server's jobs, stored disabled: its jobs may still run there."""

from __future__ import annotations

from collections.abc import Sequence

from backend.kernel.errors import ServiceError
from backend.operations.parse_import.problems import Report
from functions.jobs import parse_schedules
from objects.rules import TransferredObject
from objects.service.bulk import NOT_ABOUT_THE_OBJECT


def store(schedules: Sequence[TransferredObject], report: Report) -> int:
    """Store schedules; return how many were refused.

    Schedules of jobs that aren't registered are stored as well, and reported. Raises the errors in
    ``NOT_ABOUT_THE_OBJECT``.
    """
    refused = 0
    for schedule in schedules:
        job = schedule.fields.get("jobName")
        place = f"schedule {schedule.object_id} of job {job}"
        try:
            is_registered = parse_schedules.transfer(
                schedule.object_id, schedule.fields, schedule.updated_at
            )
        except NOT_ABOUT_THE_OBJECT:
            raise
        except ServiceError as error:
            refused += 1
            report(place, str(error))
        else:
            if not is_registered:
                report(place, "stored, but the job isn't here: deploy it before you enable this")
    return refused

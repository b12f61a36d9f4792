"""``_JobStatus`` as a class: readable with the master key, written only by the service."""

from __future__ import annotations

from collections.abc import Mapping

from backend.kernel.errors import OperationForbidden
from functions.jobs.models import JobStatus
from objects.core.names import ClassName, FieldName, Subject
from objects.core.schema.definition import SYSTEM_FIELDS, FieldType
from objects.definitions import registry
from objects.rules import Change, Rules, set_rules

_STATUS = ClassName(Subject("_JobStatus"))
_SCHEDULE = ClassName(Subject("_JobSchedule"))

_OWN_FIELDS: Mapping[FieldName, FieldType] = {
    FieldName("error"): FieldType("String"),
    FieldName("attempt"): FieldType("Number"),
    FieldName("skipped"): FieldType("Number"),
    FieldName("startedAt"): FieldType("Date"),
    FieldName("heartbeatAt"): FieldType("Date"),
    FieldName("requestId"): FieldType("String"),
}
_COLUMNS = {
    "jobName": "job_name",
    "startedAt": "started_at",
    "heartbeatAt": "heartbeat_at",
    "finishedAt": "finished_at",
    "requestId": "request_id",
}


class _ServiceOnly(Rules[Change]):
    """Rules that reject all writes through the object service."""

    def __init__(self, text: str) -> None:
        self._text = text

    def before_create(self, change: Change) -> None:
        raise OperationForbidden(self._text)

    def before_update(self, change: Change) -> None:
        raise OperationForbidden(self._text)

    def before_delete(self, change: Change) -> None:
        raise OperationForbidden(self._text)

    def after_purge(self) -> None:
        raise OperationForbidden(self._text)


def offer_classes() -> None:
    """Register ``_JobStatus`` as a class."""
    fields = {**SYSTEM_FIELDS[_STATUS], **_OWN_FIELDS}
    registry.model_class(_STATUS, JobStatus, fields, columns=_COLUMNS)
    set_rules(_STATUS, _ServiceOnly("Objects of _JobStatus are written by the service alone."))
    set_rules(_SCHEDULE, _ServiceOnly("Schedules of jobs are kept at /cloud_code/jobs."))

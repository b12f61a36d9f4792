"""``/jobs``: start jobs. ``/cloud_code/jobs``: their schedules, for Parse Dashboard. All of it is
for the master key; the read-only one may look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from backend.http.bodies.parsers import decoded_parameters
from backend.http.call import Call
from backend.http.headers import status_id_headers
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import InvalidValue
from backend.openapi import DateTime, EmptyObject, answer, describes, optional
from functions.jobs import parse_schedules
from functions.jobs.start import check_may_start, start

_STARTED: Final = answer(
    "The run is queued.",
    EmptyObject,
    headers={
        "X-Svc-Job-Status-Id": {
            "description": "The id of the run's object of `_JobStatus`.",
            "schema": {"type": "string"},
        }
    },
)
# What Parse Dashboard sends to run a job: the parameters are inside.
_DASHBOARD = {"description", "input", "when"}


class JobSchedule(TypedDict):
    """A schedule as it is; `lastRun` is in milliseconds since 1970."""

    objectId: str
    createdAt: NotRequired[DateTime]
    updatedAt: NotRequired[DateTime]
    jobName: str
    description: NotRequired[str]
    params: str
    schedule: str
    startAfter: NotRequired[DateTime]
    repeatMinutes: NotRequired[int]
    timeOfDay: NotRequired[str]
    daysOfWeek: NotRequired[list[int]]
    lastRun: NotRequired[int]
    enabled: bool


_Days: TypeAlias = Annotated[list[Literal[0, 1]], Meta(min_length=7, max_length=7)]


class _ScheduleFields(TypedDict, total=False):
    jobName: str
    description: Annotated[str, Meta(max_length=1000)] | None
    params: Annotated[
        dict[str, Any] | str | None,
        Meta(description="The job's parameters; also as the text of a JSON object."),
    ]
    schedule: Annotated[
        str | float | None,
        Meta(
            description="Seconds between runs, a crontab line in UTC (`0 3 * * *`), or a time;"
            " in place of the four fields that follow."
        ),
    ]
    startAfter: Annotated[Any, Meta(description="The time of the first run, as text or as a Date.")]
    repeatMinutes: Annotated[int, Meta(ge=0, le=525_600)] | None
    timeOfDay: Annotated[
        str | None,
        Meta(description="The time, in UTC, that repetitions are counted from: `03:30`."),
    ]
    daysOfWeek: Annotated[_Days | None, Meta(description="The days it runs on, from Sunday on.")]
    enabled: Annotated[bool, Meta(extra_json_schema={"default": True})]


class JobScheduleForm(TypedDict):
    job_schedule: _ScheduleFields


class JobNames(TypedDict):
    in_use: list[str]
    jobs: list[str]


class _NamedJob(TypedDict):
    jobName: str


class _CreatedSchedule(TypedDict):
    objectId: str
    createdAt: DateTime


class _UpdatedSchedule(TypedDict):
    updatedAt: DateTime


class JobView(ServiceView):
    """Start a job, by its name in the path."""

    tag = "Jobs"
    requires = Requires.MASTER_KEY

    @describes(
        "startJob",
        "Start a job",
        request=optional(dict[str, Any]),
        response=_STARTED,
        description="The body has the job's parameters. The response doesn't wait for the run.",
    )
    def post(self, call: Call, name: str) -> Answer:
        return _started(call, name, {**decoded_parameters(call.params), **call.body})


class JobsView(ServiceView):
    """Start a job, by its name in the body."""

    tag = "Jobs"
    requires = Requires.MASTER_KEY

    @describes(
        "startJobByName",
        "Start a job, its name beside its parameters",
        request=_NamedJob,
        response=_STARTED,
    )
    def post(self, call: Call) -> Answer:
        check_may_start(call.principal)
        params = {**decoded_parameters(call.params), **call.body}
        name = params.pop("jobName", None)
        if not isinstance(name, str):
            raise InvalidValue("jobName: expected the name of a job")
        if params.keys() == _DASHBOARD and isinstance(params["input"], dict):
            params = params["input"]
        return _started(call, name, params)


def _started(call: Call, name: str, params: Mapping[str, Any]) -> Answer:
    status_id = start(name, params, source="api", principal=call.principal)
    return Answer({}, headers=status_id_headers("Job", status_id))


class JobSchedulesView(ServiceView):
    """The schedules of jobs."""

    tag = "Jobs"
    requires = Requires.MASTER_KEY

    @describes(
        "listJobSchedules",
        "The schedules of jobs",
        response=answer("All schedules.", list[JobSchedule]),
    )
    def get(self, call: Call) -> Answer:
        return Answer(parse_schedules.all_schedules())

    @describes(
        "addJobSchedule",
        "Create a schedule for a job",
        request=JobScheduleForm,
        response=answer("It is created.", _CreatedSchedule, 201),
    )
    def post(self, call: Call) -> Answer:
        made = parse_schedules.create(call.principal, call.body)
        return Answer({"objectId": made["objectId"], "createdAt": made["createdAt"]}, status=201)


class JobScheduleView(ServiceView):
    """One schedule, by its id or by the name of the job whose code has made it."""

    tag = "Jobs"
    requires = Requires.MASTER_KEY

    @describes(
        "changeJobSchedule",
        "Change a schedule, by its id or its job's name",
        request=JobScheduleForm,
        response=answer("The schedule after the change.", _UpdatedSchedule),
    )
    def put(self, call: Call, name: str) -> Answer:
        changed = parse_schedules.update(call.principal, name, call.body)
        return Answer({"updatedAt": changed["updatedAt"]})

    @describes(
        "removeJobSchedule",
        "Remove a schedule; one that code has created is switched off",
        response=answer("The schedule was removed or switched off.", EmptyObject),
    )
    def delete(self, call: Call, name: str) -> Answer:
        parse_schedules.delete(call.principal, name)
        return Answer({})


class JobsDataView(ServiceView):
    """Which jobs there are, and which have schedules."""

    tag = "Jobs"
    requires = Requires.MASTER_KEY

    @describes(
        "listJobs",
        "The jobs that exist, and those that have schedules",
        response=answer("The names of all jobs, and of those with schedules.", JobNames),
    )
    def get(self, call: Call) -> Answer:
        return Answer(parse_schedules.data())

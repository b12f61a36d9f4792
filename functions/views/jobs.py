"""``/jobs``: start jobs. ``/cloud_code/jobs``: their schedules, for Parse Dashboard. All of it is
for the master key; the read-only one may look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.http.call import Call
from backend.http.parsers import decoded_parameters
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import InvalidValue
from backend.settings.conf import service_settings
from functions.jobs import parse_schedules
from functions.jobs.start import check_may_start, start

_STATUS_ID = "Job-Status-Id"
# What Parse Dashboard sends to run a job: the parameters are inside.
_DASHBOARD = {"description", "input", "when"}


class JobView(ServiceView):
    """Start a job, by its name in the path."""

    requires = Requires.MASTER_KEY

    def post(self, call: Call, name: str) -> Answer:
        return _started(call, name, {**decoded_parameters(call.params), **call.body})


class JobsView(ServiceView):
    """Start a job, by its name in the body."""

    requires = Requires.MASTER_KEY

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
    headers = {f"X-Svc-{_STATUS_ID}": status_id}
    if service_settings.PARSE_HEADERS:
        headers[f"X-Parse-{_STATUS_ID}"] = status_id
    # Parse's JavaScript SDK reads only headers that are exposed, also where there are no origins.
    headers["Access-Control-Expose-Headers"] = ", ".join(headers)
    return Answer({}, headers=headers)


class JobSchedulesView(ServiceView):
    """The schedules of jobs."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call) -> Answer:
        return Answer(parse_schedules.all_schedules())

    def post(self, call: Call) -> Answer:
        made = parse_schedules.create(call.principal, call.body)
        return Answer({"objectId": made["objectId"], "createdAt": made["createdAt"]}, status=201)


class JobScheduleView(ServiceView):
    """One schedule, by its id or by the name of the job whose code has made it."""

    requires = Requires.MASTER_KEY

    def put(self, call: Call, name: str) -> Answer:
        changed = parse_schedules.update(call.principal, name, call.body)
        return Answer({"updatedAt": changed["updatedAt"]})

    def delete(self, call: Call, name: str) -> Answer:
        parse_schedules.delete(call.principal, name)
        return Answer({})


class JobsDataView(ServiceView):
    """Which jobs there are, and which have schedules."""

    requires = Requires.MASTER_KEY

    def get(self, call: Call) -> Answer:
        return Answer(parse_schedules.data())

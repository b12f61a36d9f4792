"""Jobs in the admin: registered jobs with a form to run them, runs, and schedule_rows."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from backend.settings.timetables import Every, Once, Timing, parse
from backend.site.model_admin import ModelAdmin, ReadOnlyModelAdmin, page, render
from backend.site.staff import principal_for, require
from functions.jobs import schedule_rows
from functions.jobs.models import FAILED, QUEUED, RUNNING, SUCCEEDED, JobSchedule, JobStatus
from functions.jobs.start import checked, start
from functions.runtime.registry import registry
from objects.core.names import new_object_id

RUN: Final = "functions.add_jobstatus"
VIEW: Final = "functions.view_jobstatus"
_SHOWN: Final = 120  # characters of a message in the list

log = get_logger("admin")

# Their rows are made for a schedule, and mean nothing by themselves.
admin.site.unregister(
    (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)
)


@page(
    "jobs/",
    name="jobs",
    permission=VIEW,
    title="Jobs",
    section="Server code",
    icon="work_history",
    position=30,
)
def jobs(request: HttpRequest) -> HttpResponseBase:
    """Show registered jobs with their schedules and last runs.

    Staff with the permission get a form to run each.
    """
    complaint, job_name, text = "", request.POST.get("job", ""), request.POST.get("params", "")
    if request.method == "POST":
        require(request, RUN)
        try:
            status_id = _run(request, job_name, text)
            return HttpResponseRedirect(
                reverse("admin:functions_jobstatus_change", args=[status_id])
            )
        except ServiceError as error:
            complaint = error.message
    return render(
        request,
        "admin/jobs/jobs.html",
        "Jobs",
        jobs=[_described(name, rows) for name, rows in schedule_rows.with_jobs()],
        may_run=request.user.has_perm(RUN),
        may_see_schedules=request.user.has_perm("functions.view_jobschedule"),
        may_add_schedules=request.user.has_perm("functions.add_jobschedule"),
        asked=job_name,
        given=text,
        complaint=complaint,
    )


def _run(request: HttpRequest, name: str, text: str) -> str:
    principal = principal_for(request.user, RUN)
    status_id = start(name, _params(text), source="admin", principal=principal)
    log.info("job started by staff", job=name, staff=request.user.get_username())
    messages.success(request, f"{name} is queued.")
    return status_id


def _params(text: str) -> dict[str, Any]:
    """Raises ``ServiceError`` for what is no JSON object."""
    try:
        parsed = msgspec.json.decode(text.strip() or "{}")
    except (msgspec.DecodeError, RecursionError):
        raise ServiceError("The parameters are no JSON.") from None
    if not isinstance(parsed, dict):
        raise ServiceError("The parameters are a JSON object, by their names.")
    return parsed


def _in_words(timing: Timing | None) -> str:
    if timing is None:
        return "at no time"
    if isinstance(timing, Every):
        return f"every {timing} seconds"
    return f"once, at {timing}" if isinstance(timing, Once) else f"at {timing}"


def _described(name: str, rows: list[PeriodicTask]) -> dict[str, Any]:
    job = registry.jobs[name]
    parameters = [
        {
            "name": parameter.name,
            "is_required": parameter.is_required,
            "description": parameter.description,
        }
        for parameter in job.parameters
    ]
    return {
        "name": name,
        "description": job.description,
        "place": job.place,
        "parameters": parameters,
        "schedules": [
            {
                "id": row.pk,
                "timing": _in_words(schedule_rows.timing_of(row)),
                "enabled": row.enabled,
            }
            for row in rows
        ],
        "last": JobStatus._default_manager.filter(job_name=name).first(),
    }


@admin.register(JobStatus)
class JobStatusAdmin(ReadOnlyModelAdmin):
    """The runs of jobs, the latest first."""

    section = "Server code"
    icon = "history"
    position = 31
    list_display = (
        *("job_name", "shown_status", "source", "shown_message", "created_at", "finished_at"),
    )
    list_filter = ("status", "source")
    search_fields = ("job_name__exact", "object_id__exact", "request_id__exact")
    search_help_text = "a job's name, the id of a run or of a request"
    fields_shown = (
        *("object_id", "job_name", "status", "source", "message", "error", "params"),
        *("created_at", "started_at", "heartbeat_at", "finished_at", "attempt", "skipped"),
        "request_id",
    )
    readonly_fields = fields_shown

    def get_fields(self, request: HttpRequest, obj: JobStatus | None = None) -> Any:
        return self.fields_shown

    @display(
        description="status",
        label={QUEUED: "warning", RUNNING: "info", SUCCEEDED: "success", FAILED: "danger"},
    )
    def shown_status(self, run: JobStatus) -> str:
        return run.status or ""

    @admin.display(description="message")
    def shown_message(self, run: JobStatus) -> str:
        text = run.message or ""
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class ScheduleForm(forms.ModelForm):
    """A schedule: which job, with which parameters, when."""

    job = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    params = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        label="Parameters",
        help_text="A JSON object, by their names.",
    )
    schedule = forms.CharField(
        max_length=600,
        widget=UnfoldAdminTextInputWidget,
        help_text="Seconds between runs (300), a crontab line (0 3 * * *, in UTC, or with a time"
        " zone after it), or one time (2030-01-01T12:00:00Z).",
    )
    enabled = forms.BooleanField(
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Whether the job runs at these times. Otherwise the schedule is paused.",
    )
    description = forms.CharField(
        required=False, max_length=1000, widget=UnfoldAdminTextInputWidget
    )

    class Meta:
        model = JobSchedule
        fields = ("description", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row = self.instance
        names = sorted(registry.jobs)
        if row.pk is not None:
            self.initial["job"] = schedule_rows.job_of(row)
            self.initial["params"] = msgspec.json.encode(schedule_rows.params_of(row)).decode()
            self.initial["schedule"] = str(schedule_rows.timing_of(row) or "")
            if schedule_rows.is_of_code(row):
                names = [self.initial["job"]]
        if "job" in self.fields:
            choice = self.fields["job"]
            assert isinstance(choice, forms.ChoiceField)
            choice.choices = [(name, name) for name in names]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        try:
            parse(data.get("schedule", ""))
        except ValueError as error:
            if "schedule" in data:
                self.add_error("schedule", str(error))
        try:
            params = _params(data.get("params", ""))
            if "job" in data:
                checked(data["job"], params)
        except ServiceError as error:
            self.add_error("params", error.message)
        if not self.errors:
            # Now: django-celery-beat's own checks, which come next, are about the row.
            self._put(self.instance, data)
        return data

    def validate_unique(self) -> None:
        # Of a row that wasn't put together there is nothing to say.
        if not self.errors:
            super().validate_unique()

    def _put(self, row: PeriodicTask, data: dict[str, Any]) -> None:
        schedule_rows.set_job(row, data["job"], _params(data["params"]))
        if row.pk is None:
            row.name = f"{data['job']} {new_object_id()}"
        if row.pk is None or "schedule" in self.changed_data:
            schedule_rows.set_timing(row, parse(data["schedule"]))
            row.start_time = None


@admin.register(JobSchedule)
class JobScheduleAdmin(ModelAdmin):
    """The schedules of jobs. The rows of beat that are about other tasks aren't shown."""

    section = "Server code"
    icon = "schedule"
    position = 32
    form = ScheduleForm
    fields = ("job", "params", "schedule", "enabled", "description")
    list_display = ("job", "timing", "enabled", "last_run_at", "description")
    list_display_links = ("job",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> Any:
        schedules_of_jobs = JobSchedule._default_manager.filter(
            task=schedule_rows.START_TASK
        ).order_by("id")
        return schedules_of_jobs.select_related("interval", "crontab", "clocked")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The code would make it again: it can be switched off.
        if obj is not None and schedule_rows.is_of_code(obj):
            return False
        return super().has_delete_permission(request, obj)

    @admin.display(description="job")
    def job(self, row: PeriodicTask) -> str:
        return schedule_rows.job_of(row) or row.name

    @admin.display(description="schedule")
    def timing(self, row: PeriodicTask) -> str:
        text = _in_words(schedule_rows.timing_of(row))
        return f"{text} (the job is gone)" if schedule_rows.is_gone(row) else text

"""Jobs in the admin: who sees them, who runs them, who changes their schedule_rows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django_celery_beat.models import PeriodicTask

from functions import JobRequest, job
from functions.jobs import records, schedule_rows
from functions.jobs.models import JobStatus
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

JOBS = "/admin/jobs/"
RUNS = "/admin/functions/jobstatus/"
SCHEDULES = "/admin/functions/jobschedule/"


@pytest.fixture(autouse=True)
def report() -> None:
    @job(schedule="0 3 * * *")
    def report(request: JobRequest, days: int = 1) -> None:
        """Sum up <days>."""

    schedule_rows.synchronise()


def row() -> PeriodicTask:
    return PeriodicTask.objects.get(name="job report")


def runs() -> list[JobStatus]:
    return list(JobStatus._default_manager.all())


def form(**fields: Any) -> dict[str, Any]:
    return {
        "job": "report",
        "params": "{}",
        "schedule": "0 3 * * *",
        "enabled": "on",
        "description": "",
    } | fields


def test_jobs_are_shown_with_schedules_and_last_runs() -> None:
    made = records.add_failed("report", {}, source="schedule", error="No <paper>.")
    page = logged_in("Viewers").get(JOBS).content.decode()
    assert "Sum up &lt;days&gt;." in page
    assert "0 3 * * *" in page
    assert "No &lt;paper&gt;." in page
    assert f"{RUNS}{made}/change/" in page


def test_administrators_run_a_job() -> None:
    client = logged_in("Administrators")
    answer = client.post(JOBS, {"job": "report", "params": '{"days": 3}'}, follow=True)
    (run,) = runs()
    assert (run.source, run.params, run.status) == ("admin", {"days": 3}, "queued")
    assert answer.redirect_chain[-1][0] == f"{RUNS}{run.object_id}/change/"
    assert "report is queued." in answer.content.decode()


@pytest.mark.parametrize("group", ["Viewers", "Editors"])
def test_others_see_no_button_and_are_refused(group: str) -> None:
    client = logged_in(group)
    assert "Run report" not in client.get(JOBS).content.decode()
    assert client.post(JOBS, {"job": "report"}).status_code == 403
    assert client.post(f"{SCHEDULES}add/", form()).status_code == 403
    assert client.post(f"{SCHEDULES}{row().pk}/change/", form(schedule="60")).status_code == 403
    assert runs() == []
    assert str(schedule_rows.timing_of(row())) == "0 3 * * *"


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"job": "report", "params": "{"}, "are no JSON"),
        ({"job": "report", "params": "[1]"}, "a JSON object"),
        ({"job": "report", "params": '{"days": "x"}'}, "days"),
        ({"job": "nobody"}, "Invalid job."),
        ({}, "Invalid job."),
    ],
)
def test_what_is_wrong_is_said_on_the_page(sent: dict[str, str], text: str) -> None:
    answer = logged_in("Administrators").post(JOBS, sent)
    assert answer.status_code == 200
    assert text in answer.content.decode()
    assert runs() == []


def test_runs_are_looked_at_and_never_changed() -> None:
    client = logged_in()
    made = records.add_failed("report", {"days": 2}, source="api", error="No paper.")
    assert "No paper." in client.get(RUNS).content.decode()
    assert client.get(f"{RUNS}?status=failed&q=report").status_code == 200
    page = client.get(f"{RUNS}{made}/change/").content.decode()
    assert re.search(r"days.*2", page)
    assert client.get(f"{RUNS}add/").status_code == 403
    assert client.post(f"{RUNS}{made}/change/", {"status": "succeeded"}).status_code == 403
    assert client.post(f"{RUNS}{made}/delete/", {"post": "yes"}).status_code == 403


def test_other_tasks_of_beat_are_not_among_the_schedules() -> None:
    other = PeriodicTask(name="not-a-job", task="functions.tend_jobs")
    schedule_rows.set_timing(other, schedule_rows.parse("60"))
    other.save()
    client = logged_in("Administrators")
    page = client.get(SCHEDULES).content.decode()
    assert "report" in page
    assert "not-a-job" not in page
    assert f"{SCHEDULES}{other.pk}/" not in page
    assert client.get(f"{SCHEDULES}{other.pk}/change/").status_code == 302
    assert client.get("/admin/django_celery_beat/periodictask/").status_code == 404


def test_a_schedule_is_changed_and_stays_as_staff_have_it() -> None:
    client = logged_in("Administrators")
    page = client.get(f"{SCHEDULES}{row().pk}/change/").content.decode()
    assert 'value="0 3 * * *"' in page
    sent = form(schedule="30 4 * * * Europe/Berlin", params='{"days": 7}')
    sent.pop("enabled")
    assert client.post(f"{SCHEDULES}{row().pk}/change/", sent).status_code == 302
    schedule_rows.synchronise()
    assert str(schedule_rows.timing_of(row())) == "30 4 * * * Europe/Berlin"
    assert (schedule_rows.params_of(row()), row().enabled) == ({"days": 7}, False)


def test_a_schedule_is_added_and_removed() -> None:
    client = logged_in("Administrators")
    assert client.post(f"{SCHEDULES}add/", form(schedule="90")).status_code == 302
    added = PeriodicTask.objects.exclude(name="job report").get(task=schedule_rows.START_TASK)
    assert str(schedule_rows.timing_of(added)) == "90"
    assert client.post(f"{SCHEDULES}{added.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not PeriodicTask.objects.filter(pk=added.pk).exists()
    # The code would make this one again.
    assert client.post(f"{SCHEDULES}{row().pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"schedule": "61 * * * *"}, "no crontab line"),
        ({"schedule": ""}, "required"),
        ({"params": '{"days": "x"}'}, "days"),
        ({"params": "x"}, "are no JSON"),
        ({"job": "nobody"}, "valid choice"),
    ],
)
def test_a_wrong_schedule_is_refused(fields: dict[str, str], text: str) -> None:
    answer = logged_in("Administrators").post(f"{SCHEDULES}add/", form(**fields))
    assert answer.status_code == 200
    assert text in answer.content.decode()
    assert PeriodicTask.objects.filter(task=schedule_rows.START_TASK).count() == 1

"""``manage.py run_job`` and ``manage.py jobs``."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from functions import JobRequest, job
from functions.jobs import records, schedule_rows
from functions.jobs.models import JobStatus

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def report() -> None:
    @job(schedule="0 3 * * *")
    def report(request: JobRequest, days: int, note: str = "") -> None: ...


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def test_a_run_is_queued_with_parameters_as_json_or_text() -> None:
    made = run("run_job", "report", "--param", "days=3", "--param", "note=by hand")
    response = JobStatus._default_manager.get(object_id=made)
    assert (response.status, response.source) == ("queued", "command")
    assert response.params == {"days": 3, "note": "by hand"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nobody",), "Invalid job."),
        (("report",), "days"),
        (("report", "--param", "days"), "NAME=VALUE"),
        (("report", "--param", "days=soon"), "days"),
    ],
)
def test_what_is_wrong_is_said(arguments: Any, text: str) -> None:
    with pytest.raises(CommandError, match=text):
        run("run_job", *arguments)


def test_jobs_are_listed_with_schedules_and_last_runs() -> None:
    assert "report  [no schedule]  never run" in run("jobs")
    schedule_rows.synchronise()
    made = run("run_job", "report", "--param", "days=3")
    held = records.claim(made)
    assert held is not None
    records.finish(held, "failed", "No paper.", "No paper.")
    (shown,) = [line for line in run("jobs").splitlines() if line.startswith("report")]
    assert "[0 3 * * *]" in shown
    assert shown.endswith("failed: No paper.")
    (loaded,) = [item for item in json.loads(run("jobs", "--json")) if item["name"] == "report"]
    assert loaded["schedules"] == [{"schedule": "0 3 * * *", "enabled": True}]
    assert loaded["lastRun"]["objectId"] == made

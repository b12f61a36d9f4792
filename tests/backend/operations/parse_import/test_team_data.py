"""What the team made in Parse Dashboard is imported: push audiences and schedules of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from functions import JobRequest, job
from functions.runtime.registry import registry
from tests.backend.operations.parse_import.exported import (
    SCHEMAS,
    TIMES,
    problems,
    table_row,
)
from tests.rest import Api

QUERY = {"deviceType": "ios", "channels": {"$in": ['the "best"']}}
AUDIENCE = {"name": "iPhones", "query": json.dumps(QUERY)}
NIGHTLY = {
    "jobName": "report",
    "description": "At night",
    "params": '{"days": 2}',
    "startAfter": "2020-01-01T00:00:00.000Z",
    "daysOfWeek": ["1", "0", "1", "1", "1", "1", "1"],
    "timeOfDay": "03:30:00.000Z",
    "repeatMinutes": 1440.0,
}


@pytest.fixture
def report(db: None) -> Any:
    """The job that the schedule names."""

    @job()
    def report(request: JobRequest, days: int = 1) -> None: ...

    yield
    registry.jobs.pop("report", None)


def schedules(master: Api) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = master.get("/cloud_code/jobs").json
    return results


@pytest.mark.parametrize(
    "row",
    [
        {
            "_id": "audience1",
            **TIMES,
            **AUDIENCE,
            "_last_used": {"$date": "2022-01-01T00:00:00Z"},
            "times_used": {"$numberInt": "2"},
        },
        table_row("audience1", **AUDIENCE, lastUsed="2022-01-01T01:00:00+01:00", timesUsed=2),
    ],
    ids=["MongoDB", "PostgreSQL"],
)
def test_audiences_keep_their_ids_times_and_uses(
    master: Api, export: Callable[..., Path], run: Callable[..., str], row: dict[str, Any]
) -> None:
    out = run(export(_Audience=[row]))
    assert "Everything at the source is here." in out
    (audience,) = master.get("/push_audiences").json["results"]
    assert (audience["objectId"], audience["createdAt"]) == (
        "audience1",
        "2020-01-02T03:04:05.678Z",
    )
    assert (audience["name"], audience["query"]) == ("iPhones", QUERY)
    assert (audience["lastUsed"]["iso"], audience["timesUsed"]) == ("2022-01-01T00:00:00.000Z", 2)


@pytest.mark.parametrize(
    "row", [{"_id": "schedule1", **TIMES, **NIGHTLY}, table_row("schedule1", **NIGHTLY)]
)
def test_schedules_of_jobs_arrive_disabled_and_once(
    master: Api,
    report: None,
    export: Callable[..., Path],
    run: Callable[..., str],
    row: dict[str, Any],
) -> None:
    path = export(_JobSchedule=[row])
    out = run(path)
    assert "job schedules: 1" in out
    assert "Job schedules arrive disabled." in out
    (schedule,) = schedules(master)
    assert (schedule["jobName"], schedule["description"]) == ("report", "At night")
    assert schedule["params"] == '{"days":2}'
    assert schedule["daysOfWeek"] == [1, 0, 1, 1, 1, 1, 1]
    assert (schedule["timeOfDay"], schedule["repeatMinutes"]) == ("03:30:00.000Z", 1440)
    assert schedule["enabled"] is False
    enable = {"job_schedule": {"enabled": True, "description": "changed here"}}
    master.put(f"/cloud_code/jobs/{schedule['objectId']}", enable)
    run(path, "--again")
    (schedule,) = schedules(master)
    assert (schedule["enabled"], schedule["description"]) == (True, "changed here")


def test_schedules_that_changed_there_change_here_and_stay_enabled(
    master: Api, report: None, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    run(export(_JobSchedule=[{"_id": "schedule1", **TIMES, **NIGHTLY}]))
    (schedule,) = schedules(master)
    path = f"/cloud_code/jobs/{schedule['objectId']}"
    master.put(path, {"job_schedule": {"enabled": True}})
    later = {**NIGHTLY, "_updated_at": {"$date": "2022-01-01T00:00:00Z"}, "repeatMinutes": 60}
    run(export(_JobSchedule=[{"_id": "schedule1", **TIMES, **later}]), "--again")
    (schedule,) = schedules(master)
    assert (schedule["repeatMinutes"], schedule["enabled"]) == (60, True)


def test_schedules_of_jobs_that_arent_here_are_stored_and_named(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    run(export(_JobSchedule=[{"_id": "schedule1", **TIMES, **NIGHTLY}]))
    (problem,) = problems(tmp_path)
    assert problem["place"] == "schedule schedule1 of job report"
    assert "the job isn't here" in problem["reason"]
    (schedule,) = schedules(master)
    assert (schedule["jobName"], schedule["enabled"]) == ("report", False)
    reply = master.put(
        f"/cloud_code/jobs/{schedule['objectId']}", {"job_schedule": {"enabled": True}}
    )
    assert reply.error[1] == 141


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"jobName": None}, "expected the name of a job"),
        ({"daysOfWeek": ["1"]}, "seven times 0 or 1"),
        ({"params": "{"}, "not valid JSON"),
        ({"params": '{"days": "x"}'}, "days"),
        ({"startAfter": "soon"}, "startAfter"),
        ({"_id": "a\0b"}, "Invalid object id"),
    ],
)
def test_schedules_that_cant_be_stored_are_reported_and_the_others_are_imported(
    master: Api,
    report: None,
    export: Callable[..., Path],
    run: Callable[..., str],
    tmp_path: Path,
    fields: dict[str, Any],
    reason: str,
) -> None:
    rows = [
        {"_id": "bad", **TIMES, **NIGHTLY, **fields},
        {"_id": "good", **TIMES, **NIGHTLY},
    ]
    assert "job schedules: 2, 1 not imported" in run(export(_JobSchedule=rows))
    (problem,) = problems(tmp_path)
    assert reason in problem["reason"]
    assert len(schedules(master)) == 1


def test_exports_without_the_teams_data_are_whole(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    out = run(export(_SCHEMA=SCHEMAS))
    assert "_Audience" not in out
    assert "job schedules" not in out.lower()


def test_products_are_imported_into_their_class(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    schema = {"_id": "_Product", "title": "string", "order": "number", "color": "string"}
    product = {"_id": "product1", **TIMES, "title": "Sword", "order": 1, "color": "red"}
    run(export(_SCHEMA=[*SCHEMAS, schema], _Product=[product]))
    stored = master.get("/classes/_Product/product1").json
    assert (stored["title"], stored["order"], stored["color"]) == ("Sword", 1, "red")

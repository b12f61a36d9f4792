"""Schedules: rows for beat, made from code once and the staff's from then on; Parse's REST face."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django_celery_beat.models import ClockedSchedule, PeriodicTask, PeriodicTasks

from backend.celery import app
from backend.kernel.principal import MASTER
from backend.settings.timetables import Cron, Every, Once, parse
from backend.tasks.scheduler import Scheduler
from functions import JobRequest, job
from functions.jobs import schedule_rows
from functions.jobs.models import JobStatus
from functions.jobs.start import start
from functions.jobs.tasks import tend_jobs
from functions.runtime.registry import registry
from objects.database import hold
from tests.held_instance import begin_hold
from tests.rest import Api

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
DAILY = {
    "params": "{}",
    "daysOfWeek": [1, 1, 1, 1, 1, 1, 1],
    "description": "At night",
    "jobName": "report",
    "timeOfDay": "03:30:00.000Z",
    "repeatMinutes": 1440,
}


@pytest.fixture
def report() -> None:
    @job()
    def report(request: JobRequest, days: int = 1) -> None: ...


def declared(schedule: float | str | None, name: str = "nightly") -> None:
    """Deploy code with this job again."""
    registry.jobs.pop(name, None)

    @job(name, schedule=schedule)
    def body(request: JobRequest) -> None: ...

    schedule_rows.synchronise()


def row(name: str = "nightly") -> PeriodicTask:
    return PeriodicTask.objects.get(name=f"job {name}")


class TestOfCode:
    pytestmark = pytest.mark.django_db

    def test_a_job_that_says_when_gets_a_row_that_beat_goes_by(self) -> None:
        declared("0 3 * * mon")
        made = row()
        assert schedule_rows.timing_of(made) == Cron("0", "3", day_of_week="mon")
        assert (made.task, made.enabled) == ("functions.start_scheduled_job", True)
        assert schedule_rows.job_of(made) == "nightly"
        assert PeriodicTasks.last_change() is not None

    def test_deploying_the_same_code_again_changes_nothing(self) -> None:
        declared(300)
        before = row().date_changed
        declared(300)
        assert row().date_changed == before
        assert PeriodicTask.objects.filter(task=schedule_rows.START_TASK).count() == 1

    def test_a_row_that_no_one_touched_follows_the_code(self) -> None:
        declared(300)
        declared("15 4 * * *")
        assert schedule_rows.timing_of(row()) == Cron("15", "4")
        declared(1.5)
        assert schedule_rows.timing_of(row()) == Every(1.5)

    def test_what_staff_have_changed_stays(self) -> None:
        declared(300)
        changed = row()
        schedule_rows.set_timing(changed, Cron("0", "6", timezone="Europe/Berlin"))
        changed.enabled = False
        changed.save()
        declared(600)
        assert str(schedule_rows.timing_of(row())) == "0 6 * * * Europe/Berlin"
        assert not row().enabled

    def test_the_schedule_of_a_job_that_is_gone_is_off_until_it_is_back(self) -> None:
        declared(300)
        job_body = registry.jobs.pop("nightly")
        schedule_rows.synchronise()
        assert not row().enabled
        assert schedule_rows.is_gone(row())
        registry.jobs["nightly"] = job_body
        schedule_rows.synchronise()
        assert row().enabled

    def test_one_that_staff_switched_off_stays_off_when_its_job_is_back(self) -> None:
        declared(300)
        changed = row()
        changed.enabled = False
        changed.save()
        job_body = registry.jobs.pop("nightly")
        schedule_rows.synchronise()
        registry.jobs["nightly"] = job_body
        schedule_rows.synchronise()
        assert not row().enabled

    def test_a_job_without_a_schedule_has_no_row_any_more_that_runs(self) -> None:
        declared(300)
        declared(None)
        assert not row().enabled

    def test_other_rows_of_beat_are_left_alone(self) -> None:
        other = PeriodicTask(name="job nightly of mine", task="other.task")
        schedule_rows.set_timing(other, Every(60))
        other.save()
        schedule_rows.synchronise()
        assert PeriodicTask.objects.get(task="other.task").enabled


@pytest.mark.parametrize(
    "schedule", ["61 * * * *", "0 3 * *", 0, -5, float("nan"), True, "2030-01-01T00:00:00Z", "x"]
)
def test_a_schedule_that_is_none_is_an_error_where_it_is_written(schedule: Any) -> None:
    with pytest.raises(ValueError, match=r"schedule|crontab"):
        job(schedule=schedule)


@pytest.mark.parametrize(
    "text", ["300", "1.5", "*/5 0-6 1,15 * mon-fri", "0 3 * * * Asia/Tokyo", "2030-01-01T12:00:00Z"]
)
def test_a_timing_and_its_text_are_the_same(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.usefixtures("report")
class TestOverRest:
    def make(self, master: Api, **fields: Any) -> str:
        reply = master.post("/cloud_code/jobs", {"job_schedule": {**DAILY, **fields}})
        assert reply.status == 201, reply.json
        assert reply.json.keys() == {"objectId", "createdAt"}
        made: str = reply.json["objectId"]
        return made

    def shown(self, master: Api, object_id: str) -> dict[str, Any]:
        results = master.get("/cloud_code/jobs").json
        return next(item for item in results if item["objectId"] == object_id)

    def timing(self, object_id: str) -> Any:
        return schedule_rows.timing_of(PeriodicTask.objects.get(pk=object_id))

    def test_what_parse_dashboard_sends_comes_back(self, master: Api) -> None:
        made = self.make(master, params='{"days": 3}')
        shown = self.shown(master, made)
        for name in ("jobName", "description", "daysOfWeek", "timeOfDay", "repeatMinutes"):
            assert shown[name] == DAILY[name]
        assert shown["params"] == '{"days":3}'
        assert shown["schedule"] == "30 3 * * *"
        assert schedule_rows.params_of(PeriodicTask.objects.get(pk=made)) == {"days": 3}

    @pytest.mark.parametrize(
        ("fields", "timing"),
        [
            ({"repeatMinutes": 1440}, "30 3 * * *"),
            ({"daysOfWeek": [0, 1, 1, 1, 1, 1, 0]}, "30 3 * * 1,2,3,4,5"),
            ({"repeatMinutes": 15}, "0,15,30,45 * * * *"),
            ({"repeatMinutes": 20, "timeOfDay": "12:05"}, "5,25,45 * * * *"),
            ({"repeatMinutes": 360}, "30 3,9,15,21 * * *"),
            ({"repeatMinutes": 2}, ",".join(map(str, range(0, 60, 2))) + " * * * *"),
            ({"repeatMinutes": 7}, "420"),
            ({"repeatMinutes": 10, "timeOfDay": ""}, "600"),
            ({"schedule": "0 0 1 * *"}, "0 0 1 * *"),
            ({"schedule": 45}, "45"),
        ],
    )
    def test_times(self, master: Api, fields: dict[str, Any], timing: str) -> None:
        made = self.make(master, **fields)
        assert str(self.timing(made)) == timing
        assert self.shown(master, made)["schedule"] == timing

    def test_without_repetition_it_runs_once_after_its_start(self, master: Api) -> None:
        made = self.make(master, repeatMinutes=0, startAfter="2031-05-01T10:00:00.000Z")
        assert isinstance(self.timing(made), Once)
        assert self.shown(master, made)["startAfter"] == "2031-05-01T10:00:00.000Z"

    def test_repetition_begins_after_its_start(self, master: Api) -> None:
        date = {"__type": "Date", "iso": "2031-05-01T10:00:00.000Z"}
        made = self.make(master, startAfter=date)
        assert PeriodicTask.objects.get(pk=made).start_time.year == 2031

    def test_only_what_is_named_changes(self, master: Api) -> None:
        made = self.make(master)
        reply = master.put(f"/cloud_code/jobs/{made}", {"job_schedule": {"description": "new"}})
        assert reply.json.keys() == {"updatedAt"}
        assert self.shown(master, made)["description"] == "new"
        assert str(self.timing(made)) == "30 3 * * *"
        master.put(f"/cloud_code/jobs/{made}", {"job_schedule": {"timeOfDay": "04:00"}})
        assert str(self.timing(made)) == "0 4 * * *"
        master.put(f"/cloud_code/jobs/{made}", {"job_schedule": {"enabled": False}})
        assert self.shown(master, made)["enabled"] is False

    def test_it_is_removed(self, master: Api) -> None:
        made = self.make(master)
        assert master.delete(f"/cloud_code/jobs/{made}").json == {}
        assert master.get("/cloud_code/jobs").json == []
        assert master.delete(f"/cloud_code/jobs/{made}").error == (404, 101)

    def test_one_of_the_code_is_named_by_its_job_and_switched_off(self, master: Api) -> None:
        declared(300, "report")
        assert master.delete("/cloud_code/jobs/report").status == 200
        assert not row("report").enabled
        body = {"job_schedule": {"enabled": True, "schedule": "0 5 * * *"}}
        assert master.put("/cloud_code/jobs/report", body).status == 200
        assert (row("report").enabled, str(schedule_rows.timing_of(row("report")))) == (
            True,
            "0 5 * * *",
        )

    def test_data_names_jobs(self, master: Api, reader: Api) -> None:
        self.make(master)
        data = reader.get("/cloud_code/jobs/data").json
        assert data["in_use"] == ["report"]
        assert "report" in data["jobs"]

    @pytest.mark.parametrize(
        ("fields", "code", "named"),
        [
            ({"jobName": "nobody"}, 141, "not deployed"),
            ({"jobName": 5}, 141, "not deployed"),
            ({"params": '{"days": "x"}'}, 141, "days"),
            ({"params": "{"}, 107, "params"),
            ({"params": "[]"}, 111, "params"),
            ({"params": "[" * 10_000}, 107, "params"),
            ({"params": '{"a":' * 10_000}, 107, "params"),
            ({"params": '{"days":' + "[" * 500 + "]" * 500 + "}"}, 107, "params"),
            ({"repeatMinutes": "x"}, 111, "repeatMinutes"),
            ({"repeatMinutes": -1}, 111, "repeatMinutes"),
            ({"repeatMinutes": True}, 111, "repeatMinutes"),
            ({"timeOfDay": "25:00"}, 111, "timeOfDay"),
            ({"timeOfDay": ["03:00"]}, 111, "timeOfDay"),
            ({"daysOfWeek": [1]}, 111, "daysOfWeek"),
            ({"daysOfWeek": [[], 1, 1, 1, 1, 1, 1]}, 111, "daysOfWeek"),
            ({"daysOfWeek": [0] * 7}, 162, "daysOfWeek"),
            ({"daysOfWeek": [0, 1, 1, 1, 1, 1, 1], "repeatMinutes": 7}, 162, "repeatMinutes"),
            ({"startAfter": "soon"}, 111, "startAfter"),
            ({"startAfter": 5}, 111, "startAfter"),
            ({"schedule": "* * *"}, 162, "schedule"),
            ({"schedule": ["* * * * *"]}, 162, "schedule"),
            ({"schedule": "0-9999999 * * * *"}, 162, "schedule"),
            ({"description": 5}, 111, "description"),
            ({"description": "x" * 1001}, 111, "description"),
            ({"enabled": "yes"}, 111, "enabled"),
            ({"cron": "x"}, 105, "cron"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, master: Api, fields: dict[str, Any], code: int, named: str
    ) -> None:
        reply = master.post("/cloud_code/jobs", {"job_schedule": {**DAILY, **fields}})
        assert reply.error == (400, code)
        assert named in reply.json["error"]
        assert master.get("/cloud_code/jobs").json == []

    @pytest.mark.parametrize("body", [{}, {"job_schedule": []}, {"job_schedule": {}}])
    def test_a_body_without_a_schedule_is_refused(self, master: Api, body: Any) -> None:
        assert master.post("/cloud_code/jobs", body).status == 400

    @pytest.mark.parametrize("name", ["99", "9" * 40, "nobody", "²"])
    def test_one_that_is_not_there_is_not_found(self, master: Api, name: str) -> None:
        assert master.delete(f"/cloud_code/jobs/{name}").error == (404, 101)

    def test_they_are_the_master_key_s(
        self, client: Api, application: Api, reader: Api, master: Api
    ) -> None:
        """GHSA-vc89-5g3r-cmhh: the read-only key may look."""
        made = self.make(master)
        body = {"job_schedule": DAILY}
        writes = (
            ("POST", "/cloud_code/jobs", body),
            ("PUT", f"/cloud_code/jobs/{made}", body),
            ("DELETE", f"/cloud_code/jobs/{made}", None),
        )
        for api in (client, application):
            for method, path, sent in (
                *writes,
                ("GET", "/cloud_code/jobs", None),
                ("GET", "/cloud_code/jobs/data", None),
            ):
                assert api.call(method, path, sent).error == (403, 119)
        for method, path, sent in writes:
            assert reader.call(method, path, sent).error == (400, 119)
        assert len(reader.get("/cloud_code/jobs").json) == 1

    def test_the_class_is_no_second_way(self, master: Api) -> None:
        assert master.post("/classes/_JobSchedule", {"jobName": "report"}).error == (400, 119)

    def test_nothing_is_changed_in_maintenance_mode(self, master: Api) -> None:
        from objects.database.statements import fetch

        fetch(
            "INSERT INTO objects_maintenance (id, message, since, chain_paused)"
            " VALUES (1, 'closed', now(), false)",
            (),
            prepare=False,
        )
        reply = master.post("/cloud_code/jobs", {"job_schedule": DAILY})
        assert (reply.error, reply.json["error"]) == ((400, 119), "closed")


class _Schedule(Scheduler):
    """The schedule of beat with the names of what it sends."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        super().__init__(app=app)

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent.append(entry.name)

    @property
    def producer(self) -> None:
        return None

    def tick_all(self) -> set[str]:
        """Return the names of all that is due now."""
        self.sent.clear()
        while self.tick() == 0:
            pass
        return {*self.sent}


@pytest.mark.django_db(transaction=True)
class TestWhileHeld:
    """A restored instance starts nothing but the service's own upkeep."""

    def test_schedules_wait_until_the_instance_is_resumed(self) -> None:
        declared(1)
        at = ClockedSchedule.objects.create(clocked_time=NOW - timedelta(hours=1))
        once = PeriodicTask.objects.create(
            name="staff's own", task="any.task", clocked=at, one_off=True
        )
        PeriodicTask.objects.exclude(pk=once.pk).update(last_run_at=NOW - timedelta(days=1))
        with time_machine.travel(NOW, tick=False) as clock:
            begin_hold()
            schedule = _Schedule()
            schedule.tick_all()
            clock.shift(20)
            due = schedule.tick_all()
            assert "send-due-pushes" in due
            assert due.isdisjoint({"job nightly", "staff's own"})
            clock.shift(2)
            hold.release()
            assert schedule.tick_all() >= {"job nightly", "staff's own"}
            schedule.close()

    def test_runs_that_were_queued_stay_as_they_are(
        self, report: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        status_id = start("report", {}, source="api", principal=MASTER)
        JobStatus.objects.filter(pk=status_id).update(created_at=NOW, published_at=NOW)
        begin_hold()
        tend_jobs()
        assert JobStatus.objects.get(pk=status_id).published_at == NOW
        hold.release()
        tend_jobs()
        assert JobStatus.objects.get(pk=status_id).published_at != NOW

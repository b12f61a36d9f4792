"""The history of backups, and what operators see of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_celery_beat.models import PeriodicTask
from prometheus_client.parser import text_string_to_metric_families

from backend.backups import history
from backend.backups.models import BackupRun
from backend.celery import app
from backend.kernel.doctor import Finding
from backend.operations.doctor.backups import backups
from backend.settings.schedule import BACK_UP, ROUTES, beat_schedule
from backend.settings.timetables import parse_cron
from backend.tasks.scheduler import Entry
from tests.held_instance import begin_hold
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db

NAME = "archives/test-app-20260101T030000Z.tar"
TOKEN = "a-token-of-some-length"


def run(state: str, *, hours: float = 1, **fields: Any) -> BackupRun:
    """Record a run that began so many hours ago and took a minute."""
    started_at = datetime.now(UTC) - timedelta(hours=hours)
    finished_at = None if state == "running" else started_at + timedelta(minutes=1)
    return BackupRun.objects.create(
        state=state, started_at=started_at, finished_at=finished_at, **fields
    )


@pytest.fixture
def scheduled(settings: Any, tmp_path: Path) -> Path:
    """A schedule for every night, and a folder for the backups that has one."""
    settings.SERVICE = {
        **settings.SERVICE,
        "BACKUP_TO": str(tmp_path),
        "BACKUP_SCHEDULE": "0 3 * * *",
        "METRICS": True,
        "METRICS_TOKEN": TOKEN,
    }
    file = tmp_path / NAME
    file.parent.mkdir()
    file.write_bytes(b"archive")
    return file


def findings() -> list[tuple[str, str]]:
    def shown(finding: Finding) -> tuple[str, str]:
        return finding.level, finding.text

    return [shown(finding) for finding in backups()]


def test_without_a_schedule_doctor_says_what_to_set() -> None:
    assert findings() == [
        ("ok", "none are scheduled; BACKUP_TO and BACKUP_SCHEDULE do it (docs/backups.md)")
    ]


def test_doctor_warns_until_there_is_a_first_backup(scheduled: Path) -> None:
    assert findings() == [("warn", "There is no backup yet.")]


def test_doctor_names_a_verified_backup(scheduled: Path) -> None:
    run("ok", name=NAME, verification="restored")
    assert findings() == [("ok", "test-app-20260101T030000Z.tar, restored, rows counted")]


def test_doctor_fails_when_the_newest_verified_backup_is_late(scheduled: Path) -> None:
    run("ok", hours=49, name=NAME)
    [(level, text)] = findings()
    assert level == "fail"
    assert text.startswith("The newest verified backup is 2 days, 1:00:")


def test_doctor_fails_with_the_reason_of_the_last_failure(scheduled: Path) -> None:
    run("ok", hours=3, name=NAME)
    run("failed", note="s3://b: access is refused.")
    run("running", hours=0)
    texts = findings()
    assert texts[0][0] == "fail"
    assert "failed: s3://b: access is refused." in texts[0][1]
    assert texts[1][0] == "ok"


def test_a_killed_run_is_a_failure_for_doctor_and_metrics(scheduled: Path) -> None:
    run("ok", hours=3, name=NAME)
    run("running", hours=1)
    history.mark_killed()
    level, text = findings()[0]
    assert (level, text.partition(": ")[2]) == (
        "fail",
        "The process was killed or lost its database.",
    )
    assert metrics()["failed"] == 1


def test_doctor_fails_when_the_newest_backup_is_gone(scheduled: Path) -> None:
    run("ok", name=NAME)
    scheduled.unlink()
    assert findings() == [("fail", f"{scheduled.parents[1]} hasn't {NAME} any more.")]


def test_doctor_fails_when_the_place_cannot_be_read(scheduled: Path) -> None:
    run("ok", name=NAME)
    scheduled.unlink()
    scheduled.parent.rmdir()
    scheduled.parents[1].rmdir()
    [(level, text)] = findings()
    assert (level, "there is no such folder" in text) == ("fail", True)


def test_doctor_warns_where_backups_are_not_restored_for_a_trial(scheduled: Path) -> None:
    run("ok", name=NAME, verification="checksums", note="It wasn't restored.")
    assert findings() == [
        ("warn", "The newest backup is stored and was read back, but: It wasn't restored."),
        ("ok", "test-app-20260101T030000Z.tar, read back and compared"),
    ]


def test_a_held_instance_is_not_asked_for_backups(scheduled: Path) -> None:
    begin_hold()
    assert [level for level, _ in findings()] == ["ok"]


def metrics() -> dict[str, float]:
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return {
        sample.name.removeprefix("svc_backup_"): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
        if sample.name.startswith("svc_backup_")
    }


def test_metrics_have_the_newest_verified_backup_and_the_last_result(scheduled: Path) -> None:
    assert metrics() == {"interval_seconds": 86_400}
    run("ok", hours=2, name=NAME, size=1234)
    values = metrics()
    assert 7200 <= values.pop("age_seconds") < 7300
    assert values == {
        "interval_seconds": 86_400,
        "size_bytes": 1234,
        "duration_seconds": 60,
        "failed": 0,
    }
    run("failed", note="full")
    assert metrics()["failed"] == 1
    assert metrics()["size_bytes"] == 1234


def test_staff_who_may_see_the_history_as_a_page_without_forms(scheduled: Path) -> None:
    run("ok", name=NAME, size=3_000_000, verification="restored")
    run("failed", note="<b>full</b>")
    page = logged_in("Viewers").get("/admin/backend/backuprun/")
    text = page.content.decode()
    assert page.status_code == 200
    for shown in ("test-app-20260101T030000Z.tar", "restored, rows counted", "0:01:00"):
        assert shown in text
    assert "<b>full</b>" not in text
    row = BackupRun.objects.get(name=NAME)
    superuser = logged_in()
    assert superuser.get(f"/admin/backend/backuprun/{row.pk}/change/").status_code == 200
    for path in ("add/", f"{row.pk}/delete/"):
        assert superuser.get(f"/admin/backend/backuprun/{path}").status_code == 403
    assert Client().get("/admin/backend/backuprun/").status_code == 302


# -- runs ------------------------------------------------------------------------------------------


def test_a_later_run_of_an_archive_replaces_the_result_of_a_killed_one() -> None:
    killed = run("running", hours=5, name=NAME)
    history.mark_killed()
    killed.refresh_from_db()
    assert killed.finished_at is not None
    assert history.results() == {NAME: "killed"}
    run_now = history.begin()
    run_now.name = NAME
    history.succeed(run_now, "checksums")
    assert history.results() == {NAME: "ok"}
    assert history.state().last_good == run_now


def test_a_message_has_one_run_and_one_that_was_killed_is_repeated_twice() -> None:
    sent_at = datetime.now(UTC)
    run("ok", hours=24)
    assert not history.is_done(sent_at)
    for _ in range(3):
        assert not history.is_done(sent_at)
        killed = history.begin(sent_at)
        history.mark_killed()
    assert history.is_done(sent_at)
    killed.delete()
    assert not history.is_done(sent_at)
    history.fail(history.begin(sent_at), "full")
    assert history.is_done(sent_at)
    assert history.is_done(sent_at - timedelta(seconds=1))
    assert not history.is_done(sent_at + timedelta(minutes=1))


def test_a_backup_by_hand_is_not_that_of_the_schedule() -> None:
    history.succeed(history.begin(), "restored")
    assert not history.is_done(datetime.now(UTC))


def test_runs_of_a_clock_that_was_ahead_stop_no_others_and_are_not_the_newest() -> None:
    ahead = history.begin(datetime.now(UTC) + timedelta(days=10))
    ahead.started_at = ahead.sent_at
    history.succeed(ahead, "restored")
    assert history.ahead() == ahead
    assert not history.is_done(datetime.now(UTC))
    assert history.state().last_good is None
    good = run("ok", hours=30)
    assert history.state().last_good == good
    assert history.state().age > 29 * 3600


def test_the_history_is_bounded_but_for_backups_that_exist() -> None:
    run("ok", name=NAME)
    BackupRun.objects.bulk_create(
        BackupRun(started_at=datetime.now(UTC), state="failed", name=f"n{number}")
        for number in range(320)
    )
    history.forget({NAME})
    assert BackupRun.objects.count() == 301
    assert BackupRun.objects.filter(name=NAME).exists()


def test_a_note_has_no_secrets_and_an_end() -> None:
    failed = history.begin()
    history.fail(failed, "postgres://user:a-password@host/db " + "x" * 5000)
    assert "a-password" not in failed.note
    assert len(failed.note) == 1000


# -- schedule --------------------------------------------------------------------------------------


def test_beat_starts_a_backup_by_the_clock_of_its_time_zone() -> None:
    line = "0 3 * * 1-5 Europe/Berlin"
    entries = beat_schedule(job_heartbeat=10, cleans_files=False, backups=line)
    assert ROUTES[BACK_UP] == {"queue": "jobs"}
    Entry.from_entry("back-up", app=app, **entries["back-up"])
    row = PeriodicTask.objects.get(name="back-up")
    assert row.task == BACK_UP
    assert row.crontab is not None
    assert (row.crontab.hour, str(row.crontab.timezone)) == ("3", "Europe/Berlin")
    assert "back-up" not in beat_schedule(job_heartbeat=10, cleans_files=False, backups="")


@pytest.mark.parametrize(
    ("line", "pause"),
    [
        ("*/15 * * * *", timedelta(minutes=15)),
        ("0 3 * * *", timedelta(days=1)),
        ("0 3 * * 1-5", timedelta(days=3)),
        ("0 3 * * 0", timedelta(days=7)),
        ("0 3 1 * *", timedelta(days=31)),
    ],
)
def test_the_longest_pause_of_a_schedule_is_what_an_age_is_compared_with(line, pause) -> None:
    assert parse_cron(line).longest_pause(datetime(2026, 5, 3, tzinfo=UTC)) == pause


def test_without_a_schedule_a_task_that_is_left_over_starts_nothing() -> None:
    app.tasks[BACK_UP]()
    assert not BackupRun.objects.exists()

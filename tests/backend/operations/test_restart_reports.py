"""What was restarted is shown by ``/ready``, ``doctor`` and the admin."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Any

import pytest
from django.test import Client

from backend.instance.folder import DataFolder
from backend.kernel.process import restart_report
from backend.kernel.process.restart_report import Restarted
from backend.operations.doctor import processes
from backend.site.staff import VIEWERS
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def reports(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_FOLDER = DataFolder(tmp_path)
    folder = settings.DATA_FOLDER.reports
    folder.mkdir(parents=True)
    return folder


def restarted(name: str, *, is_failing: bool = False, ago: float = 60) -> Restarted:
    return Restarted(name, 7, is_failing, "SIGKILL", time() - ago)


def messages(level: str) -> list[str]:
    return [process.text for process in processes.restarts() if process.level == level]


def test_what_fails_again_and_again_is_named_and_does_not_change_the_status(reports: Path) -> None:
    usual = Client().get("/ready")
    restart_report.write(
        reports, "roles", [restarted("worker", is_failing=True), restarted("beat")]
    )
    restart_report.write(reports, "launcher", [restarted("Redis", is_failing=True)])
    answer = Client().get("/ready")
    assert answer.status_code == usual.status_code
    checks = answer.json()["checks"]
    assert (checks["worker"], checks["Redis"]) == (("fails again and again",) * 2)
    assert checks["beat"] == usual.json()["checks"]["beat"]


def test_doctor_warns_of_restarts_within_an_hour(reports: Path) -> None:
    assert messages("ok") == ["no process was restarted within the last hour"]
    restart_report.write(reports, "roles", [restarted("web"), restarted("jobs", ago=7200)])
    assert messages("warn") == ["web was restarted 7 times, the last time 1 minutes ago."]
    restart_report.write(reports, "roles", [restarted("web", is_failing=True)])
    assert messages("fail") == ["web fails again and again (SIGKILL)."]


def test_without_a_supervisor_there_is_nothing_to_say(settings: Any, tmp_path: Path) -> None:
    settings.DATA_FOLDER = DataFolder(tmp_path / "none")
    assert restart_report.read(settings.DATA_FOLDER.reports) == []
    restart_report.write(settings.DATA_FOLDER.reports, "roles", [restarted("web")])
    assert not settings.DATA_FOLDER.reports.exists()
    assert messages("ok") == ["something else than script/server restarts the processes here"]


@pytest.mark.parametrize("content", ["", "[", "{}", '[{"name": 1}]', "[1]", "null", "\x00"])
def test_a_damaged_report_is_left_out(reports: Path, content: str) -> None:
    (reports / "other.json").write_text(content)
    restart_report.write(reports, "roles", [restarted("web")])
    assert [item.name for item in restart_report.read(reports)] == ["web"]


def test_what_is_no_report_keeps_no_one_from_starting(reports: Path) -> None:
    (reports / "zzz.json").mkdir()
    restart_report.clear(reports)
    assert restart_report.read(reports) == []


def test_what_fails_again_and_again_is_named_on_every_page(reports: Path) -> None:
    staff = logged_in(VIEWERS)
    assert "again and again" not in staff.get("/admin/").text
    restart_report.write(reports, "roles", [restarted("worker", is_failing=True), restarted("web")])
    assert "These processes end again and again: worker (SIGKILL)." in staff.get("/admin/").text


def test_the_page_of_processes_lists_restarts(reports: Path) -> None:
    restart_report.write(reports, "roles", [restarted("web"), restarted("<b>", is_failing=True)])
    text = logged_in(VIEWERS).get("/admin/processes/").text
    for name in ("worker", "jobs", "chain", "backfill", "beat", "realtime", "web", "&lt;b&gt;"):
        assert f">{name}</td>" in text
    assert "SIGKILL, " in text


def test_only_staff_see_the_page(reports: Path) -> None:
    assert Client().get("/admin/processes/").status_code == 302

"""Since when nothing is archived, and why: in ``doctor``, ``/metrics`` and the admin."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Any

import pytest
from django.test import Client

from backend.instance import wal_archive
from backend.instance.folder import DataFolder
from backend.instance.wal_archive import Part, StateFile
from backend.operations.doctor import wal_archive as check
from backend.site.staff import VIEWERS
from tests.objects.admin.staff import logged_in

pytestmark = pytest.mark.django_db
DAY = 86400.0


def part(done: float | None, trouble: str = "", since: float | None = None) -> Part:
    """A part by the seconds since it was complete, and since it has failed."""
    now = time()
    return Part(
        None if done is None else now - done, trouble, None if since is None else now - since
    )


def away() -> Part:
    return part(600, "The place is away.", 590)


@pytest.fixture
def state_file(settings: Any, tmp_path: Path) -> StateFile:
    settings.EMBEDDED_POSTGRES = True
    settings.DATA_FOLDER = DataFolder(tmp_path)
    state_file = StateFile(settings.DATA_FOLDER)
    good = {"log": part(0), "bases": part(DAY), "files": part(0)}
    state_file.change(is_on=True, instance="one", lineage="a", **good)
    return state_file


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        (dict, "ok", "the copy of the database is 1.0 days old, an unknown amount waits"),
        (lambda: {"is_on": False}, "ok", "off; BACKUP_TO"),
        (lambda: {"is_held": True, "log": away()}, "ok", "while the instance is held"),
        (
            lambda: {"log": away()},
            "fail",
            "10 minutes ago, an unknown amount waits: The place is away.",
        ),
        (lambda: {"log": Part()}, "fail", "WAL was never archived"),
        (lambda: {"log": part(30, "Slow.", 9)}, "warn", "WAL waits to be archived: Slow."),
        (lambda: {"bases": part(9 * DAY)}, "fail", "12960 minutes ago: none was made since"),
        (lambda: {"bases": part(None)}, "warn", "never archived: the first one is being made"),
        (lambda: {"bases": part(DAY, "No.", 60)}, "warn", "1440 minutes ago: No."),
        (lambda: {"bases": part(None, "No.", DAY)}, "fail", "was never archived: No."),
        (lambda: {"files": away()}, "fail", "10 minutes ago: The place is away."),
        (lambda: {"gap": time() - 3600, "gap_reason": "Full"}, "warn", "1.0 hours ago: Full."),
        (lambda: {"gap": time() - 2 * DAY}, "ok", "everything until"),
    ],
)
def test_doctor_names_what_is_not_archived(state_file, changes, level, text):
    state_file.change(**changes())
    (finding,) = check.wal_archive()
    assert (finding.level, text in finding.text) == (level, True), finding


def metrics(settings: Any) -> str:
    settings.SERVICE = {**settings.SERVICE, "METRICS": True, "METRICS_TOKEN": "token"}
    answer = Client().get("/metrics", headers={"Authorization": "Bearer token"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_metrics_have_the_age_of_each_part(settings, state_file):
    state_file.change(log=away(), bases=Part(), gap=5.0)
    lines = metrics(settings).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("svc_wal_archive"))
    assert 600 <= float(values['svc_wal_archive_age_seconds{part="log"}']) < 900
    assert values['svc_wal_archive_age_seconds{part="bases"}'] == "+Inf"
    assert values['svc_wal_archive_failing{part="log"}'] == "1.0"
    assert values['svc_wal_archive_failing{part="files"}'] == "0.0"
    assert values["svc_wal_archive_waiting_bytes"] == "0.0"
    assert values["svc_wal_archive_gap_timestamp_seconds"] == "5.0"


@pytest.mark.parametrize("change", [{"is_on": False}, {"is_held": True}])
def test_an_instance_that_archives_nothing_has_no_metrics_of_it(settings, state_file, change):
    state_file.change(**change)
    assert not [line for line in metrics(settings).splitlines() if line.startswith("svc_wal_")]


def test_the_admin_says_since_when_and_why(state_file):
    staff = logged_in(VIEWERS)
    assert "WAL isn't archived" not in page(staff)
    state_file.change(log=part(30, "Slow.", 9))
    assert "WAL isn't archived" not in page(staff)
    state_file.change(log=away())
    assert "WAL isn't archived since" in page(staff)
    assert "The place is away." in page(staff)


def page(staff: Any) -> str:
    text: str = staff.get("/admin/").content.decode()
    return text.replace("&#x27;", "'")


def corrupt(path: Path) -> None:
    path.write_text("{")


def replace(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("event", "reason"), [(corrupt, "can't be read: Input"), (replace, "can't be read: Is a")]
)
def test_a_state_that_cannot_be_read_is_a_failure(state_file, settings, tmp_path, event, reason):
    path = wal_archive.path_of(DataFolder(tmp_path))
    event(path)
    (finding,) = check.wal_archive()
    assert (finding.level, f"{path} {reason}" in finding.text) == ("fail", True), finding
    assert 'svc_wal_archive_failing{part="log"} 1.0' in metrics(settings)
    assert f"{path} {reason}" in page(logged_in(VIEWERS))
    # The process that archives begins again.
    state_file.reload()
    assert (state_file.now.instance, state_file.now.lineage) == ("", "")
    assert reason in state_file.now.gap_reason


def test_an_instance_without_a_state_archives_nothing(state_file, tmp_path):
    wal_archive.path_of(DataFolder(tmp_path)).unlink()
    assert wal_archive.read(DataFolder(tmp_path)) == wal_archive.State()
    (finding,) = check.wal_archive()
    assert finding.level == "ok"


def test_a_state_that_cannot_be_written_is_no_failure(tmp_path):
    state_file = StateFile(DataFolder(tmp_path / "missing"))
    state_file.change(instance="one")
    assert state_file.now.instance == "one"


def test_the_first_failure_of_a_series_is_its_time(state_file):
    assert state_file.failed(wal_archive.LOG, "Away.")
    since = state_file.now.log.since
    assert not state_file.failed(wal_archive.LOG, "Away.")
    assert state_file.failed(wal_archive.LOG, "Refused.")
    assert state_file.now.log.since == since
    assert state_file.now.log.done is not None
    state_file.succeeded(wal_archive.LOG)
    assert state_file.now.log.trouble == ""

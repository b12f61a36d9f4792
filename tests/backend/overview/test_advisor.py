"""The advisor: checks that run away from requests, and what staff may do about their findings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from backend.kernel import doctor
from backend.kernel.doctor import Finding
from backend.operations.checks import load_checks
from backend.overview import checkups
from backend.overview.models import Checkup
from backend.overview.remedies import PAGES, REMEDIES
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects.database import maintenance
from tests.backend.overview.figures import *  # noqa: F403
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db

FINDINGS = (
    ("maintenance mode", doctor.warn("On since today.", "script/manage maintenance off")),
    ("disk", doctor.fail("DATA_DIR has <1 KB> left.", "Make room.")),
    ("keys", doctor.ok("7 keys")),
    ("mail", Finding("skipped", "not looked at, since database failed")),
)


@pytest.fixture
def report() -> Checkup:
    """The report of a run of a minute ago."""
    outcomes = [
        {"check": name, "group": "Machine", "findings": [dict(_fields(finding))]}
        for name, finding in FINDINGS
    ]
    finished = datetime.now(UTC) - timedelta(minutes=1)
    return Checkup.objects.create(id=1, finished_at=finished, node="n1", outcomes=outcomes)


def _fields(finding: Finding) -> Iterator[tuple[str, str]]:
    yield from (("level", finding.level), ("text", finding.text), ("advice", finding.advice))


def text_of(client: Client) -> str:
    page = client.get("/admin/advisor/")
    assert page.status_code == 200
    return page.content.decode()


def test_findings_are_grouped_by_severity_with_advice(report: Checkup) -> None:
    text = text_of(logged_in())
    places = [text.index(word) for word in ("Failures", "Warnings", "Not checked", "In order")]
    assert places == sorted(places)
    assert "DATA_DIR has &lt;1 KB&gt; left." in text
    assert "Make room." in text
    assert "on n1" in text


def test_the_start_page_counts_the_findings(report: Checkup) -> None:
    assert "1 failure, 1 warning" in logged_in().get("/admin/").content.decode()


def test_without_a_report_the_page_says_so() -> None:
    assert "The checks haven't run yet." in text_of(logged_in())


@pytest.mark.django_db(transaction=True)
def test_a_run_stores_what_the_checks_report() -> None:
    doctor.load_with(load_checks)
    assert checkups.run()
    entries = checkups.latest().entries
    groups = {entry.check: entry.group for entry in entries}
    assert groups["redis"] == "Engines"
    assert {entry.finding.level for entry in entries if entry.check == "database"} == {"ok"}


def test_one_process_runs_the_checks_at_a_time() -> None:
    now = datetime.now(UTC)
    row = Checkup.objects.create(id=1, claimed_at=now - timedelta(seconds=30))
    assert not checkups.run()
    assert checkups.latest().is_running
    row.claimed_at = now - timedelta(minutes=5)  # of a process that was killed
    row.save()
    assert checkups._claim()


def test_a_run_that_has_just_ended_is_not_repeated(
    django_capture_on_commit_callbacks: Any,
) -> None:
    Checkup.objects.create(id=1, finished_at=datetime.now(UTC))
    with django_capture_on_commit_callbacks() as started:
        page = logged_in().post("/admin/advisor/check/", follow=True)
    assert "have just been run" in page.content.decode()
    assert started == []


def test_check_again_starts_a_run_after_the_request(
    report: Checkup, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as started:
        page = logged_in(ADMINISTRATORS).post("/admin/advisor/check/", follow=True)
    assert len(started) == 1
    assert "They are running now" in page.content.decode()


@pytest.mark.parametrize("name", sorted(REMEDIES.keys() | PAGES.keys()))
def test_remedies_and_pages_are_those_of_checks_that_exist(name: str) -> None:
    load_checks()
    assert name in doctor._checks
    if name in PAGES:
        assert reverse(f"admin:{PAGES[name][0]}")


def test_a_remedy_is_one_click(report: Checkup) -> None:
    client = logged_in(ADMINISTRATORS)
    assert "End maintenance mode" in text_of(client)
    maintenance.on("Back soon", pause_chain=False, limit=5)
    try:
        page = client.post("/admin/advisor/remedies/maintenance mode/", follow=True)
        assert "Maintenance mode is off." in page.content.decode()
        assert maintenance.state() is None
    finally:
        maintenance.off()


@pytest.mark.parametrize(
    ("check", "queue", "task"),
    [
        ("indexes", "jobs", "backend.repair_indexes"),
        ("expired rows", "default", "objects.remove_expired"),
        ("backups", "jobs", "backend.back_up"),
    ],
)
def test_longer_remedies_are_sent_to_a_worker(
    server: redis.Redis, settings: Any, check: str, queue: str, task: str
) -> None:
    settings.SERVICE = {**settings.SERVICE, "BACKUP_TO": "/backups"}
    page = logged_in().post(f"/admin/advisor/remedies/{check}/", follow=True)
    assert REMEDIES[check].done in page.content.decode().replace("&#x27;", "'")
    (message,) = server.lrange(f"celery:{queue}", 0, -1)
    assert json.loads(message)["headers"]["task"] == task


def test_without_a_place_for_backups_none_is_offered(report: Checkup) -> None:
    assert logged_in().post("/admin/advisor/remedies/backups/").status_code == 404


def test_an_unknown_remedy_is_not_there(report: Checkup) -> None:
    client = logged_in()
    assert client.post("/admin/advisor/remedies/disk/").status_code == 404
    assert client.get("/admin/advisor/remedies/indexes/").status_code == 405
    assert client.get("/admin/advisor/check/").status_code in (403, 405)


@pytest.mark.parametrize(
    ("group", "may_see", "may_act"),
    [(None, True, True), (ADMINISTRATORS, True, True), (EDITORS, True, False),
     (VIEWERS, True, False)],
)  # fmt: skip
def test_who_may_see_and_act(
    report: Checkup, group: str | None, may_see: bool, may_act: bool,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    client = logged_in(group)
    text = text_of(client)
    assert ("Check again" in text) is may_act
    assert ("End maintenance mode" in text) is may_act
    with django_capture_on_commit_callbacks():
        assert client.post("/admin/advisor/check/").status_code == (302 if may_act else 403)
    remedy = client.post("/admin/advisor/remedies/maintenance mode/")
    assert remedy.status_code == (302 if may_act else 403)


def test_staff_without_rights_and_others_are_refused(report: Checkup) -> None:
    user = User.objects.create_user("hand", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_logrecord"))
    hand = Client()
    hand.force_login(user)
    for address in ("check/", "remedies/maintenance mode/"):
        assert hand.post(f"/admin/advisor/{address}").status_code == 403
        assert Client().post(f"/admin/advisor/{address}").status_code == 302
    assert hand.get("/admin/advisor/").status_code == 403
    assert Client().get("/admin/advisor/").status_code == 302


def test_a_post_without_a_token_is_refused(report: Checkup) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff_user(None))
    for address in ("check/", "remedies/maintenance mode/"):
        assert client.post(f"/admin/advisor/{address}").status_code == 403

"""The page of backups: making, verifying and downloading one, and who may."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from backend.backups import history
from backend.backups.models import BackupRun
from backend.operations.backup.places.place import place_of
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from tests.backend.commands.conftest import run
from tests.objects.admin.staff import logged_in, staff_user

pytestmark = pytest.mark.django_db

NAME = "archives/test-app-20260101T030000Z.tar"


@pytest.fixture
def stored(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> BackupRun:
    """A run whose archive is in the place, which processes of backups know as well."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("BACKUP_TO", str(place))
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    settings.SERVICE = {**settings.SERVICE, "BACKUP_TO": str(place), "BACKUP_KEY": ""}
    place_of(settings.SERVICE).write(NAME, [b"the archive " * 50_000])
    now = datetime.now(UTC)
    return BackupRun.objects.create(
        name=NAME,
        state="ok",
        verification="restored",
        started_at=now,
        finished_at=now,
        size=600_000,
    )


def post(client: Client, run: BackupRun | None, action: str, **options: Any) -> Any:
    part = f"{run.pk}/" if run is not None else ""
    return client.post(f"/admin/backups/{part}{action}/", **options)


@pytest.mark.process
def test_a_superuser_downloads_an_archive(stored):
    response = post(logged_in(), stored, "download")
    assert response.status_code == 200
    assert response.headers["Content-Disposition"].endswith('"test-app-20260101T030000Z.tar"')
    assert b"".join(response.streaming_content) == b"the archive " * 50_000
    stored.name = "archives/test-app-20260102T030000Z.tar"
    stored.save()
    page = post(logged_in_again(), stored, "download", follow=True)
    assert "The archive can&#x27;t be read: " in page.text
    assert "has no archives/test-app-20260102T030000Z.tar" in page.text


def logged_in_again() -> Client:
    client = Client()
    client.force_login(User.objects.get(username="root"))
    return client


def test_who_may_make_verify_and_download(stored):
    for group, makes in ((VIEWERS, False), (EDITORS, False), (ADMINISTRATORS, True)):
        client = logged_in(group)
        page = client.get("/admin/backend/backuprun/").text
        assert ("Make a backup now" in page) is makes
        assert ">Download<" not in client.get(f"/admin/backend/backuprun/{stored.pk}/change/").text
        assert post(client, stored, "download").status_code == 403
        if not makes:
            assert post(client, None, "make").status_code == 403
            assert post(client, stored, "verify").status_code == 403
    customer, strict = Client(), Client(enforce_csrf_checks=True)
    customer.force_login(User.objects.create_user("customer"))
    strict.force_login(staff_user(None))
    for action, row in (("make", None), ("verify", stored), ("download", stored)):
        assert post(customer, row, action).status_code == 302
        assert post(Client(), row, action).status_code == 302
        assert post(strict, row, action).status_code == 403
        assert logged_in_again().get(f"/admin/backups/{stored.pk}/download/").status_code == 405


def test_the_page_says_how_old_the_newest_verified_backup_is(stored, settings):
    client = logged_in(VIEWERS)
    assert (
        "The newest verified backup is 0\xa0minutes old."
        in client.get("/admin/backend/backuprun/").text
    )
    BackupRun.objects.all().delete()
    assert "There is no verified backup yet." in client.get("/admin/backend/backuprun/").text
    settings.SERVICE = {**settings.SERVICE, "BACKUP_TO": ""}
    assert "No place for backups is set." in client.get("/admin/backend/backuprun/").text


def test_no_second_backup_is_made_at_the_same_time_and_none_without_a_place(stored, settings):
    client = logged_in()
    history.begin()
    assert "A backup is being made already." in post(client, None, "make", follow=True).text
    settings.SERVICE = {**settings.SERVICE, "BACKUP_TO": ""}
    assert "set BACKUP_TO." in post(client, None, "make", follow=True).text
    for action in ("verify", "download"):
        page = post(client, stored, action, follow=True)
        assert "This run has no archive in BACKUP_TO." in page.text


def test_what_reading_an_archive_again_shows_is_noted_with_its_run(stored):
    with pytest.raises(Exception, match=r".+"):
        run("backup", "--verify", NAME)
    stored.refresh_from_db()
    assert stored.note.startswith("Read again on 20")

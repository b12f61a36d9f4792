"""Storage quotas: who has room for how much, at once, and when room is free again."""

from __future__ import annotations

import base64
import io
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.db.models import F

from backend.kernel.principal import CLIENT as PUBLIC_CALLER
from backend.kernel.principal import MASTER as MASTER_KEY
from backend.site.staff import ADMINISTRATORS, EDITORS, VIEWERS
from objects.database import maintenance
from objects.files import quotas, records, service
from objects.files.models import FileQuota, FileUsage, StoredFile
from objects.files.orphans import remove_unused
from objects.tasks import remove_expired
from tests.objects.admin.staff import logged_in
from tests.objects.files.test_limits import MULTIPART, form
from tests.objects.files.uploads import file_path, send, stored, stored_names, upload
from tests.people import User, sign_up
from tests.rest import CLIENT, MASTER, READ_ONLY
from tests.threads import at_once

pytestmark = pytest.mark.django_db

QUOTA = 1000
ROOM = b"x" * 400


@pytest.fixture(autouse=True)
def small(settings: Any) -> None:
    settings.SERVICE = {
        **settings.SERVICE,
        "FILE_QUOTA": QUOTA,
        "FILE_QUOTA_PUBLIC": QUOTA,
        "FILE_UPLOAD_PUBLIC": True,
        "FILE_UPLOAD_ANONYMOUS": True,
    }


@pytest.fixture
def ann() -> User:
    return sign_up("ann")


@pytest.fixture
def bob() -> User:
    return sign_up("bob")


def used(account: User | str) -> int:
    return quotas.usage_of(account if isinstance(account, str) else account.user_id).used


def put(user: User, content: bytes = ROOM) -> str:
    name: str = stored("a.txt", content, headers=user.headers)
    return name


def assert_full(headers: dict[str, str], content: bytes = ROOM, limit: int = QUOTA) -> None:
    """No way to upload has room for so much, and nothing of it stays."""
    before = stored_names()
    in_json: dict[str, Any] = {
        "_ApplicationId": "test-app",
        "_JavaScriptKey": "test-javascript-key",
    }
    if "X-Svc-Session-Token" in headers:
        in_json["_SessionToken"] = headers["X-Svc-Session-Token"]
    in_json["base64"] = base64.b64encode(content).decode()
    for answer in (
        upload("a.txt", content, headers=headers),
        upload("a.txt", content, headers=headers, length=None),
        upload("a.txt", form(content), MULTIPART, headers=headers),
        send("POST", "/files/a.txt", json.dumps(in_json).encode()),
    ):
        assert answer.error == (400, 130)
        assert answer.json["error"] == (
            f"The storage quota of {limit} bytes has no room for this file."
        )
    assert stored_names() == before


def test_an_upload_that_doesnt_fit_is_refused_and_names_the_limit(ann, bob):
    put(ann)
    put(ann)
    assert_full(ann.headers)
    put(ann, b"x" * 200)  # to the last byte
    assert used(ann) == QUOTA
    assert_full(ann.headers, b"x")
    put(bob)  # has a quota of their own


def test_the_default_is_ten_gigabytes():
    from backend.settings.conf import DEFAULTS

    assert DEFAULTS["FILE_QUOTA"] == DEFAULTS["FILE_QUOTA_PUBLIC"] == 10 * 1024**3


def test_zero_is_no_limit(ann, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_QUOTA": 0, "FILE_QUOTA_PUBLIC": 0}
    put(ann, ROOM * 10)
    assert upload("a.txt", ROOM * 10, headers=CLIENT).status == 201
    assert used(ann) == used(quotas.PUBLIC) == 4000


def test_uploads_without_a_user_share_one_quota(ann):
    for _ in range(2):
        assert upload("a.txt", ROOM, headers=CLIENT).status == 201
    assert_full(CLIENT)
    put(ann)


def test_an_anonymous_user_has_the_quota_of_a_user(client, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    answer = client.post("/users", {"authData": {"anonymous": {"id": "f5b9a2c0-0000-4000"}}})
    headers = {**CLIENT, "X-Svc-Session-Token": answer.json["sessionToken"]}
    for _ in range(2):
        assert upload("a.txt", ROOM, headers=headers).status == 201
    assert_full(headers)
    assert used(answer.json["objectId"]) == 800


def test_the_master_key_has_no_quota(ann):
    for headers in (MASTER, {**MASTER, "X-Svc-Session-Token": ann.headers["X-Svc-Session-Token"]}):
        for _ in range(3):
            stored("a.txt", ROOM, headers=headers)
    assert used(ann) == used(quotas.PUBLIC) == 0
    assert quotas.account_of(MASTER_KEY) is None
    assert quotas.account_of(PUBLIC_CALLER) == quotas.PUBLIC


def test_a_used_up_quota_is_refused_before_the_body_is_read(ann):
    put(ann, b"x" * QUOTA)

    class Unread(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise AssertionError("the body was read")

    answer = upload("a.txt", Unread(), headers=ann.headers, length=20)
    assert answer.error == (400, 130)


@pytest.mark.django_db(transaction=True)
def test_uploads_at_the_same_time_never_pass_together(ann):
    answers = at_once([partial(upload, "a.txt", ROOM, headers=ann.headers) for _ in range(8)])
    assert sorted(answer.status for answer in answers) == [201] * 2 + [400] * 6
    assert used(ann) == 800
    assert len(stored_names()) == 2


def test_removing_a_file_frees_its_room(ann):
    first = put(ann)
    put(ann)
    assert send("DELETE", f"/files/{first}", headers=MASTER).status == 200
    assert used(ann) == 400
    put(ann)


def test_the_clean_up_frees_room(ann):
    names = [put(ann), put(ann)]
    StoredFile.objects.filter(name__in=names).update(created_at=F("created_at") - timedelta(days=2))
    assert remove_unused().files == 2
    assert used(ann) == 0


def test_the_clean_up_corrects_what_sql_changed(ann, bob):
    name = put(ann)
    put(bob)
    StoredFile.objects.filter(name=name).delete()
    FileUsage.objects.filter(account=bob.user_id).delete()
    assert (used(ann), used(bob)) == (400, 0)
    remove_unused()
    assert (used(ann), used(bob)) == (0, 400)


@pytest.mark.django_db(transaction=True)
def test_counting_again_misses_no_upload_at_the_same_time(ann, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_QUOTA": 10**9}
    put(ann)

    def wrong_and_again() -> None:
        FileUsage.objects.update(bytes=F("bytes") + 7)
        records.count_again()

    put_one = partial(put, ann)
    at_once([wrong_and_again, *[put_one] * 5, wrong_and_again, *[put_one] * 5])
    records.count_again()
    assert used(ann) == 400 * 11


class Dying(FileSystemStorage):
    """A storage whose process ends in the middle."""

    def _save(self, name: str, content: Any) -> str:
        super()._save(name, content)
        raise SystemExit("killed while it stored")

    def delete(self, name: str) -> None:
        super().delete(name)
        raise SystemExit("killed while it removed")


def dying(settings: Any) -> None:
    files = settings.STORAGES["files"]
    settings.STORAGES = {**settings.STORAGES, "files": {**files, "BACKEND": f"{__name__}.Dying"}}


def living(settings: Any) -> None:
    files = settings.STORAGES["files"]
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "files": {**files, "BACKEND": backend}}


def an_hour_later() -> None:
    StoredFile.objects.update(created_at=F("created_at") - timedelta(minutes=61))


def test_a_process_that_dies_while_it_stores_leaves_no_quota_in_use(ann, settings):
    dying(settings)
    with pytest.raises(SystemExit):
        upload("a.txt", ROOM, headers=ann.headers)
    living(settings)
    (name,) = StoredFile.objects.values_list("name", flat=True)
    # It may still be running, so the room is taken, but no reader gets half a file.
    assert used(ann) == 400
    assert send("GET", file_path(name)).error == (404, 101)
    remove_expired()
    assert StoredFile.objects.exists()
    an_hour_later()
    remove_expired()
    assert used(ann) == 0
    assert not StoredFile.objects.exists()
    assert name not in stored_names()


def test_a_process_that_dies_while_it_removes_leaves_no_quota_in_use(ann, settings):
    name = put(ann)
    an_hour_later()
    dying(settings)
    with pytest.raises(SystemExit):
        send("DELETE", f"/files/{name}", headers=MASTER)
    living(settings)
    assert send("GET", file_path(name)).error == (404, 101)
    remove_expired()
    assert used(ann) == 0
    assert not StoredFile.objects.exists()


def test_a_storage_that_fails_to_remove_leaves_the_file_as_it_is(ann, tmp_path):
    name = put(ann)
    place = tmp_path / "files" / name[:2] / name
    place.rename(place.with_suffix(".kept"))
    place.mkdir()  # which can't be removed as a file
    (place / "x").touch()
    assert send("DELETE", f"/files/{name}", headers=MASTER).error == (400, 153)
    assert used(ann) == 400
    assert send("HEAD", file_path(name)).status == 200


def test_an_upload_that_takes_longer_than_its_row_may_wait_is_refused(ann, settings, monkeypatch):
    """The row was removed as a left-over: no bytes stay without one."""

    class Slow(FileSystemStorage):
        def _save(self, name: str, content: Any) -> str:
            saved = super()._save(name, content)
            an_hour_later()
            service.remove_unfinished()
            return saved

    global SlowStorage
    SlowStorage = Slow
    files = settings.STORAGES["files"]
    backend = f"{__name__}.SlowStorage"
    settings.STORAGES = {**settings.STORAGES, "files": {**files, "BACKEND": backend}}
    assert upload("a.txt", ROOM, headers=ann.headers).error == (400, 130)
    assert not StoredFile.objects.exists()
    assert not stored_names()


SlowStorage: type[FileSystemStorage]


@pytest.mark.django_db(transaction=True)
def test_nothing_is_removed_in_maintenance_mode(ann, settings):
    dying(settings)
    with pytest.raises(SystemExit):
        upload("a.txt", ROOM, headers=ann.headers)
    living(settings)
    an_hour_later()
    maintenance.on()
    assert service.remove_unfinished() == 0
    maintenance.off()
    assert service.remove_unfinished() == 1


# -- Quotas of single users -----------------------------------------------------------------------


def test_a_user_may_have_another_quota(ann, bob):
    quotas.set_quota(ann.user_id, 500)
    put(ann)
    assert_full(ann.headers, limit=500)
    quotas.set_quota(ann.user_id, 0)
    put(ann, ROOM * 10)
    quotas.set_quota(ann.user_id, None)
    assert_full(ann.headers, b"x")
    assert quotas.usage_of(ann.user_id) == quotas.Usage(4400, QUOTA, False)
    assert quotas.usage_of(bob.user_id).is_used_up is False


def test_a_quota_goes_with_its_user(ann, master):
    quotas.set_quota(ann.user_id, 500)
    assert master.delete(f"/users/{ann.user_id}").status == 200
    assert not FileQuota.objects.exists()


def test_no_key_and_no_user_changes_a_quota(ann, master):
    for caller in (ann, master):
        caller.put(f"/users/{ann.user_id}", {"fileQuota": 5, "quota": 5})
    assert quotas.usage_of(ann.user_id).allowed == QUOTA
    for name in ("_FileQuota", "FileQuota", "objects_file_quota"):
        assert ann.get(f"/classes/{name}").status != 200
    assert upload("a.txt", ROOM, headers=READ_ONLY).error == (400, 119)


def action(user: User) -> str:
    return f"/admin/people/users/{user.user_id}/file-quota/"


def test_administrators_see_and_change_a_quota(ann):
    put(ann)
    staff = logged_in(ADMINISTRATORS)
    page = staff.get(f"/admin/people/users/{ann.user_id}/").text.replace("\xa0", " ")
    assert "400 bytes of 1000 bytes" in page
    assert "the default quota" in page
    staff.post(action(ann), {"megabytes": "3"})
    assert quotas.usage_of(ann.user_id) == quotas.Usage(400, 3 * 1024**2, True)
    page = staff.get(f"/admin/people/users/{ann.user_id}/").text.replace("\xa0", " ")
    assert "400 bytes of 3.0 MB" in page
    for wrong in ("-1", "1.5", "x", "9" * 30, "\0"):
        assert staff.post(action(ann), {"megabytes": wrong}).status_code == 400, wrong
    assert quotas.usage_of(ann.user_id).allowed == 3 * 1024**2
    staff.post(action(ann), {"megabytes": "0"})
    assert quotas.usage_of(ann.user_id).allowed == 0
    staff.post(action(ann), {"megabytes": ""})
    assert quotas.usage_of(ann.user_id).is_own is False


@pytest.mark.parametrize("group", [VIEWERS, EDITORS])
def test_other_staff_see_a_quota_only(ann, group):
    staff = logged_in(group)
    assert staff.post(action(ann), {"megabytes": "3"}).status_code == 403
    page = staff.get(f"/admin/people/users/{ann.user_id}/").text
    assert "the default quota" in page
    assert "Set the quota" not in page
    assert not FileQuota.objects.exists()

"""Who may upload, read, look at and remove files.

Parse Server's advisories xfh7-phr7-gr2x (a read-only master key writes files) and hwx8-q9cg-mqmc
(metadata without rights) are among the cases.
"""

from __future__ import annotations

import io
import json
from urllib.parse import urlsplit

import pytest
import time_machine

from backend.kernel.errors import FileSaveFailed, ObjectNotFound, OperationForbidden, ServiceError
from backend.kernel.principal import CLIENT as ANYBODY
from backend.kernel.principal import MASTER as MASTER_KEY
from backend.kernel.principal import READ_ONLY_MASTER, Authority, Principal
from backend.settings.conf import service_settings
from objects.files import service
from objects.files.uploads import Upload
from tests.objects.files.uploads import PNG, Sent, file_path, send, stored, stored_names, upload
from tests.people import make_role, sign_up
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return sign_up("ann")


@pytest.fixture
def bob():
    return sign_up("bob")


def private(acl: dict[str, object], headers: dict[str, str] = MASTER) -> str:
    """A private file that was uploaded with these headers; its name."""
    return stored("secret.txt", b"secret", headers={**headers, "X-Svc-File-ACL": json.dumps(acl)})


def details(name: str, headers: dict[str, str]) -> Sent:
    """What the service tells about a file."""
    return send("GET", f"/files/test-app/metadata/{name}", headers=headers)


# -- Uploading ------------------------------------------------------------------------------------


def test_the_public_may_not_upload_unless_a_setting_says_so(settings):
    answer = upload("a.png", headers=CLIENT)
    assert answer.error == (400, 130)
    assert answer.json["error"] == "File upload by public is disabled."
    assert not stored_names()
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_PUBLIC": True}
    assert upload("a.png", headers=CLIENT).status == 201


def test_users_may_upload_unless_a_setting_says_no(ann, settings):
    answer = upload("a.png", headers=ann.headers)
    assert answer.status == 201
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_AUTHENTICATED": False}
    answer = upload("a.png", headers=ann.headers)
    assert answer.error == (400, 130)
    assert answer.json["error"] == "File upload by authenticated user is disabled."
    assert upload("a.png").status == 201


def test_anonymous_users_may_not_upload_unless_a_setting_says_so(master, settings):
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    made = send(
        "POST",
        "/users",
        json.dumps({"authData": {"anonymous": {"id": "f5b9a2c0-0000-4000"}}}).encode(),
        CLIENT,
        content_type="application/json",
    )  # fmt: skip
    headers = {**CLIENT, "X-Svc-Session-Token": made.json["sessionToken"]}
    answer = upload("a.png", headers=headers)
    assert answer.error == (400, 130)
    assert answer.json["error"] == "File upload by anonymous user is disabled."
    settings.SERVICE = {**settings.SERVICE, "FILE_UPLOAD_ANONYMOUS": True}
    assert upload("a.png", headers=headers).status == 201


def test_a_user_uploads_with_a_session_token_in_json(ann):
    message = {
        "_ApplicationId": "test-app",
        "_JavaScriptKey": "test-javascript-key",
        "_SessionToken": ann.token,
        "_ContentType": "text/plain",
        "base64": "aGVsbG8=",
    }
    assert send("POST", "/files/hello.txt", json.dumps(message).encode()).status == 201
    wrong = json.dumps({**message, "_SessionToken": "r:nobody"}).encode()
    assert send("POST", "/files/hello.txt", wrong).error == (400, 209)


def test_rights_are_asked_before_the_body_is_read():
    class Unread(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise AssertionError("the body was read")

    assert upload("a.png", Unread(), headers=CLIENT, length=10).error == (400, 130)
    assert upload("a.png", Unread(), headers=READ_ONLY, length=10).error == (400, 119)
    assert upload("..", Unread(), length=10).error == (400, 122)


def test_the_read_only_master_key_uploads_and_removes_nothing():
    name = stored("a.png")
    assert upload("a.png", headers=READ_ONLY).error == (400, 119)
    message = {"_ApplicationId": "test-app", "_MasterKey": "test-read-only-key", "base64": "QQ=="}
    assert send("POST", "/files/a.png", json.dumps(message).encode()).error == (400, 119)
    assert send("DELETE", f"/files/{name}", headers=READ_ONLY).error == (400, 119)
    assert send("GET", file_path(name)).body == PNG


def test_the_door_itself_checks_rights():
    user = Principal(Authority.CLIENT, user_id="abcdefghij")
    with Upload(10) as content:
        content.write(b"text")
        for caller, error in ((ANYBODY, FileSaveFailed), (READ_ONLY_MASTER, OperationForbidden)):
            with pytest.raises(error):
                service.upload(caller, "a.txt", content, None, service.Notes())
        record = service.upload(user, "a.txt", content, None, service.Notes())
    assert record.owner_id == "abcdefghij"
    for caller in (ANYBODY, user, READ_ONLY_MASTER):
        with pytest.raises(ServiceError) as refused:
            service.delete(caller, record.name)
        assert refused.value.code == 119
    service.delete(MASTER_KEY, record.name)
    with pytest.raises(ObjectNotFound):
        service.open_file(None, record.name, None)


# -- Reading --------------------------------------------------------------------------------------


def test_everyone_reads_a_public_file_without_any_header():
    assert send("GET", file_path(stored("a.png"))).status == 200
    assert send("GET", file_path(private({"*": {"read": True}}))).status == 200


def test_a_private_file_isnt_there_for_others(ann, bob):
    name = private({ann.user_id: {"read": True}}, ann.headers)
    keyless = {**APPLICATION, "X-Svc-Session-Token": ann.token}
    for headers in ({}, APPLICATION, keyless, CLIENT, bob.headers):
        answer = send("GET", file_path(name), headers=headers)
        assert answer.error == (404, 101)
        assert answer.json["error"] == "File not found."
        assert send("HEAD", file_path(name), headers=headers).status == 404
    for headers in (ann.headers, MASTER, READ_ONLY):
        assert send("GET", file_path(name), headers=headers).body == b"secret"


def test_members_of_a_role_read_what_the_role_may_read(ann, bob, master):
    make_role(master, "Staff", users=[bob])
    name = private({"role:Staff": {"read": True}})
    assert send("GET", file_path(name), headers=bob.headers).status == 200
    assert send("GET", file_path(name), headers=ann.headers).status == 404


def test_an_empty_access_list_leaves_the_master_key_alone(ann):
    name = private({}, ann.headers)
    assert send("GET", file_path(name), headers=ann.headers).status == 404
    assert send("GET", file_path(name), headers=MASTER).status == 200


def test_wrong_credentials_are_an_error_and_not_a_stranger(ann):
    name = stored("a.png")
    assert send("GET", file_path(name), headers={**MASTER, "X-Svc-Master-Key": "no"}).error == (
        403,
        261,
    )
    token = {**ann.headers, "X-Svc-Session-Token": "r:nobody"}
    assert send("GET", file_path(name), headers=token).error == (400, 209)


def test_a_private_file_stays_out_of_shared_caches(ann):
    name = private({ann.user_id: {"read": True}})
    answer = send("GET", file_path(name), headers=ann.headers)
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("app_id", ["other", "test-app2", "TEST-APP", "é"])
def test_another_application_is_refused(app_id):
    name = stored("a.png")
    assert send("GET", f"/files/{app_id}/{name}").error == (403, 119)
    described = send("GET", f"/files/{app_id}/metadata/{name}", headers=MASTER)
    assert (described.status, described.json) == (200, {})


@pytest.mark.parametrize("name", ["nothing.png", "0" * 32 + "_a.png", "..", "' OR 1=1 --", "é"])
def test_what_isnt_there_is_404(name):
    assert send("GET", file_path(name)).error == (404, 101)
    assert (details(name, MASTER).status, details(name, MASTER).json) == (200, {})


# -- Links ----------------------------------------------------------------------------------------


def link(name: str, headers: dict[str, str]) -> str:
    """A signed link's path and query."""
    parts = urlsplit(details(name, headers).json["url"])
    return f"{parts.path}?{parts.query}"


def test_a_signed_link_opens_a_private_file_until_it_expires(ann):
    name = private({ann.user_id: {"read": True}})
    with time_machine.travel("2026-05-01T12:00:00Z", tick=False) as clock:
        path = link(name, READ_ONLY)
        assert send("GET", path).body == b"secret"
        assert send("HEAD", path).status == 200
        clock.shift(service_settings.FILE_URL_VALIDITY - 1)
        assert send("GET", path).body == b"secret"
        clock.shift(1)
        assert send("GET", path).error == (403, 119)


def test_the_setting_says_how_long_links_are_good(ann, settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_URL_VALIDITY": 60}
    name = private({})
    with time_machine.travel("2026-05-01T12:00:00Z", tick=False):
        assert details(name, MASTER).json["expiresAt"] == "2026-05-01T12:01:00.000Z"


def test_a_forged_link_opens_nothing(settings):
    name, other = private({}), private({})
    path = link(name, MASTER)
    _, _, query = path.partition("?")
    expires, signature = (part.partition("=")[2] for part in query.split("&"))
    forged = [
        f"{file_path(other)}?{query}",
        f"{file_path(name)}?expires={int(expires) + 1}&signature={signature}",
        f"{file_path(name)}?expires=0{expires}&signature={signature}",
        f"{file_path(name)}?expires={expires}&signature={signature[:-1]}",
        f"{file_path(name)}?expires={expires}&signature=",
        f"{file_path(name)}?expires=x&signature={signature}",
        f"{file_path(name)}?expires={expires}",
        f"{file_path(name)}?signature={signature}",
        f"{file_path(name)}?expires=%D9%A1&signature={signature}",
    ]
    for wrong in forged:
        assert send("GET", wrong).error == (404, 101), wrong
    assert send("GET", path).status == 200
    settings.SECRET_KEY = "another"
    assert send("GET", path).error == (404, 101)


def test_only_who_may_read_gets_a_link(ann, bob):
    name = private({ann.user_id: {"read": True}})
    assert send("GET", link(name, ann.headers)).body == b"secret"
    for headers in (bob.headers, CLIENT, APPLICATION, {}):
        assert details(name, headers).json == {}
    signed = link(name, ann.headers).partition("?")[2]
    again = send("GET", f"/files/test-app/metadata/{name}?{signed}", headers=CLIENT)
    assert again.json == {}


# -- What is known --------------------------------------------------------------------------------


def test_metadata_are_for_callers_who_may_read_with_or_without_a_key():
    notes = {"X-Svc-File-Metadata": '{"camera": "x"}', "X-Svc-File-Tags": '{"year": "2026"}'}
    answer = upload("a.png", headers={**MASTER, **notes})
    for caller in (CLIENT, APPLICATION, {}):
        body = details(answer.json["name"], caller).json
        assert body.pop("createdAt").endswith("Z")
        assert body == {
            **answer.json,
            "size": len(PNG),
            "contentType": "image/png",
            "metadata": {"camera": "x"},
            "tags": {"year": "2026"},
        }
    wrong = {**CLIENT, "X-Svc-REST-API-Key": "wrong"}
    assert details(answer.json["name"], wrong).error == (403, 262)


# -- Callers whom the settings exclude ------------------------------------------------------------


@pytest.fixture
def anonymous(settings) -> dict[str, str]:
    settings.SERVICE = {**settings.SERVICE, "ALLOW_ANONYMOUS_USERS": True}
    body = json.dumps({"authData": {"anonymous": {"id": "f5b9a2c0-0000-4000"}}}).encode()
    token = send("POST", "/users", body, CLIENT, content_type="application/json").json
    return {**CLIENT, "X-Svc-Session-Token": token["sessionToken"]}


@pytest.mark.parametrize("kind", ["public", "anonymous", "authenticated"])
def test_a_setting_closes_all_files_to_a_kind_of_caller(ann, anonymous, settings, kind):
    name = stored("a.png")
    callers = {"public": {}, "anonymous": anonymous, "authenticated": ann.headers}
    settings.SERVICE = {**settings.SERVICE, f"FILE_DOWNLOAD_{kind.upper()}": False}
    for caller, headers in callers.items():
        answer, described = send("GET", file_path(name), headers=headers), details(name, headers)
        if caller == kind:
            assert answer.error == described.error == (403, 119)
            text = kind if kind == "public" else f"{kind} user"
            assert answer.json["error"] == f"File download by {text} is disabled."
        else:
            assert (answer.status, described.status) == (200, 200)
            is_shared = "public" in answer.headers["cache-control"]
            assert is_shared == (kind != "public")
    assert send("GET", file_path(name), headers=MASTER).status == 200


def test_a_signed_link_opens_a_file_although_public_files_are_closed(settings):
    settings.SERVICE = {**settings.SERVICE, "FILE_DOWNLOAD_PUBLIC": False}
    name = private({})
    assert send("GET", file_path(name)).error == (404, 101)
    assert send("GET", link(name, MASTER)).body == b"secret"


# -- Removing -------------------------------------------------------------------------------------


def test_the_master_key_removes_a_file(ann):
    name = stored("a.png")
    for headers in (CLIENT, ann.headers):
        assert send("DELETE", f"/files/{name}", headers=headers).error == (403, 119)
    answer = send("DELETE", f"/files/{name}", headers=MASTER)
    assert (answer.status, answer.json) == (200, {})
    assert send("GET", file_path(name)).error == (404, 101)
    assert not stored_names()


def test_removing_in_the_way_of_the_sdks():
    message = {"_method": "DELETE", "_ApplicationId": "test-app", "_MasterKey": "test-master-key"}
    name = stored("a.png")
    assert send("POST", f"/files/{name}", json.dumps(message).encode()).status == 200
    name = stored("a.png")
    message["_MasterKey"] = "test-read-only-key"
    assert send("POST", f"/files/{name}", json.dumps(message).encode()).error == (400, 119)
    assert send("GET", file_path(name)).status == 200


@pytest.mark.parametrize("name", ["nothing.png", "0" * 32 + "_a.png", "..", "keys.env"])
def test_what_isnt_there_cant_be_removed(name):
    assert send("DELETE", f"/files/{name}", headers=MASTER).error == (400, 153)


def test_a_storage_that_fails_is_reported_by_code_153(tmp_path):
    name = stored("a.png")
    place = tmp_path / "files" / name[:2] / name
    place.unlink()
    place.mkdir()
    (place / "in the way").touch()
    assert send("DELETE", f"/files/{name}", headers=MASTER).error == (400, 153)
    assert details(name, MASTER).status == 200


def test_a_storage_that_cant_store_is_reported_by_code_130_and_nothing_stays(tmp_path):
    (tmp_path / "files").write_text("in the way")
    assert upload("a.png").error == (400, 130)
    assert stored_names() == set()

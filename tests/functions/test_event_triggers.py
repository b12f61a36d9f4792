"""Triggers around signing in and out, new passwords, and files."""

from __future__ import annotations

from typing import Any

import pytest

from functions import (
    FILE,
    FindRequest,
    ScriptFailed,
    TriggerRequest,
    after_delete,
    after_login,
    after_logout,
    after_save,
    before_delete,
    before_find,
    before_login,
    before_password_reset,
    before_save,
)
from tests.people import log_in, sign_up
from tests.rest import CLIENT, MASTER, Api


def test_a_trigger_keeps_a_user_from_signing_in(master: Api) -> None:
    sign_up("good")
    sign_up("bad", banned=True)

    @before_login()
    def check(request: TriggerRequest) -> None:
        assert request.user_id == request.object.id
        if request.object.get("banned"):
            raise ScriptFailed("You are banned.")

    before = len(master.results("_Session"))
    reply = log_in("bad")
    assert (reply.error, reply.json["error"]) == ((400, 141), "You are banned.")
    assert log_in("good").status == 200
    assert len(master.results("_Session")) == before + 1
    assert log_in("bad", "wrong password").error == (404, 101)


def test_the_master_key_goes_through_it_when_it_signs_a_user_in(master: Api) -> None:
    ann = sign_up("ann")

    @before_login()
    def check(request: TriggerRequest) -> None:
        assert request.master
        raise ScriptFailed("No.")

    assert master.post("/loginAs", {"userId": ann.user_id}).error == (400, 141)


@pytest.mark.django_db(transaction=True)
def test_signing_in_and_out_is_reported(emptied: None) -> None:
    calls: list[Any] = []
    sign_up("ann")

    @after_login()
    def signed_in(request: TriggerRequest) -> None:
        calls.append(("in", request.object["username"]))

    @after_logout()
    def signed_out(request: TriggerRequest) -> None:
        assert "sessionToken" not in request.object
        calls.append(("out", request.object["user"].id == request.user_id))

    token = log_in("ann").json["sessionToken"]
    api = Api({**CLIENT, "X-Svc-Session-Token": token})
    assert api.post("/logout").status == 200
    assert api.get("/users/me").error == (400, 209)
    assert calls == [("in", "ann"), ("out", True)]


@pytest.mark.django_db(transaction=True)
def test_a_new_password_is_kept_from_a_user_and_not_reported(emptied: None) -> None:
    from objects.users.email.tasks import mail_link
    from objects.users.models import MailToken

    ann = sign_up("ann", email="ann@example.com")

    @before_password_reset()
    def refuse(request: TriggerRequest) -> None:
        if request.object["username"] == "ann":
            raise ScriptFailed("Ask the office.")

    mail_link.run("reset", address="ann@example.com")
    assert not MailToken.objects.filter(user_id=ann.user_id).exists()
    reply = Api(CLIENT).post("/requestPasswordReset", {"email": "ann@example.com"})
    assert (reply.status, reply.json) == (200, {})


def upload(api: Api, name: str = "a.txt", content: bytes = b"hello") -> Any:
    return api.call("POST", f"/files/{name}", raw=content, content_type="text/plain")


def test_a_file_is_refused_or_described_before_it_is_stored(master: Api) -> None:
    calls: list[Any] = []

    @before_save(FILE)
    def check(request: TriggerRequest) -> None:
        calls.append((request.object["size"], request.object["contentType"]))
        if request.object["size"] > 10:
            raise ScriptFailed("Too long.")
        request.object["tags"] = {"checked": "yes"}
        request.object["metadata"]["by"] = "trigger"

    stored = upload(master)
    assert stored.status == 201, stored.json
    assert upload(master, content=b"x" * 11).error == (400, 141)
    described = master.get(f"/files/test-app/metadata/{stored.json['name']}").json
    assert described["tags"] == {"checked": "yes"}
    assert described["metadata"] == {"by": "trigger"}
    assert calls == [(5, "text/plain"), (11, "text/plain")]


def test_a_trigger_chooses_the_directory_of_a_file(master: Api) -> None:
    @before_save(FILE)
    def by_length(request: TriggerRequest) -> None:
        request.object["directory"] = "long" if request.object["size"] > 10 else None

    @after_save(FILE)
    def stored(request: TriggerRequest) -> None:
        if request.object["size"] > 20:
            request.object["directory"] = "changed"

    name = upload(master, content=b"x" * 21).json["name"]
    assert name.startswith("long/")
    assert "/" not in upload(master).json["name"]


def test_a_trigger_that_says_nothing_of_the_directory_leaves_it(master: Api) -> None:
    @before_save(FILE)
    def shorter(request: TriggerRequest) -> None:
        del request.object["directory"]

    headers = {"X-Svc-File-Directory": "a/b"}
    stored = master.call(
        "POST", "/files/a.txt", raw=b"x", content_type="text/plain", headers=headers
    )
    assert stored.json["name"].startswith("a/b/")


def test_a_trigger_can_t_choose_a_directory_that_is_none(master: Api) -> None:
    @before_save(FILE)
    def outside(request: TriggerRequest) -> None:
        request.object["directory"] = "../outside"

    assert upload(master).error == (400, 122)


@pytest.mark.django_db(transaction=True)
def test_files_that_are_stored_and_removed_are_reported(emptied: None) -> None:
    master = Api(MASTER)
    calls: list[Any] = []

    @after_save(FILE)
    def stored(request: TriggerRequest) -> None:
        calls.append(("stored", request.object["name"]))

    @before_delete(FILE)
    def keep(request: TriggerRequest) -> None:
        if request.object["name"].endswith("keep.txt"):
            raise ScriptFailed("It is to be kept.")

    @after_delete(FILE)
    def removed(request: TriggerRequest) -> None:
        calls.append(("removed", request.object["name"]))

    name = upload(master).json["name"]
    remaining = upload(master, "keep.txt").json["name"]
    assert master.delete(f"/files/{remaining}").error == (400, 141)
    assert master.delete(f"/files/{name}").status == 200
    assert calls == [("stored", name), ("stored", remaining), ("removed", name)]
    master.call("GET", f"/files/test-app/metadata/{remaining}")


def test_a_download_is_kept_from_who_may_read_the_file_otherwise(master: Api, client: Api) -> None:
    name = upload(master).json["name"]

    @before_find(FILE)
    def users_only(request: FindRequest) -> None:
        if request.user_id is None and not request.master:
            raise ScriptFailed("Please log in.")

    path = f"/files/test-app/{name}"
    assert Api({}).call("GET", path).error == (400, 141)
    assert client.call("GET", path).error == (400, 141)
    assert client.call("GET", f"/files/test-app/metadata/{name}").error == (400, 141)

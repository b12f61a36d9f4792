"""Exported files of a Parse Server are imported whole, and an import resumes after any stop."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from objects import triggers
from objects.core.names import Subject
from objects.users.models import Password
from tests.backend.operations.parse_import.exported import (
    HASH,
    PASSWORD,
    PICTURE,
    PNG,
    SCHEMAS,
    TIMES,
    TOKEN,
    USERS,
    note,
    problems,
)
from tests.people import with_token
from tests.rest import Api


@pytest.fixture
def whole(master: Api, export: Callable[..., Path], run: Callable[..., str]) -> str:
    return run(export())


def test_objects_keep_their_ids_times_and_access_lists(whole: str, master: Api) -> None:
    assert "Everything at the source is here." in whole
    assert master.get("/classes/Note/note0001").json == {
        "objectId": "note0001",
        "createdAt": "2020-01-02T03:04:05.678Z",
        "updatedAt": "2021-01-02T03:04:05.678Z",
        "ACL": {"ann": {"read": True, "write": True}, "role:Staff": {"read": True}},
        "text": "text 1",
        "author": {"__type": "Pointer", "className": "_User", "objectId": "ann"},
        "readers": {"__type": "Relation", "className": "_User"},
    }


def test_sessions_go_on_with_the_tokens_that_clients_have(whole: str) -> None:
    assert with_token(TOKEN).get("/users/me").json["objectId"] == "ann"


def test_passwords_are_those_that_users_know(whole: str, client: Api) -> None:
    reply = client.post("/login", {"username": "Ann", "password": PASSWORD})
    assert reply.json["objectId"] == "ann"
    wrong = client.post("/login", {"username": "Ann", "password": f"{PASSWORD}x"})
    assert wrong.error == (404, 101)


def test_rights_come_with_roles_owners_and_permissions(
    whole: str, client: Api, master: Api
) -> None:
    staff = with_token(master.post("/loginAs", {"userId": "bob"}).json["sessionToken"])
    owner = with_token(TOKEN)
    assert len(staff.get("/classes/Note").json["results"]) == 3
    assert staff.get("/classes/Note/note0001").status == 200
    assert owner.get("/classes/Note").error[1] == 119
    assert owner.get("/classes/Note/note0001").status == 200
    assert client.get("/classes/Note").error[1] == 119
    assert client.get("/classes/Note/note0001").error == (404, 101)
    assert owner.put("/classes/Note/note0001", {"text": "new"}).error[1] == 119


def test_relations_config_hooks_and_indexes_are_imported(whole: str, master: Api) -> None:
    where = {
        "$relatedTo": {
            "object": {"__type": "Pointer", "className": "Note", "objectId": "note0001"},
            "key": "readers",
        }
    }
    found = master.get("/classes/_User", where=where).json["results"]
    assert [user["objectId"] for user in found] == ["bob"]
    assert master.get("/config").json == {
        "params": {"a": 1, "b": "x"},
        "masterKeyOnly": {"b": True},
    }
    assert master.get("/hooks/functions/far").json["url"] == "https://hooks.example.org/far"
    assert "by_text" in master.get("/schemas/Note").json["indexes"]


def test_tokens_of_providers_are_left_behind(whole: str, master: Api) -> None:
    auth_data = master.get("/users/bob").json["authData"]
    assert auth_data == {"google": {"id": "7"}}


def test_triggers_are_not_called(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    called = []
    triggers.register("before_save", Subject("Note"), called.append)
    try:
        run(export())
    finally:
        triggers.unregister("before_save", Subject("Note"), called.append)
    assert called == []


def test_files_come_from_a_folder(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / PICTURE).write_bytes(PNG)
    lost = PICTURE.replace("0", "1")
    path = export(Note=[note(1, picture=PICTURE), note(2, picture=lost), note(3, picture="../x")])
    run(path, "--files-folder", str(files))
    metadata = master.get(f"/files/test-app/metadata/{PICTURE}")
    assert metadata.status == 200
    assert {each["place"] for each in problems(tmp_path)} == {f"file {lost}", "file ../x"}


def test_what_cant_be_imported_is_reported_and_the_comparison_fails(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    taken = {"_id": "eve", "username": "ANN", **TIMES}
    users = [{**user, **TIMES} for user in USERS]
    path = export(
        _User=[*users, taken],
        Note=[note(1), note(2, text=7), note(3, **{"_id": "role:x"}), note(4, _p_author="x")],
    )
    with pytest.raises(CommandError, match="2 of the classes and relations differ"):
        run(path)
    places = {each["place"]: each["reason"] for each in problems(tmp_path)}
    assert places.keys() == {
        "_User/eve",
        "Note/note0002",
        "Note/role:x",
        "Note/Note.json, object 4",
    }
    assert "already exists" in places["_User/eve"]
    assert len(master.get("/classes/Note").json["results"]) == 1


def test_permissions_that_mean_nothing_here_close_the_class(
    master: Api, client: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    schemas: list[dict[str, Any]] = [dict(each) for each in SCHEMAS]
    schemas[3] = {**SCHEMAS[3], "_metadata": {"class_permissions": {"find": {"*": "maybe"}}}}
    run(export(_SCHEMA=schemas))
    (problem,) = problems(tmp_path)
    assert problem["place"] == "Note, permissions"
    assert problem["reason"].endswith(". The class is closed to clients.")
    assert client.get("/classes/Note").error[1] == 119


def test_a_stopped_import_continues_where_it_was(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    path = export(Note=[note(number) for number in range(2500)])
    file = path / "Note.json"
    whole = file.read_text().splitlines()
    file.write_text("\n".join([*whole[:2100], "{", *whole[2101:]]))
    with pytest.raises(CommandError, match=r"Note\.json:2101: not JSON"):
        run(path)
    count = {"count": "1", "limit": "0"}
    assert master.get("/classes/Note", **count).json["count"] == 2000
    # What is imported already isn't read again.
    changed = note(0, text="changed", _updated_at={"$date": "2022-01-01T00:00:00Z"})
    file.write_text("\n".join([json.dumps(changed), *whole[1:]]))
    with pytest.raises(CommandError, match="1 of the classes and relations differ"):
        run(path)
    assert master.get("/classes/Note", **count).json["count"] == 2500
    assert master.get("/classes/Note/note0000").json["text"] == "text 0"


def test_another_run_stores_what_is_newer_there_and_keeps_what_is_newer_here(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    run(export())
    master.put("/classes/Note/note0002", {"text": "newer here"})
    newer = {"_updated_at": {"$date": "2022-01-01T00:00:00Z"}}
    path = export(Note=[note(0), note(1, text="newer there", **newer), note(2), note(3)])
    out = run(path, "--again")
    assert re.search("^Note .* 1 newer here, the others equal$", out, re.M)
    assert re.search(r"^    note0002: updated later here \(.*\) than there \(2021-", out, re.M)
    assert "Everything at the source is here." in out
    texts = {each["objectId"]: each["text"] for each in master.get("/classes/Note").json["results"]}
    assert texts == {
        "note0000": "text 0",
        "note0001": "newer there",
        "note0002": "newer here",
        "note0003": "text 3",
    }


def test_passwords_of_accounts_that_are_here_already_are_added_once(
    master: Api, client: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    without = [
        {key: value for key, value in user.items() if key != "_hashed_password"} for user in USERS
    ]
    run(export(_User=[{**user, **TIMES} for user in without]))
    assert client.post("/login", {"username": "Ann", "password": PASSWORD}).error == (404, 101)
    path = export(_User=[{**user, **TIMES} for user in USERS])
    run(path, "--again")
    assert client.post("/login", {"username": "Ann", "password": PASSWORD}).status == 200
    master.put("/users/ann", {"password": "a newer one"})
    assert "1 newer here" in run(path, "--again")
    assert client.post("/login", {"username": "Ann", "password": "a newer one"}).status == 200


@pytest.mark.parametrize("cost", [15, 31])
def test_hashes_that_take_seconds_to_compare_are_left_behind(
    master: Api, client: Api, export: Callable[..., Path], run: Callable[..., str], cost: int
) -> None:
    costly = HASH.replace("$04$", f"${cost}$")
    run(export(_User=[{**USERS[0], **TIMES, "_hashed_password": costly}]))
    assert master.get("/users/ann").json["username"] == "Ann"
    assert not Password.objects.filter(user_id="ann").exists()
    assert client.post("/login", {"username": "Ann", "password": PASSWORD}).error == (404, 101)


def test_the_progress_of_another_source_is_refused(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    path = export()
    run(path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match=r"belongs to an import from .* --state FILE\."):
        run(tmp_path / "elsewhere")


def test_progress_of_another_version_says_what_to_do(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    path, state = export(), tmp_path / "state.json"
    state.write_text(json.dumps({"source": str(path), "version": 0, "steps": {"x": {"old": 1}}}))
    for options in ((), ("--again",)):
        with pytest.raises(CommandError, match=r"another version\. Delete it to start again\."):
            run(path, *options)
    state.unlink()
    assert "Everything at the source is here." in run(path)


def test_nothing_is_imported_in_maintenance_mode(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    path = export()
    call_command("maintenance", "on", "--message", "moving", stdout=io.StringIO())
    try:
        with pytest.raises(CommandError, match=r"^This service is in maintenance mode: moving\. "):
            run(path)
    finally:
        call_command("maintenance", "off", stdout=io.StringIO())
    assert master.get("/classes/Note").json["results"] == []
    assert problems(tmp_path) == []
    assert "Everything at the source is here." in run(path)
    assert len(master.get("/classes/Note").json["results"]) == 3

"""Exported files of a Parse Server are imported whole, and an import resumes after any stop."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from django.core.management import CommandError, call_command

from objects import triggers
from objects.core.names import Subject
from objects.users.models import Password
from tests.people import with_token
from tests.rest import Api

TIMES = {
    "_created_at": {"$date": "2020-01-02T03:04:05.678Z"},
    "_updated_at": {"$date": "2021-01-02T03:04:05.678Z"},
}
TOKEN = "r:0123456789abcdef0123456789abcdef"
PASSWORD = "correct horse battery staple"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
SCHEMAS = [
    {"_id": "_User", "nick": "string"},
    {"_id": "_Session"},
    {"_id": "_Role"},
    {
        "_id": "Note",
        "text": "string",
        "author": "*_User",
        "readers": "relation<_User>",
        "picture": "file",
        "_metadata": {
            "class_permissions": {
                "find": {"role:Staff": True},
                "get": {"*": True},
                "create": {},
                "update": {},
                "delete": {},
                "addField": {},
            },
            "indexes": {"by_text": {"text": 1}},
        },
    },
]
USERS = [
    {"_id": "ann", "username": "Ann", "email": "ann@example.org", "_hashed_password": HASH},
    {"_id": "bob", "username": "bob", "_auth_data_google": {"id": "7", "access_token": "secret"}},
]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PICTURE = "0123456789abcdef0123456789abcdef_a.png"


def note(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "_id": f"note{number:04d}",
        **TIMES,
        "text": f"text {number}",
        "_p_author": "_User$ann",
        "_rperm": ["ann", "role:Staff"],
        "_wperm": ["ann"],
        **fields,
    }


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write the files of an export; ``name=rows`` replaces one."""

    def write(**files: Sequence[Any]) -> Path:
        path = tmp_path / "export"
        path.mkdir(exist_ok=True)
        contents: dict[str, Sequence[Any]] = {
            "_SCHEMA": SCHEMAS,
            "_User": [
                {**user, **TIMES, "_rperm": ["*"], "_wperm": [user["_id"]]} for user in USERS
            ],
            "_Session": [
                {
                    "_id": "session1",
                    **TIMES,
                    "_p_user": "_User$ann",
                    "_session_token": TOKEN,
                    "expiresAt": {"$date": "2099-01-01T00:00:00Z"},
                    "createdWith": {"action": "login", "authProvider": "password"},
                }
            ],
            "_Role": [{"_id": "staff", "name": "Staff", **TIMES, "_rperm": ["*"], "_wperm": []}],
            "_Join:users:_Role": [{"_id": "1", "owningId": "staff", "relatedId": "bob"}],
            "_Join:readers:Note": [{"_id": "1", "owningId": "note0001", "relatedId": "bob"}],
            "Note": [note(number) for number in range(3)],
            "_GlobalConfig": [
                {
                    "_id": 1,
                    "params": {"a": {"$numberInt": "1"}, "b": "x"},
                    "masterKeyOnly": {"b": True},
                }
            ],
            "_Hooks": [{"_id": "1", "functionName": "far", "url": "https://hooks.example.org/far"}],
            **files,
        }
        for name, rows in contents.items():
            lines = "\n".join(json.dumps(row) for row in rows)
            (path / f"{name}.json").write_text(lines)
        return path

    return write


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    def command(source: Path, *options: str) -> str:
        out = io.StringIO()
        state = str(tmp_path / "state.json")
        call_command(
            "import_parse", str(source), "--state", state, *options, stdout=out, stderr=out
        )
        return out.getvalue()

    return command


def problems(tmp_path: Path) -> list[dict[str, str]]:
    lines = (tmp_path / "state.problems.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def whole(master: Api, export: Callable[..., Path], run: Callable[..., str]) -> str:
    return run(export())


def test_objects_keep_their_ids_times_and_access_lists(whole: str, master: Api) -> None:
    assert "Both sides hold the same." in whole
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
    assert [each["place"] for each in problems(tmp_path)] == ["Note, permissions"]
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
    with pytest.raises(CommandError, match="differ"):
        run(path, "--again")
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
    with pytest.raises(CommandError):  # the account is newer here now
        run(path, "--again")
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"objectId": "a"}\n{"objectId": ', "not JSON"),
        ('{"_id": "a"}', "export the collection _SCHEMA"),
    ],
)
def test_a_file_that_cant_be_read_ends_the_import_and_is_named(
    master: Api, run: Callable[..., str], tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "Note.json").write_text(content)
    with pytest.raises(CommandError, match=message):
        run(tmp_path / "export")


def test_parse_com_exports_are_read_without_schemas(
    master: Api, client: Api, run: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "export"
    path.mkdir()
    times = {"createdAt": "2014-01-01T00:00:00.000Z", "updatedAt": "2014-01-01T00:00:00.000Z"}
    users = [{"objectId": "ann", "username": "ann", "bcryptPassword": HASH, **times}]
    games = [
        {
            "objectId": "g1",
            "score": 1.5,
            "when": {"__type": "Date", "iso": times["createdAt"]},
            **times,
        }
    ]
    (path / "_User.json").write_text(json.dumps({"results": users}, indent=1))
    (path / "Game.json").write_text(json.dumps({"results": games}))
    assert "Both sides hold the same." in run(path)
    assert client.post("/login", {"username": "ann", "password": PASSWORD}).status == 200
    fields = master.get("/schemas/Game").json["fields"]
    assert (fields["score"]["type"], fields["when"]["type"]) == ("Number", "Date")


def test_the_progress_of_another_source_is_refused(
    master: Api, export: Callable[..., Path], run: Callable[..., str], tmp_path: Path
) -> None:
    path = export()
    run(path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match="belongs to an import from"):
        run(tmp_path / "elsewhere")


def test_nothing_is_imported_in_maintenance_mode(
    master: Api, export: Callable[..., Path], run: Callable[..., str]
) -> None:
    path = export()
    call_command("maintenance", "on", stdout=io.StringIO())
    try:
        with pytest.raises(CommandError):
            run(path)
    finally:
        call_command("maintenance", "off", stdout=io.StringIO())
    assert master.get("/classes/Note").json["results"] == []

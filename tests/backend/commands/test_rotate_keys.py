"""``manage.py rotate_keys``: new keys, and an end of the old ones."""

from __future__ import annotations

import base64
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from backend.instance.folder import DataFolder
from backend.instance.keys import live_keys, note_live_keys
from backend.settings import former_keys
from tests.backend.commands.instances import FIRST_KEYS, Instance, new_database
from tests.callers import *  # noqa: F403
from tests.rest import APPLICATION, CLIENT, MASTER, READ_ONLY, Api

MFA_SECRET = base64.b32encode(b"twenty bytes for MFA").decode()


@pytest.fixture
def bare(tmp_path: Path) -> Instance:
    """An instance that has keys and nothing else; these commands need no database."""
    instance = Instance(tmp_path / "data", "postgresql://nowhere/none")
    instance.has_keys(FIRST_KEYS)
    return instance


@pytest.fixture
def instance(tmp_path: Path, prepared: str) -> Iterator[Instance]:
    with new_database("rotated", prepared) as url:
        made = Instance(tmp_path / "data", url)
        made.has_keys(FIRST_KEYS)
        yield made


@pytest.mark.slow
@pytest.mark.process
def test_a_new_key_is_kept_for_the_owner_alone_and_not_shown(bare):
    done = bare.manage("rotate_keys", "master", "rest")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "MASTER_KEY is new.\nREST_API_KEY is new.\n"
    keys = bare.keys
    assert keys["MASTER_KEY"] != FIRST_KEYS["MASTER_KEY"]
    assert keys["MASTER_KEY"] not in done.stdout + done.stderr
    assert keys.keys() == FIRST_KEYS.keys()
    assert (keys["APP_ID"], keys["SECRET_KEY"]) == (FIRST_KEYS["APP_ID"], FIRST_KEYS["SECRET_KEY"])
    assert stat.S_IMODE((bare.data / "keys.env").stat().st_mode) == 0o600
    assert "started again" in done.stderr


@pytest.mark.slow
@pytest.mark.process
def test_a_key_is_shown_when_requested_and_made_where_there_was_none(bare):
    output = bare.do("rotate_keys", "read-only", "--show")
    assert output == f"READ_ONLY_MASTER_KEY is new: {bare.keys['READ_ONLY_MASTER_KEY']}\n"


@pytest.mark.process
@pytest.mark.slow
def test_a_key_of_the_environment_is_printed_to_be_set_there(bare, tmp_path):
    before = bare.keys
    output = bare.do("rotate_keys", "master", MASTER_KEY="of-the-environment")
    assert "Set them there:\nMASTER_KEY=master-" in output
    file = tmp_path / "env"
    file.write_text("SECRET_KEY=of-the-file\n")
    output = bare.do("rotate_keys", "secret", ENV_FILE=str(file))
    assert "SECRET_KEY_FALLBACKS=of-the-file\n" in output
    output = bare.do(
        "rotate_keys", "master", "--grace", "1h", FORMER_KEYS="REST_API_KEY=a@2020-01-01T00:00:00Z"
    )
    assert f"FORMER_KEYS=MASTER_KEY={before['MASTER_KEY']}@" in output
    assert bare.keys == before


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    "rotations",
    [
        [[], ["--grace", "1h"]],
        [["--grace", "1m"], [], ["--grace", "1h"]],
    ],
    ids=str,
)
def test_the_running_key_has_the_grace_however_often_it_is_rotated(bare, rotations):
    folder = DataFolder(bare.data)
    note_live_keys(folder, FIRST_KEYS)
    for options in rotations:
        bare.do("rotate_keys", "master", *options)
    former = former_keys.parse(bare.keys["FORMER_KEYS"].split(","))
    ((key, until),) = former["MASTER_KEY"]
    assert key == FIRST_KEYS["MASTER_KEY"]
    assert 3500 < until - time.time() < 3700


@pytest.mark.process
@pytest.mark.slow
def test_a_process_of_the_service_knows_which_keys_are_live(instance):
    instance.do("rotate_keys", "master")
    rotated = instance.keys
    with instance.web():
        instance.do("rotate_keys", "master", "--grace", "1h")
        assert live_keys(DataFolder(instance.data))["MASTER_KEY"] == rotated["MASTER_KEY"]
        assert f"MASTER_KEY={rotated['MASTER_KEY']}@" in instance.keys["FORMER_KEYS"]


@pytest.mark.slow
@pytest.mark.process
def test_what_makes_no_sense_changes_nothing(bare):
    before = bare.keys
    senseless = (
        [],
        ["master", "--finish"],
        ["app"],
        ["master", "--grace", "soon"],
        ["rest", "--grace=9999d"],
    )
    refused = bare.run(
        "from django.core.management import CommandError, call_command\n"
        f"for words in {senseless}:\n"
        "    try:\n"
        "        call_command('rotate_keys', *words)\n"
        "    except CommandError:\n"
        "        print('refused')\n"
    )
    assert refused.split() == ["refused"] * len(senseless)
    assert bare.keys == before


@pytest.mark.slow
@pytest.mark.process
def test_old_keys_count_for_a_while_with_the_new_ones(instance):
    instance.do("rotate_keys", "master", "rest", "--grace", "1h")
    new = instance.keys
    with instance.web():
        for keys in (new, FIRST_KEYS):
            instance.has_keys(new | {name: keys[name] for name in ("MASTER_KEY", "REST_API_KEY")})
            assert instance.call("GET", "/schemas").status == 200
            assert instance.call("GET", "/users", key="rest").status == 200


@pytest.mark.slow
@pytest.mark.process
def test_a_new_secret_key_reads_what_the_old_one_wrote_until_nothing_needs_it(instance):
    from objects.users.accounts.second_factor import STEP, one_time_password

    def password(offset: int) -> str:
        step = int(time.time()) // STEP + offset
        return one_time_password(base64.b32decode(MFA_SECRET), step)

    with instance.web():
        body = {"username": "bob", "password": "correct horse"}
        bob = instance.ask("POST", "/users", body, key="rest")
        session = {"key": "rest", "X_Svc_Session_Token": bob["sessionToken"]}
        for _ in range(2):  # the step may end between the two
            factor = {"authData": {"mfa": {"secret": MFA_SECRET, "token": password(-1)}}}
            enrolled = instance.call("PUT", f"/users/{bob['objectId']}", factor, **session)
            if enrolled.status < 300:
                break
        assert enrolled.status < 300, enrolled.body
    instance.do("rotate_keys", "secret")
    assert instance.keys["SECRET_KEY_FALLBACKS"] == FIRST_KEYS["SECRET_KEY"]
    with instance.web():
        login = body | {"authData": {"mfa": {"token": password(0)}}}
        instance.ask("POST", "/login", login, key="rest")
    output = instance.do("rotate_keys", "--finish")
    assert "1 stored secrets are encrypted under the present SECRET_KEY" in output
    assert "SECRET_KEY_FALLBACKS" not in instance.keys
    with instance.web():
        login = body | {"authData": {"mfa": {"token": password(1)}}}
        instance.ask("POST", "/login", login, key="rest")


@pytest.mark.process
@pytest.mark.slow
def test_finishing_waits_for_the_running_service_to_have_the_new_key(instance):
    folder = DataFolder(instance.data)
    with folder.hold():  # as script/server does
        folder.record(pid=os.getpid(), address="http://localhost")
        note_live_keys(folder, FIRST_KEYS)
        instance.do("rotate_keys", "secret")
        assert "restart it first" in instance.refused("rotate_keys", "--finish")
        assert "SECRET_KEY_FALLBACKS" in instance.keys
        note_live_keys(folder, instance.keys)
        instance.do("rotate_keys", "--finish")


# -- keys that count for a while ------------------------------------------------------------------


def with_former(settings, **keys: float) -> object:
    former = {name: (("the-old-one", time.time() + left),) for name, left in keys.items()}
    return override_settings(SERVICE={**settings.SERVICE, "FORMER_KEYS": former})


OLD = {
    "MASTER_KEY": {**APPLICATION, "X-Svc-Master-Key": "the-old-one"},
    "READ_ONLY_MASTER_KEY": {**APPLICATION, "X-Svc-Master-Key": "the-old-one"},
    "REST_API_KEY": {**APPLICATION, "X-Svc-REST-API-Key": "the-old-one"},
    "JAVASCRIPT_KEY": {**APPLICATION, "X-Svc-JavaScript-Key": "the-old-one"},
    "CLIENT_KEY": {**APPLICATION, "X-Svc-Client-Key": "the-old-one"},
}


@pytest.mark.parametrize("name", OLD)
def test_a_former_key_counts_until_its_time_is_over(db, settings, name):
    path = "/schemas" if "MASTER" in name else "/users"
    refused = (403, 261) if "MASTER" in name else (403, 262)
    with with_former(settings, **{name: 60}):
        assert Api(OLD[name]).get(path).status == 200
        for present in (MASTER, READ_ONLY, CLIENT):
            assert Api(present).get("/users").status == 200
    with with_former(settings, **{name: -1}):
        assert Api(OLD[name]).get(path).error == refused
    assert Api(OLD[name]).get(path).error == refused


def test_a_former_key_is_what_it_was_and_no_more(db, settings):
    with with_former(settings, READ_ONLY_MASTER_KEY=60):
        made = Api(OLD["READ_ONLY_MASTER_KEY"]).post("/classes/Note", {"a": 1})
        assert made.status in (400, 403)
        assert made.json["code"] == 119
    with with_former(settings, REST_API_KEY=60):
        assert Api(OLD["MASTER_KEY"]).get("/schemas").error == (403, 261)


@pytest.mark.parametrize(
    "text",
    ["MASTER_KEY", "MASTER_KEY=old", "APP_ID=a@2026-12-24T00:00:00Z", "MASTER_KEY=old@tomorrowZ",
     "MASTER_KEY=old@2026-99-24T00:00:00Z"],
)  # fmt: skip
def test_a_setting_that_can_t_be_read_is_named_without_the_key(text):
    from backend.settings import former_keys

    with pytest.raises(ValueError, match=r"\[0\] must") as refused:
        former_keys.parse([text])
    assert "old" not in str(refused.value)


def test_the_setting_is_written_as_it_is_read():
    from backend.settings import former_keys

    text = "MASTER_KEY=a=b@c@2026-12-24T00:00:00Z,REST_API_KEY=d@2026-12-24T01:02:03Z"
    assert former_keys.format_keys(former_keys.parse(text.split(","))) == text

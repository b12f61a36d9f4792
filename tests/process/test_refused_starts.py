"""A start that can't succeed ends with one clear sentence and a status that isn't zero."""

from __future__ import annotations

import pytest

from backend.embedded.folder import DataFolder
from backend.embedded.keys import ensure_keys
from tests.ports import free_port
from tests.process.service import run_manage, run_server


def refusal(**settings: object) -> str:
    done = run_server(**settings)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("PORT", "eighty", "PORT must be a whole number, not 'eighty'."),
        ("PORT", "70000", "PORT must be between 1 and 65535, not 70000."),
        ("DEBUG", "maybe", "DEBUG must be on or off, not 'maybe'."),
        ("LOG_LEVEL", "loud", "LOG_LEVEL must be one of"),
        ("DATABASE_URL", "mysql://u:secret@h/d", "DATABASE_URL must be a URL that begins with"),
        ("REDIS_URL", "http://u:secret@h", "REDIS_URL must be a URL that begins with"),
        ("MASTER_KEY_IPS", "localhost", "MASTER_KEY_IPS must list IP addresses"),
        ("MOUNT_PATH", "/admin", "MOUNT_PATH must be a path such as /api"),
        ("MOUNT_PATH", "/ws", "MOUNT_PATH must be a path such as /api"),
        ("WS_ALLOWED_ORIGINS", "app.example.org", "WS_ALLOWED_ORIGINS must list origins such as"),
        ("WS_ALLOWED_ORIGINS", "https://a.example/b", "WS_ALLOWED_ORIGINS must list origins"),
        ("WS_SEND_QUEUE", "10", "WS_SEND_QUEUE must be between 65536 and"),
        ("MAX_LIMIT", "0", "MAX_LIMIT must be between 1 and"),
        ("AUTH_ADAPTERS", "secret", "AUTH_ADAPTERS must be a JSON object."),
        ("MASTER_KEY_FILE", "/nowhere/key", "MASTER_KEY_FILE can't be read."),
    ],
)
def test_a_bad_setting_is_named(folder: DataFolder, name: str, value: str, wanted: str):
    said = refusal(DATA_DIR=folder.path, **{name: value})
    assert wanted in said
    assert "secret" not in said


def test_a_damaged_database_folder_is_named(folder: DataFolder):
    folder.postgres.mkdir()
    (folder.postgres / "base").mkdir()
    said = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert f"{folder.postgres} is damaged" in said


def test_the_database_s_own_words_about_damage_are_passed_on(folder: DataFolder):
    folder.postgres.mkdir(mode=0o700)
    (folder.postgres / "PG_VERSION").write_text("18\n")
    said = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert f"PostgreSQL doesn't start with {folder.postgres}" in said
    assert "postgresql.conf" in said


def test_data_of_another_postgresql_version_is_named(folder: DataFolder):
    folder.postgres.mkdir()
    (folder.postgres / "PG_VERSION").write_text("15\n")
    said = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert "was made by PostgreSQL 15" in said


@pytest.mark.parametrize("place", ["/dev/null/data", "/proc/data"])
def test_a_data_folder_that_can_t_be_made_is_named(place: str):
    assert f"The data folder {place} can't be used" in refusal(DATA_DIR=place)


def test_a_database_that_can_t_be_reached_is_named(folder: DataFolder):
    done = run_server(
        DATA_DIR=folder.path,
        PORT=free_port(),
        DATABASE_URL=f"postgresql://someone:secret@127.0.0.1:{free_port()}/nothing",
    )
    assert done.returncode == 1
    assert "PostgreSQL at DATABASE_URL can't be used" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_manage_says_that_no_engine_runs(folder: DataFolder, monkeypatch: pytest.MonkeyPatch):
    for name in ("SECRET_KEY", "APP_ID", "REST_API_KEY", "JAVASCRIPT_KEY", "MASTER_KEY"):
        monkeypatch.delenv(name, raising=False)
    ensure_keys(folder)
    done = run_manage("migrate", DATA_DIR=folder.path)
    assert done.returncode == 1
    said = f"PostgreSQL isn't running: start script/server with DATA_DIR={folder.path}"
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_manage_without_keys_names_the_first_one(folder: DataFolder):
    done = run_manage("check", DATA_DIR=folder.path)
    assert done.returncode == 1
    assert done.stderr.startswith("SECRET_KEY isn't set: script/server makes it")
    assert done.stderr.count("\n") == 1


def test_a_provider_that_can_t_be_used_is_named(folder: DataFolder):
    done = run_server(
        DATA_DIR=folder.path, PORT=free_port(), AUTH_ADAPTERS='{"google": {"clientIds": []}}'
    )
    assert done.returncode == 1
    assert "AUTH_ADAPTERS: google: clientIds must list at least one text." in done.stderr
    assert "Traceback" not in done.stderr

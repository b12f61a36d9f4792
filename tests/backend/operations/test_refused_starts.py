"""A start that can't succeed ends with one clear sentence and a status that isn't zero."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backend.instance.folder import DataFolder
from backend.instance.keys import ensure_keys, read_keys
from backend.operations.embedded.binaries import postgres_programs
from backend.operations.launcher.start import _failure
from tests.backend.operations.service import (
    PATIENCE,
    ROOT,
    Service,
    plain_environment,
    run_manage,
    run_server,
)
from tests.ports import free_port


def refusal(**settings: object) -> str:
    done = run_server(**settings)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
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
        ("MOUNT_PATH", "/a\nb", "MOUNT_PATH must be a path such as /api"),
        ("MOUNT_PATH", "/a b", "MOUNT_PATH must be a path such as /api"),
        ("MOUNT_PATH", "/a/../b", "MOUNT_PATH must be a path such as /api"),
        ("WS_ALLOWED_ORIGINS", "app.example.org", "WS_ALLOWED_ORIGINS must list origins such as"),
        ("WS_ALLOWED_ORIGINS", "https://a.example/b", "WS_ALLOWED_ORIGINS must list origins"),
        ("WS_SEND_QUEUE", "10", "WS_SEND_QUEUE must be between 65536 and"),
        ("MAX_LIMIT", "0", "MAX_LIMIT must be between 1 and"),
        ("AUTH_ADAPTERS", "secret", "AUTH_ADAPTERS must be a JSON object."),
        ("MASTER_KEY_FILE", "/nowhere/key", "MASTER_KEY_FILE can't be read."),
        ("ENV_FILE", "/nowhere/service.env", "ENV_FILE=/nowhere/service.env: there is no such"),
        ("ENV_FILE", "/tmp", "ENV_FILE=/tmp: this isn't a file."),
    ],
)
def test_a_bad_setting_is_named(folder: DataFolder, name: str, value: str, expected: str):
    message = refusal(DATA_DIR=folder.path, **{name: value})
    assert expected in message
    assert "secret" not in message


@pytest.mark.parametrize("name", ["MASTER_KEY", "SECRET_KEY"])
def test_a_key_that_can_be_guessed_is_refused_outside_of_this_machine(
    folder: DataFolder, name: str
):
    public = {"PUBLIC_URL": "https://api.example.org", "PORT": free_port(), "DATA_DIR": folder.path}
    message = refusal(**public, **{name: "elevenchars"})
    assert message.startswith(f"{name} has fewer than 12 characters")
    assert "elevenchars" not in message


def test_a_damaged_database_folder_is_named(folder: DataFolder):
    folder.postgres.mkdir()
    (folder.postgres / "base").mkdir()
    message = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert f"{folder.postgres} is damaged" in message


def test_the_database_s_own_words_about_damage_are_passed_on(folder: DataFolder):
    folder.postgres.mkdir(mode=0o700)
    (folder.postgres / "PG_VERSION").write_text("18\n")
    message = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert f"PostgreSQL doesn't start with {folder.postgres}" in message
    assert "postgresql.conf" in message


def test_data_of_another_postgresql_version_is_named(folder: DataFolder):
    folder.postgres.mkdir()
    (folder.postgres / "PG_VERSION").write_text("15\n")
    message = refusal(DATA_DIR=folder.path, PORT=free_port())
    assert "was made by PostgreSQL 15" in message


@pytest.mark.parametrize("place", ["/dev/null/data", "/proc/data"])
def test_a_data_folder_that_can_t_be_made_is_named(place: str):
    assert f"The data folder {place} can't be used" in refusal(DATA_DIR=place)


@pytest.mark.parametrize("value", ["/nowhere/service.env", "/tmp"])
def test_a_settings_file_that_can_t_be_read_leaves_nothing_behind(
    folder: DataFolder, value: str
) -> None:
    data = folder.path / "data"
    assert refusal(DATA_DIR=data, ENV_FILE=value).startswith(f"ENV_FILE={value}: ")
    assert not data.exists()
    done = run_manage("doctor", DATA_DIR=data, ENV_FILE=value)
    assert (done.returncode, done.stderr.startswith(f"ENV_FILE={value}: ")) == (1, True)


@pytest.mark.slow
def test_keys_are_printed_by_the_first_start_at_a_terminal_that_succeeds(
    folder: DataFolder, start: Callable[..., Service]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"Port {port} is in use" in refusal(DATA_DIR=folder.path, PORT=port)
    key = read_keys(folder)["MASTER_KEY"]
    unwatched = start(is_terminal=False)
    assert unwatched.stop() == 0
    # Its output may be a log. It names the files instead.
    password = json.loads((folder.path / "admin.json").read_text())["password"]
    for secret in (key, password):
        assert secret not in unwatched.output + "".join(unwatched.errors)
    assert f". {folder.keys}" in unwatched.output
    assert f"password in {folder.path}/admin.json" in unwatched.output
    first = start()
    assert first.printed(r"X-Svc-Master-Key: ([\w-]+)") == key
    assert first.stop() == 0
    assert key not in start().output


@pytest.mark.slow
def test_the_output_may_be_a_file(folder: DataFolder, start: Callable[..., Service]) -> None:
    service = start(output_file=folder.path.parent / f"{folder.path.name}.out")
    assert service.get("/health").status_code == 200
    assert service.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("programs", ["nothing", "bin", "/usr", "{newer}"])
def test_programs_that_aren_t_those_of_the_old_database_are_named(
    folder: DataFolder, programs: str
) -> None:
    folder.postgres.mkdir(mode=0o700)
    (folder.postgres / "PG_VERSION").write_text("16\n")
    programs = programs.format(newer=postgres_programs())
    before = _folders_of_ended_upgrades()
    done = run_manage("upgrade_postgres", "--programs", programs, DATA_DIR=folder.path, **KEYS)
    place = Path(programs).resolve()
    assert done.returncode == 1
    assert done.stderr == (f"CommandError: --programs: there is no PostgreSQL 16 in {place}.\n")
    assert _folders_of_ended_upgrades() <= before


def _folders_of_ended_upgrades() -> set[Path]:
    folders = {path: path.name.split("-")[2] for path in Path("/tmp").glob("svc-upgrade-*-*")}
    return {path for path, pid in folders.items() if not psutil.pid_exists(int(pid))}


@pytest.mark.parametrize("error", [OSError("no room"), psutil.NoSuchProcess(1)])
def test_an_error_of_the_running_service_is_not_one_of_its_start(error: Exception) -> None:
    assert "can't be started" in _failure(error, is_started=False)
    assert "can't be started" not in _failure(error, is_started=True)


SERVERS = {
    "DATABASE_URL": "postgresql://someone:secret@{}/nothing",
    "REDIS_URL": "redis://:secret@{}/0",
}
KEYS = {"SECRET_KEY": "s" * 8, "APP_ID": "app", "REST_API_KEY": "rest", "MASTER_KEY": "master"}
START = ("-m", "backend.embedded")
ROLES = [("-m", "backend.serve", role) for role in ("web", "worker", "beat")]


def refused_by(command: tuple[str, ...], folder: DataFolder, name: str, value: str) -> str:
    """What the command writes when this server can't be used; the other one is never reached."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=plain_environment(DATA_DIR=folder.path, PORT=free_port(), **KEYS, **{name: value}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
    return done.stderr.strip()


@pytest.mark.slow
@pytest.mark.parametrize("command", [START, *ROLES, ("manage.py", "prepare")], ids=" ".join)
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_refuses_connections_is_named(
    folder: DataFolder, command: tuple[str, ...], name: str
):
    place = f"127.0.0.1:{free_port()}"
    message = refused_by(command, folder, name, SERVERS[name].format(place))
    expected = f"{name} can't be used: no connection to {place}: connection refused."
    assert message.lower() == expected.lower()


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.slow
def test_a_server_that_never_answers_is_named(folder: DataFolder, name: str):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        value = SERVERS[name].format(f"127.0.0.1:{silent.getsockname()[1]}")
        message = refused_by(START, folder, name, value)
    assert message == f"{name} can't be used: there is no answer within 3 seconds."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "redis://:pa/secret@127.0.0.1/0"),
        ("REDIS_URL", "redis://secret#word@127.0.0.1/0"),
        ("DATABASE_URL", "postgresql://u:p@secret.invalid@127.0.0.1/d"),
        ("DATABASE_URL", "postgresql://u:secret/p@127.0.0.1/d"),
        ("REDIS_URL", "redis://127.0.0.1:5/secret@localhost/0"),
        ("DATABASE_URL", "postgresql://127.0.0.1:5/secret@localhost/d"),
    ],
)
def test_no_part_of_a_malformed_address_is_repeated(folder: DataFolder, name: str, value: str):
    message = refused_by(START, folder, name, value)
    assert message.startswith(f"{name} ")
    assert "127.0.0.1" not in message


@pytest.mark.parametrize("parameter", ["bogus=1", "protocol=9", "ssl_cert_reqs=bogus"])
def test_a_parameter_of_an_address_that_can_t_be_used_is_no_silence(
    folder: DataFolder, parameter: str
):
    value = f"redis://127.0.0.1:{free_port()}/0?{parameter}"
    message = refused_by(START, folder, "REDIS_URL", value)
    assert message.startswith("REDIS_URL can't be used: ")
    assert "answer" not in message
    assert "closes" not in message


def test_each_server_of_an_address_is_named_with_its_port(folder: DataFolder):
    first, second = free_port(), free_port()
    value = f"postgresql://u:secret@127.0.0.1:{first},127.0.0.1:{second}/d"
    message = refused_by(START, folder, "DATABASE_URL", value)
    assert f"127.0.0.1:{first}, 127.0.0.1:{second}" in message


def test_a_database_that_doesn_t_exist_is_named_by_its_variable(folder: DataFolder):
    url = os.environ["DATABASE_URL"].replace("/backend?", "/nowhere?")
    message = refused_by(START, folder, "DATABASE_URL", url)
    assert re.fullmatch(
        r"DATABASE_URL can't be used: PostgreSQL at \S+ answers: "
        r'database "nowhere" does not exist\.',
        message,
    )


@pytest.mark.slow
def test_a_module_that_doesn_t_exist_is_one_sentence(folder: DataFolder):
    message = refusal(DATA_DIR=folder.path, PORT=free_port(), CLOUD_MODULES="nope")
    assert message == "CLOUD_MODULES names nope, and there is no such module."


@pytest.mark.parametrize(
    ("site", "reason"),
    [
        ("localhost:99999", "parsing key: port 99999 is out of range."),
        ("not a host at all {", "unrecognized directive: {."),
    ],
)
def test_a_site_address_that_makes_no_sense_is_named(folder: DataFolder, site: str, reason: str):
    message = refusal(DATA_DIR=folder.path, SITE_ADDRESS=site)
    assert message.startswith(f"script/server: SITE_ADDRESS={site} can't be used: ")
    assert message.endswith(reason)


def test_a_port_of_a_site_address_that_is_taken_is_named(folder: DataFolder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refusal(DATA_DIR=folder.path, SITE_ADDRESS=f"http://localhost:{port}")
    assert re.fullmatch(
        rf"script/server: Port {port} is in use by \S+ \(process {os.getpid()}\): stop it, or set"
        " SITE_ADDRESS to another one.",
        message,
    )


@pytest.mark.slow
def test_there_is_nothing_to_reload_where_nothing_runs(folder: DataFolder):
    done = run_manage("reload", DATA_DIR=folder.path, **KEYS)
    assert done.returncode == 1
    assert "nothing to reload" in done.stderr


@pytest.mark.slow
def test_a_process_that_is_not_script_server_gets_no_signal(folder: DataFolder):
    """The record of an instance that was killed names a number that belongs to another process."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    folder.record(pid=other.pid, address="http://localhost")
    done = run_manage("reload", DATA_DIR=folder.path, **KEYS)
    assert (done.returncode, "script/server" in done.stderr) == (1, True)
    assert other.communicate(b"\n", PATIENCE) == (None, None)
    assert other.returncode == 0


@pytest.mark.parametrize(
    "command",
    ["migrate", "maintenance status", "maintenance on", "create_class Game", "clean_files"],
)
def test_manage_says_that_the_service_isn_t_running(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, command: str
):
    for name in ("SECRET_KEY", "APP_ID", "REST_API_KEY", "JAVASCRIPT_KEY", "MASTER_KEY"):
        monkeypatch.delenv(name, raising=False)
    ensure_keys(folder)
    done = run_manage(*command.split(), DATA_DIR=folder.path)
    assert (done.returncode, done.stdout) == (1, "")
    message = f"The service isn't running: start script/server with DATA_DIR={folder.path}"
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_doctor_says_that_the_service_isn_t_running(folder: DataFolder):
    done = run_manage("doctor", DATA_DIR=folder.path, **KEYS)
    assert done.returncode == 1
    assert f"FAIL  restarts: script/server isn't running with DATA_DIR={folder.path}" in done.stdout
    assert "something else" not in done.stdout


@pytest.mark.slow
def test_doctor_doesn_t_expect_script_server_with_other_engines(folder: DataFolder):
    urls = {name: url.format(f"127.0.0.1:{free_port()}") for name, url in SERVERS.items()}
    done = run_manage("doctor", DATA_DIR=folder.path, **KEYS, **urls)
    assert "ok    restarts: something else than script/server restarts" in done.stdout


@pytest.mark.slow
def test_help_needs_no_running_service(folder: DataFolder):
    done = run_manage("create_class", "--help", DATA_DIR=folder.path, **KEYS)
    assert (done.returncode, done.stderr) == (0, "")


def test_manage_without_keys_names_the_first_one(folder: DataFolder):
    done = run_manage("check", DATA_DIR=folder.path)
    assert done.returncode == 1
    assert done.stderr.startswith("SECRET_KEY isn't set: script/server makes it")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_provider_that_can_t_be_used_is_named(folder: DataFolder):
    done = run_server(
        DATA_DIR=folder.path, PORT=free_port(), AUTH_ADAPTERS='{"google": {"clientIds": []}}'
    )
    assert done.returncode == 1
    assert "AUTH_ADAPTERS: google: clientIds must list at least one text." in done.stderr
    assert "Traceback" not in done.stderr

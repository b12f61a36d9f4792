"""Misspelt settings and broken lines of ``.env`` are reported, without their values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.operations.doctor import settings as checks
from backend.settings import environment
from backend.settings.declaration import Area, whole
from tests.backend.operations.service import run_manage, run_server


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("WEB_WORKER", "WEB_WORKERS"),
        ("LOG_LEVLE", "LOG_LEVEL"),
        ("REDIS_URI", "REDIS_URL"),
        ("MAX_LIMITS", "MAX_LIMIT"),
        ("CLOUD_MODULE", "CLOUD_MODULES"),
    ],
)
def test_a_misspelt_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, meant: str
) -> None:
    monkeypatch.delenv(meant, raising=False)
    monkeypatch.setenv(variable, "s3cret")
    messages = [finding.text for finding in checks.names()]
    assert f"{variable} is not a setting; did you mean {meant}?" in messages
    assert "s3cret" not in "".join(messages)


@pytest.mark.parametrize(
    "name", ["PATH", "HOSTNAME", "LC_ALL", "MY_OWN_URL", "LISTEN_FDS", "HTTP_PROXY", "WEB", "TERM"]
)
def test_other_variables_are_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert not [report for report in reports() if report.startswith(f"{name} is not a setting")]


def test_settings_and_files_of_settings_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_WORKERS", "2")
    monkeypatch.setenv("MASTER_KEY_FILE", "/run/secrets/key")
    assert not [report for report in reports() if "WEB_WORKERS" in report]
    assert not [report for report in reports() if "MASTER_KEY_FILE" in report]


def reports() -> list[str]:
    return [problem for problem, _ in environment.problems()]


def test_the_report_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEB_WORKERS", raising=False)
    monkeypatch.setenv("WEB_WORKRES", "2")
    assert "WEB_WORKRES is not a setting; did you mean WEB_WORKERS?" in reports()


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("WEBAUTHN_RPID", "WEBAUTHN_RPID is not a setting; did you mean WEBAUTHN_RP_ID?"),
        ("WEBHOOK_COLOUR", "WEBHOOK_COLOUR is not a setting."),
    ],
)
def test_a_name_with_a_prefix_of_ours_is_reported(
    monkeypatch: pytest.MonkeyPatch, name: str, report: str
) -> None:
    monkeypatch.setenv(name, "s3cret")
    assert report in reports()


@pytest.mark.parametrize(
    "name", ["SIGNER_KEYSTORE_137", "SIGNER_KEYSTORE_PASSWORD_137_FILE", "RPC_URLS_10"]
)
def test_settings_of_one_network_are_not(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/nowhere")
    assert not [report for report in reports() if name in report]


def test_a_former_name_has_its_effect_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Renamed(Area):
        title = "Users"
        A_NEW_NAME = whole(1, "a number", former=("AN_OLDER_NAME",))

    monkeypatch.setenv("AN_OLDER_NAME", "2")
    assert Renamed.A_NEW_NAME.read() == 2
    assert "AN_OLDER_NAME is the former name of A_NEW_NAME." in reports()
    monkeypatch.setenv("A_NEW_NAME", "3")
    assert Renamed.A_NEW_NAME.read() == 3


@pytest.mark.slow
def test_doctor_reports_it(tmp_path: Path) -> None:
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    done = run_manage("doctor", DATA_DIR=tmp_path, WEB_WORKRES="2", **keys)
    assert "WEB_WORKRES is not a setting; did you mean WEB_WORKERS?" in done.stdout


@pytest.mark.slow
def test_the_log_of_a_start_reports_it(tmp_path: Path) -> None:
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    code = (
        "from django.conf import settings; from backend import serve; from backend.logs import"
        " setup; setup.configure_from(settings.LOGGING); serve.report_settings()"
    )
    done = run_manage(
        "shell", "--no-imports", "-c", code, DATA_DIR=tmp_path, WEB_WORKRES="s3cret", **keys
    )
    assert done.stderr.count("WEB_WORKRES is not a setting; did you mean WEB_WORKERS?") == 1
    assert done.returncode == 0
    assert "s3cret" not in done.stdout + done.stderr


BROKEN = """APP_ID=app

  # a comment
MY OWN=s3cret
  
 export MASTER_KEY=s3cret
export REST_API_KEY=r
"""


@pytest.fixture
def env_file(tmp_path: Path) -> Iterator[Path]:
    """A file with two broken lines, 4 and 6."""
    file = tmp_path / "settings.env"
    file.write_text(BROKEN)
    yield file
    environment._ignored_lines.pop(file, None)


def test_a_broken_line_is_reported_by_file_and_number(
    monkeypatch: pytest.MonkeyPatch, env_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("APP_ID", "REST_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    environment.read_file(env_file)
    environment.read_file(env_file)  # as the launcher and the application do
    reported = [finding.text for finding in checks.names() if "line" in finding.text]
    assert reported == [
        f"{env_file}, line {number} is ignored: it isn't NAME=value." for number in (4, 6)
    ]
    assert (environment.text("APP_ID"), environment.text("REST_API_KEY")) == ("app", "r")
    assert "s3cret" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_command_never_prints_a_broken_line(env_file: Path, tmp_path: Path) -> None:
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    done = run_manage("doctor", ENV_FILE=env_file, DATA_DIR=tmp_path / "data", **keys)
    assert done.stdout.count(f"{env_file}, line 4 is ignored") == 1
    assert "s3cret" not in done.stdout + done.stderr


def test_a_file_that_env_file_names_has_to_exist(tmp_path: Path) -> None:
    missing = tmp_path / "missing.env"
    for done in (
        run_manage("check", ENV_FILE=missing),
        run_server(ENV_FILE=missing, DATA_DIR=tmp_path / "data"),
    ):
        assert (done.returncode, done.stderr) == (
            1,
            f"ENV_FILE={missing}: there is no such file.\n",
        )


def test_a_file_that_isn_t_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "settings.env"
    file.write_bytes(b"MASTER_KEY=\xff\xfe")
    done = run_manage("check", ENV_FILE=file)
    assert (done.returncode, done.stderr) == (1, f"{file} can't be read: it isn't UTF-8.\n")


@pytest.mark.slow
def test_settings_come_from_the_file_that_env_file_names(tmp_path: Path) -> None:
    file = tmp_path / "service.env"
    names = ("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY")
    file.write_text("".join(f"{name}=of-the-file\n" for name in names))
    code = "from django.conf import settings; print(settings.SERVICE['APP_ID'])"
    done = run_manage("shell", "--no-imports", "-c", code, ENV_FILE=file)
    assert (done.stdout, done.returncode) == ("of-the-file\n", 0), done.stderr

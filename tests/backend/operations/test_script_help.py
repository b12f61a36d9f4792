"""``script/…``: ``--help`` explains a script and starts nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", *command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", ["server", "test", "fuzz", "docs", "console"])
@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_explains_the_script_and_starts_nothing(name: str, argument: str):
    done = run(f"script/{name}", argument)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: script/{name}")


def test_an_unknown_argument_starts_no_server():
    done = run("script/server", "--port", "9000")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown argument --port" in done.stderr


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with scripts and requirements, and an environment that installs nothing: its Python
    prints its arguments."""
    shutil.copytree(ROOT / "script", tmp_path / "script")
    for name in ("requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    (tmp_path / ".venv" / ".complete").touch()
    return tmp_path


@pytest.mark.parametrize("name", ["bench", "attack"])
def test_a_benchmark_installs_the_requirements_of_development(clone: Path, name: str):
    done = subprocess.run(
        ["bash", clone / "script" / name, "start"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    stamps = {path.name for path in (clone / ".venv").glob(".installed-*")}
    assert stamps == {".installed-requirements.txt", ".installed-requirements-dev.txt"}, done.stderr


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["start", "memory", "soak"])
def test_the_help_of_a_benchmark_has_its_paragraphs(name: str):
    done = bench(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"\n    script/bench {name} [" in done.stdout
    assert done.stdout.startswith(f"usage: script/bench {name} ")


def test_a_soak_that_measures_too_little_fails():
    done = bench("soak", "--minutes", "5")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "script/bench: 5 samples are too few: make it 6 or more.\n"

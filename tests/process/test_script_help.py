"""``script/…``: ``--help`` explains a script and starts nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", *command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", ["server", "test", "fuzz"])
@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_explains_the_script_and_starts_nothing(name: str, argument: str):
    done = run(f"script/{name}", argument)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: script/{name}")


def test_an_unknown_argument_starts_no_server():
    done = run("script/server", "--port", "9000")
    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown argument --port" in done.stderr

"""The JavaScript SDK, installed once, and a server for it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.callers import emptied, fresh_registry, master, other
from tests.sdk.applications import FOLDER

__all__ = ["emptied", "fresh_registry", "master", "node", "other"]


@pytest.fixture(scope="session")
def node() -> str:
    """Node's program, with the SDK installed as the lock file says."""
    programs = {name: shutil.which(name) for name in ("node", "npm")}
    missing = [name for name, program in programs.items() if program is None]
    if missing:
        pytest.fail(
            f"{' and '.join(missing)} not found: the tests of the JavaScript SDK need Node.js 20"
            " or later on PATH (https://nodejs.org).",
            pytrace=False,
        )
    lock = FOLDER / "package-lock.json"
    # npm's own record of what it has installed; it is written last.
    installed = FOLDER / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        done = subprocess.run(
            [str(programs["npm"]), "ci", "--no-audit", "--no-fund"],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"npm ci failed in {FOLDER.name}:\n{done.stderr}", pytrace=False)
        installed.touch()
    return str(programs["node"])

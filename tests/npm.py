"""Packages from npm in a folder of tests, as its lock file says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


class NpmFailed(Exception):
    """The packages can't be installed; the text says why."""


class NodeMissing(NpmFailed):
    """Node.js or npm isn't on ``PATH``."""


def node_with_packages(folder: Path, *options: str) -> str:
    """Return Node's program; the packages of the folder are installed then.

    ``options`` are further ones of ``npm ci``, which runs if the lock file is newer than what is
    installed. Raises ``NodeMissing`` and ``NpmFailed``.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing = [name for name, program in (("node", node), ("npm", npm)) if program is None]
        raise NodeMissing(
            f"{' and '.join(missing)} not found: Node.js 20 or later has to be on PATH"
            " (https://nodejs.org)."
        )
    lock = folder / "package-lock.json"
    # npm's own record of what it has installed; it is written last.
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = [npm, "ci", "--no-audit", "--no-fund", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NpmFailed(f"npm ci failed in {folder.name}:\n{done.stderr}")
        installed.touch()
    return node

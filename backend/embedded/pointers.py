"""Which instances this checkout runs, for ``manage.py``: one that was started with another
``DATA_DIR`` is found without naming it again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from backend import environment
from backend.embedded.folder import DataFolder

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".instances"
_NEED_NONE: Final = frozenset({"upgrade_postgres", "help", "check", "makemigrations"})
"""Commands that don't speak to a running instance."""


def point_to(data: DataFolder, folder: Path = FOLDER) -> None:
    """Write down that an instance runs. Where that isn't possible, ``DATA_DIR`` has to be named."""
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True, mode=0o700)
        _pointer(data, folder).write_text(f"{data.path}\n")


def forget(data: DataFolder, folder: Path = FOLDER) -> None:
    """The instance has ended."""
    with contextlib.suppress(OSError):
        _pointer(data, folder).unlink(missing_ok=True)


def running(folder: Path = FOLDER) -> list[DataFolder]:
    """The data folders of the instances that run."""
    found = []
    with contextlib.suppress(OSError):
        for pointer in sorted(folder.iterdir()):
            data = DataFolder(Path(pointer.read_text().strip()))
            if data.running() is not None:
                found.append(data)
    return found


def choose(
    arguments: list[str],
    variables: MutableMapping[str, str],
    *,
    folder: Path = FOLDER,
    usual: Path = ROOT / ".data",
) -> None:
    """Have a command speak to the only instance that runs, if none was named and the usual one
    doesn't run. Ends the process with a sentence if several do."""
    environment.read_file(Path(variables.get("ENV_FILE") or ROOT / ".env"))
    named = any(variables.get(name) for name in ("DATA_DIR", "DATABASE_URL", "DATABASE_URL_FILE"))
    command = arguments[1] if len(arguments) > 1 else "help"
    if named or command in _NEED_NONE or DataFolder(usual).running() is not None:
        return
    others = running(folder)
    if len(others) > 1:
        names = ", ".join(str(one.path) for one in others)
        sys.exit(f"Several instances run: set DATA_DIR to one of {names}.")
    for one in others:
        record = one.running() or {}
        print(f"Instance: {record.get('address')} (DATA_DIR={one.path})", file=sys.stderr)
        variables["DATA_DIR"] = str(one.path)


def _pointer(data: DataFolder, folder: Path) -> Path:
    return folder / hashlib.sha256(os.fsencode(data.path)).hexdigest()[:12]

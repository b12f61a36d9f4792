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

from backend.instance.folder import DataFolder
from backend.settings import environment

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / ".instances"
_NEED_NONE: Final = frozenset({"upgrade_postgres", "help", "check", "makemigrations"})
"""Commands that don't speak to a running instance."""
_NAMING: Final = ("DATA_DIR", "DATA_DIR_FILE", "DATABASE_URL", "DATABASE_URL_FILE")


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
    try:
        pointers = sorted(folder.iterdir())
    except OSError:
        return []
    instances = []
    for pointer in pointers:
        with contextlib.suppress(OSError, ValueError):
            data = DataFolder(Path(pointer.read_text().strip()))
            if data.running() is not None:
                instances.append(data)
    return instances


def choose(
    arguments: list[str],
    variables: MutableMapping[str, str],
    *,
    folder: Path = FOLDER,
    usual: Path = ROOT / ".data",
) -> None:
    """Have a command speak to the usual instance, or to the only one that runs, if none was named.
    Which one is written to standard error where that isn't obvious. Ends the process with a
    sentence if several run and the usual one doesn't, or if ``ENV_FILE`` can't be read."""
    environment.read_file(environment.env_file(ROOT / ".env"))
    command = arguments[1] if len(arguments) > 1 else "help"
    if command in _NEED_NONE or any(variables.get(name) for name in _NAMING):
        return
    instances = {data.path: data for data in running(folder)}
    if DataFolder(usual).running() is not None:
        instances.pop(DataFolder(usual).path, None)
        if instances:
            _name(DataFolder(usual))
        return
    if len(instances) > 1:
        names = ", ".join(map(str, instances))
        sys.exit(f"Several instances run: set DATA_DIR to one of {names}.")
    for data in instances.values():
        _name(data)
        variables["DATA_DIR"] = str(data.path)


def _name(data: DataFolder) -> None:
    record = data.running() or {}
    print(f"Instance: {record.get('address')} (DATA_DIR={data.path})", file=sys.stderr)


def _pointer(data: DataFolder, folder: Path) -> Path:
    return folder / hashlib.sha256(os.fsencode(data.path)).hexdigest()[:12]

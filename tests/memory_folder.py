"""Temporary folders of a test run, in memory.

An instance that starts on a disk writes 200 MB and waits for them: initdb, checkpoints and WAL.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

_MEMORY = Path("/dev/shm")
_PREFIX = "svc-tests-"
_ENOUGH = 6 * 2**30
"""Bytes that have to be free, in the file system and in memory."""


def use(config: pytest.Config, stack: ExitStack) -> None:
    """Let this run have its temporary folders in memory, until the stack ends, if there is room.

    What runs that were killed have left there is removed first.
    """
    if os.environ.get("TMPDIR") or config.option.basetemp or not _MEMORY.is_dir():
        return
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        pid = int(folder.name.removeprefix(_PREFIX))
        if pid == os.getpid() or not psutil.pid_exists(pid):
            shutil.rmtree(folder, ignore_errors=True)
    if min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available) < _ENOUGH:
        return
    # Docker lets no programs run there, and tests write some.
    if os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    # Engines run as another account than root: they have to get to their folders.
    folder = _MEMORY / f"{_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o711)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    config.option.basetemp = folder / "pytest"

"""The restore of an archive between the start of the engines and that of the application."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from backend.instance.errors import StartError
from backend.kernel.process.children import before_exec, undisturbed

ROOT: Final = Path(__file__).resolve().parents[3]


def is_of_wal(arguments: Sequence[str]) -> bool:
    """Whether these arguments restore archived WAL, which needs an engine that doesn't run yet."""
    return arguments[0] == "wal" or arguments[0].startswith("wal/")


def restore(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run ``manage.py restore`` with these arguments, in the environment of the application.

    Raises ``StartError`` if it fails; it has written why. If this process is stopped meanwhile, the
    restore is undone.
    """
    with undisturbed():
        process = subprocess.Popen(
            [sys.executable, "manage.py", "restore", "--before-start", *arguments],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=before_exec(signal.SIGTERM),
        )
    try:
        status = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    if status:
        raise StartError(
            "The restore failed (see above), so the service wasn't started: correct the cause, or"
            " start without --restore."
        )

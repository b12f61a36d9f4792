"""The process of a scheduled backup, which a worker starts and waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

from backend.kernel.process.children import before_exec, ended_by
from backend.logs.setup import get_logger
from backend.settings.areas.processes import BASE_DIR

LONGEST: Final = 12 * 3600.0
"""Seconds; then the process is killed."""

log = get_logger("backup")


def back_up(sent_at: float) -> bool:
    """Run ``manage.py backup --scheduled`` to its end, and kill it after twelve hours. Return
    whether it succeeded.

    It is a process of its own, so that neither its memory nor a place that doesn't answer is the
    worker's, and it ends with the worker. It records and logs how the run ended, unless it is
    killed: then ``history.mark_killed`` is to record it.
    """
    process = subprocess.Popen(
        [sys.executable, "manage.py", "backup", "--scheduled", str(sent_at)],
        cwd=BASE_DIR,
        env={**os.environ, "PROCESS": "manage"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=before_exec(signal.SIGTERM),
    )
    try:
        status = process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        log.error("a backup was killed: it took too long", seconds=LONGEST)
        return False
    finally:
        if process.poll() is None:
            # pg_dump and psql are of its session.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status < 0:
        log.error("a backup was killed", end=ended_by(status))
    return status == 0

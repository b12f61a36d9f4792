"""Beat ends on SIGTERM, at every point of its work."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing

import psycopg
import pytest

from tests.functions.jobs.processes import PATIENCE, Processes
from tests.other_process import ROOT, database_url


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db
def test_beat_ends_while_it_reads_the_schedule() -> None:
    """The reading waits for a lock here; it may as well be a database that hangs."""
    environment = Processes("").environment | {"LOCK_TIMEOUT": "0", "STATEMENT_TIMEOUT": "0"}
    with closing(psycopg.connect(database_url())) as holder:
        holder.execute("LOCK TABLE django_celery_beat_periodictask")
        process = subprocess.Popen(
            [sys.executable, "-m", "backend.serve", "beat"], cwd=ROOT, env=environment
        )
        try:
            _wait_until_somebody_waits(holder)
            process.terminate()
            process.wait(20)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0


def _wait_until_somebody_waits(connection: psycopg.Connection) -> None:
    waiting = (
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation ="
        " 'django_celery_beat_periodictask'::regclass"
    )
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        row = connection.execute(waiting).fetchone()
        if row and row[0]:
            return
        time.sleep(0.05)
    raise AssertionError("beat doesn't read the schedule")

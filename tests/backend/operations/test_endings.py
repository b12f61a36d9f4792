"""What waits in a process's memory is sent when the process ends, also in Celery's pools."""

from __future__ import annotations

import subprocess
import sys

from tests.backend.operations.service import PATIENCE, ROOT, plain_environment

POOL = """
import os, sys
from billiard.pool import Pool
from celery.concurrency.prefork import process_destructor
import backend.celery
from backend.kernel.process.exit_hooks import at_end

def begin():
    at_end(lambda: os.write(1, b"first given\\n"))
    at_end(lambda: os.write(1, b"last given\\n"))

pool = Pool(1, initializer=begin, on_process_exit=process_destructor)
pool.apply(abs, (1,))
pool.close()
pool.join()
os.write(1, b"the parent ends\\n")
"""
KEYS = {"SECRET_KEY": "k" * 40, "APP_ID": "app", "REST_API_KEY": "r" * 20, "MASTER_KEY": "m" * 20}


def test_a_process_of_a_pool_sends_what_waits_when_it_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", POOL],
        cwd=ROOT,
        env=plain_environment(PROCESS="test", **KEYS),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "last given\nfirst given\nthe parent ends\n"

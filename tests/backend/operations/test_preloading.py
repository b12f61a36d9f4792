"""What a process has done before the processes of the roles are forked from it."""

from __future__ import annotations

import subprocess
import sys

from tests.backend.operations.service import PATIENCE, ROOT, plain_environment

PRELOAD = """
import os, sys, threading
from backend.operations.processes.preload import preload
preload()
loaded = {"backend.wsgi", "backend.asgi", "backend.celery"} <= set(sys.modules)
sockets = [name for each in os.listdir("/proc/self/fd")
    if os.path.exists(path := f"/proc/self/fd/{each}") or os.path.islink(path)
    if (name := os.readlink(path)).startswith("socket:")]
threads = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
print(loaded, sockets, threads)
"""


def test_preloading_opens_no_connection_and_starts_no_thread() -> None:
    keys = dict.fromkeys(("SECRET_KEY", "APP_ID", "REST_API_KEY", "MASTER_KEY"), "check")
    done = subprocess.run(
        [sys.executable, "-c", PRELOAD],
        cwd=ROOT,
        env=plain_environment(
            **keys,
            PROCESS="web",
            DJANGO_SETTINGS_MODULE="backend.settings.django",
            DATABASE_URL="postgresql://nobody@127.0.0.1:9/none",
            REDIS_URL="redis://127.0.0.1:9/0",
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("True [] []\n", 0), done.stderr

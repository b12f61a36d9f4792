"""Workers and beat as real processes on the database of the test run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psutil
import redis
from django.conf import settings

from backend.kernel.principal import MASTER
from objects import service
from objects.core.query.parser import parse_where
from objects.core.query.tree import FindOptions
from tests.other_process import ROOT, database_url

PATIENCE = 90  # seconds, for a machine that is busy with other things
_PAUSE = 0.05
_T = TypeVar("_T")


class Processes:
    """The processes by their roles."""

    def __init__(self, modules: str) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "LOG_LEVEL": "ERROR",
            "CLOUD_MODULES": modules,
            "JOB_HEARTBEAT": "1",
            "JOB_CONCURRENCY": "4",
            "WORKER_CONCURRENCY": "1",
        }

    def start(self, role: str) -> None:
        self.running[role] = subprocess.Popen(
            [sys.executable, "-m", "backend.serve", role], cwd=ROOT, env=self.environment
        )

    def kill(self, role: str) -> None:
        """As ``kill -9`` to the process and to its children, so that none can say goodbye."""
        process = self.running.pop(role)
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
        for item in family:
            item.kill()
        psutil.wait_procs(family, timeout=PATIENCE)
        process.wait(PATIENCE)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ``manage.py``."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, "PROCESS": "manage"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def stop(self) -> None:
        """Also in the middle of a job."""
        for role in [*self.running]:
            self.kill(role)


def say(word: str) -> None:
    """Let a job go on that waits for the word."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.rpush(f"tests:{word}", "go on")


def until(ask: Callable[[], _T]) -> _T:
    """What ``ask`` gives as soon as that is something."""
    end = time.monotonic() + PATIENCE
    while not (value := ask()):
        assert time.monotonic() < end, "It didn't happen."
        time.sleep(_PAUSE)
    return value


def find(class_name: str, **where: Any) -> list[dict[str, Any]]:
    """The committed objects of a class."""
    options = FindOptions(where=parse_where(where), limit=1000)
    return service.find(MASTER, class_name, options).objects()


def status(status_id: str) -> dict[str, Any]:
    (result,) = find("_JobStatus", objectId=status_id)
    return result


def ended(status_id: str) -> dict[str, Any]:
    """The run, when it is over."""
    return until(lambda: (now := status(status_id)).get("finishedAt") and now)


def saying(status_id: str) -> str:
    """The first message of a run."""
    return str(until(lambda: status(status_id).get("message")))

"""Jobs as a deployment would have them, for real workers. Those that wait do so for a word in a
Redis list, which ``say`` of ``processes`` puts there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import redis
from django.conf import settings

from backend.kernel.errors import DuplicateValue
from functions import JobRequest, job

_LONGEST = 60  # seconds that anything waits


def wait_for(word: str) -> None:
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None) as client:
        client.blpop([f"tests:{word}"], timeout=_LONGEST)


@job()
def cloud_note(request: JobRequest, text: str, times: int = 1) -> str:
    """Write objects, as the master key."""
    assert request.master
    for _ in range(times):
        request.objects("JobNote").create({"text": text, "by": request.status_id})
    return f"{times} written by {os.getpid()}"


@job()
def cloud_adds_up(request: JobRequest) -> dict[str, int]:
    return {"sum": 3}


@job()
def cloud_breaks(request: JobRequest) -> None:
    raise RuntimeError("secret=s3cr3t of the inside")


@job()
def cloud_refuses(request: JobRequest) -> None:
    request.message("on the way")
    raise DuplicateValue("The report is there already.")


@job()
def cloud_exits(request: JobRequest) -> None:
    sys.exit(3)


@job(time_limit=1)
def cloud_spins_too_long(request: JobRequest) -> None:
    while True:
        pass


@job(time_limit=1)
def cloud_sleeps(request: JobRequest) -> None:
    time.sleep(_LONGEST * 2)


@job(time_limit=1)
def cloud_has_children(request: JobRequest, file: str) -> None:
    """One waits for the other, and neither ends when it is asked to."""
    script = f"trap '' TERM; echo $$ > {file}.new; mv {file}.new {file}; sleep {_LONGEST} & wait"
    subprocess.run(["sh", "-c", script], check=False)
    subprocess.run(["sleep", str(_LONGEST)], check=False)


@job()
def cloud_spins(request: JobRequest, until: str) -> None:
    """Compute until a file is there; it is looked for seldom, since looking lets others run."""
    end = time.monotonic() + _LONGEST
    while time.monotonic() < end and not os.path.exists(until):
        for _ in range(1_000_000):
            pass


@job()
def cloud_waits(request: JobRequest, word: str) -> str:
    request.message(str(os.getpid()))
    wait_for(word)
    return "heard"


@job()
def cloud_alone(request: JobRequest, word: str) -> None:
    wait_for(word)


@job()
def cloud_talks(request: JobRequest, word: str) -> None:
    with request.transaction():
        request.objects("JobNote").create({"text": word})
        for number in range(1000):
            request.message(f"{number} of 1000 \x00 done")
        wait_for(word)


@job(restart=True)
def cloud_comes_back(request: JobRequest, word: str) -> str:
    request.message(str(os.getpid()))
    if request.attempt == 1:
        wait_for(word)
    return f"attempt {request.attempt}"


@job(schedule=1)
def cloud_ticks(request: JobRequest) -> None:
    """Every second."""


@job(schedule=1)
def cloud_ticks_slowly(request: JobRequest) -> None:
    wait_for("slow tick")


@job()
def cloud_once(request: JobRequest, text: str) -> str:
    return text

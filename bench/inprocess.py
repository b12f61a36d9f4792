"""Replays requests on the WSGI application inside one process and samples its stack.

``python -m bench.inprocess REQUESTS SECONDS`` with the headers as JSON on the standard input and
the service's settings in the environment; prints what it saw as one line of JSON. The clock of
the samples is the processor time of this process, so waiting for PostgreSQL costs nothing, and C
code counts for the Python line that called it. No rights are needed to look into oneself.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any
from urllib.parse import unquote

_INTERVAL = 0.001
_DEPTH = 60


def environments(path: str, headers: dict[str, str]) -> list[tuple[dict[str, Any], bytes]]:
    """A WSGI environment and a body for every line of a file of requests."""
    common: dict[str, Any] = {
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8001",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "SCRIPT_NAME": "",
        "HTTP_HOST": "127.0.0.1:8001",
        "CONTENT_TYPE": "application/json",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        **{f"HTTP_{name.upper().replace('-', '_')}": text for name, text in headers.items()},
    }
    found = []
    with open(path) as file:
        for line in file:
            method, target, body = line.rstrip("\n").split("\t")
            place, _, query = target.partition("?")
            environment = {
                **common,
                "REQUEST_METHOD": method,
                "PATH_INFO": unquote(place),
                "QUERY_STRING": query,
                "CONTENT_LENGTH": str(len(body.encode())) if body else "",
            }
            found.append((environment, body.encode()))
    return found


class Sampler:
    """Counts stacks, innermost frame first, while it runs."""

    def __init__(self) -> None:
        self.stacks: Counter[tuple[tuple[str, str], ...]] = Counter()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        stack: list[tuple[str, str]] = []
        while frame is not None and len(stack) < _DEPTH:
            stack.append((frame.f_code.co_filename, frame.f_code.co_qualname))
            frame = frame.f_back
        self.stacks[tuple(stack)] += 1

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    path, seconds = sys.argv[1], float(sys.argv[2])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")
    from backend.wsgi import application

    requests: Iterator[tuple[dict[str, Any], bytes]] = itertools.cycle(
        environments(path, json.load(sys.stdin))
    )
    failed = 0

    def start_response(status: str, headers: Any, exc_info: Any = None, /) -> Any:
        nonlocal failed
        failed += not status.startswith("2")

    def replay(until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            environment, body = next(requests)
            answer = application({**environment, "wsgi.input": io.BytesIO(body)}, start_response)
            for _ in answer:
                pass
            if hasattr(answer, "close"):
                answer.close()
            count += 1
        return count

    replay(time.perf_counter() + 1)
    sampler = Sampler()
    sampler.start()
    wall, cpu = time.perf_counter(), time.process_time()
    count = replay(wall + seconds)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    sampler.stop()
    seen = {
        "requests": count,
        "failed": failed,
        "wall": wall,
        "cpu": cpu,
        "stacks": [[list(stack), hits] for stack, hits in sampler.stacks.items()],
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main()

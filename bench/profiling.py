"""Where the processor time of a request goes, layer by layer.

The same requests are measured twice: under load through the server, for what a request costs,
and one at a time inside one process that samples its own stack, for the shares. A sample belongs
to the innermost library, or module of ours, that is on the stack: what msgspec or Python's own
modules do counts for their caller.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.failure import BenchFailure
from bench.inprocess import __name__ as inprocess
from bench.measure import Options, Run, run_once, say, write_requests
from bench.servers import LOGS, ROOT, Engines, Target, service_environment
from bench.workloads import Loaded, Workload

_Frame = tuple[str, str]
_LIBRARIES = (
    ("django/db/", "Django: database wrapper"),
    ("django/core/handlers/", "Django: handler"),
    ("django/urls/", "Django: routes"),
    ("django/dispatch/", "Django: signals"),
    ("django/http/", "Django: request and response"),
    ("django/", "Django: the rest"),
    ("asgiref/", "Django: asgiref"),
    ("rest_framework/", "Django REST framework"),
    ("corsheaders/", "CORS"),
    ("psycopg", "SQL: psycopg"),
    ("structlog/", "logging"),
    ("logging/", "logging"),
    ("redis/", "Redis"),
)


def profile(
    engines: Engines,
    target: Target,
    loaded: Loaded,
    workloads: Sequence[Workload],
    options: Options,
) -> tuple[str, dict[str, Any]]:
    """One table for every workload: microseconds a request by layer."""
    parts, contents = [], {}
    with tempfile.TemporaryDirectory(prefix="svc-bench-profile-") as folder:
        for workload in workloads:
            requests = write_requests(Path(folder), workload, target, loaded)
            run_once(engines, target, workload, requests, options, 1)
            run = run_once(engines, target, workload, requests, options, options.seconds)
            say(f"{workload.name}: {run.load.rate:.0f}/s under load; sampling")
            seen = _sampled(engines, target, requests, options.seconds)
            text, layers = _table(workload, run, seen)
            parts.append(text)
            contents[workload.name] = {"run": run.as_dict(), "layers_us": layers}
    return "\n\n".join(parts), {"profile": contents}


def _sampled(engines: Engines, target: Target, requests: Path, seconds: int) -> dict[str, Any]:
    with (LOGS / "profile.log").open("ab") as log:
        done = subprocess.run(
            [sys.executable, "-m", inprocess, str(requests), str(seconds)],
            cwd=ROOT,
            env=service_environment(engines),
            input=json.dumps(target.headers).encode(),
            stdout=subprocess.PIPE,
            stderr=log,
        )
    if done.returncode != 0:
        raise BenchFailure("the process that samples itself failed: see bench/results/profile.log")
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if seen["failed"]:
        raise BenchFailure(f"{seen['failed']} of {seen['requests']} requests failed in process")
    return seen


def _table(workload: Workload, run: Run, seen: dict[str, Any]) -> tuple[str, dict[str, float]]:
    cpu = seen["cpu"] / seen["requests"] * 1e6
    layers: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for stack, hits in seen["stacks"]:
        layers[_layer(stack)] += hits
        functions[f"{stack[0][1]} ({'/'.join(Path(stack[0][0]).parts[-2:])})"] += hits
    each = cpu / max(sum(layers.values()), 1)
    found = {layer: hits * each for layer, hits in layers.most_common()}
    alone = seen["requests"] / seen["wall"]
    whole = run.server_cpu + run.postgres_cpu
    found["server, threads, sockets"] = run.server_cpu - cpu
    found["PostgreSQL"] = run.postgres_cpu
    lines = [
        f"### {workload.title}",
        "",
        f"{run.load.rate:,.0f} requests/s under load; {whole:,.0f} µs of processor time a request, "
        f"{cpu:,.0f} of them in the application (one at a time: {alone:,.0f} requests/s).",
        "",
        "| layer | µs | share |",
        "| --- | ---: | ---: |",
        *(
            f"| {layer} | {cost:.0f} | {cost / whole:.0%} |"
            for layer, cost in sorted(found.items(), key=lambda item: -item[1])
            if abs(cost) >= 1
        ),
        "",
        "Functions by their own time, µs: "
        + ", ".join(f"{name} {hits * each:.0f}" for name, hits in functions.most_common(15)),
    ]
    return "\n".join(lines), found


def _layer(stack: list[_Frame]) -> str:
    for file, _ in stack:
        if file.startswith(f"{ROOT}/") and ".venv/" not in file:
            return file.removeprefix(f"{ROOT}/")
        for mark, layer in _LIBRARIES:
            if f"site-packages/{mark}" in file:
                return layer
    return "Python"

"""Where the time of a request goes: samples of the web processes' stacks, taken by py-spy.

A sample belongs to the innermost frame, and that to the library it is in, or to the module of
ours. What C code does (msgspec, psycopg's and Python's own) counts for the frame that called it.
Only threads that really run are sampled; waiting for PostgreSQL costs no time of ours and isn't
in the table.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import accounting
from bench.failure import BenchFailure
from bench.measure import Options, Run, run_once, write_requests
from bench.servers import ROOT, Engines, Target
from bench.workloads import Loaded, Workload

_RATE = 400
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>.+):(?P<line>\d+)\)$")
_LIBRARIES = (
    ("django/db/", "Django: database wrapper"),
    ("django/", "Django: handler, URLs, request, response"),
    ("rest_framework/", "Django REST framework"),
    ("corsheaders/", "corsheaders"),
    ("whitenoise/", "WhiteNoise"),
    ("psycopg", "SQL: psycopg"),
    ("structlog/", "logging"),
    ("logging/", "logging"),
    ("redis/", "Redis"),
    ("msgspec/", "JSON"),
    ("asgiref/", "asgiref"),
    ("granian/", "granian: WSGI callbacks"),
)


def profile(
    engines: Engines,
    target: Target,
    loaded: Loaded,
    workloads: Sequence[Workload],
    options: Options,
) -> tuple[str, dict[str, Any]]:
    """Sample every workload once; a table of microseconds a request by layer for each."""
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which(
        "py-spy"
    )
    if program is None:
        raise BenchFailure("--profile needs py-spy: pip install -r requirements-dev.txt")
    parts, contents = [], {}
    with tempfile.TemporaryDirectory(prefix="svc-bench-profile-") as folder:
        for workload in workloads:
            requests = write_requests(Path(folder), workload, target, loaded)
            run_once(engines, target, workload, requests, options, 1)
            run, stacks = _sampled(
                program, Path(folder), engines, target, workload, requests, options
            )
            layers, functions = _by_layer(stacks)
            parts.append(_table(workload, run, layers, functions))
            contents[workload.name] = {
                "run": run.as_dict(),
                "layers": layers,
                "functions": functions.most_common(40),
            }
    return "\n\n".join(parts), {"profile": contents}


def _sampled(
    program: str,
    folder: Path,
    engines: Engines,
    target: Target,
    workload: Workload,
    requests: Path,
    options: Options,
) -> tuple[Run, Counter[str]]:
    workers = [pid for pid in accounting.tree(target.pid) if pid != target.pid]
    watching = []
    for pid in workers:
        output = folder / f"{workload.name}-{pid}.stacks"
        command = [program, "record", "--pid", str(pid), "--rate", str(_RATE), "--format", "raw"]
        command += ["--duration", str(options.seconds + 1), "--output", str(output)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        watching.append((process, output))
    run = run_once(engines, target, workload, requests, options, options.seconds)
    stacks: Counter[str] = Counter()
    for process, output in watching:
        _, errors = process.communicate()
        if output.exists():
            for line in output.read_text().splitlines():
                stack, _, count = line.rpartition(" ")
                stacks[stack] += int(count)
        elif b"python" not in errors.lower():  # a helper process that isn't Python has no stacks
            raise BenchFailure(f"py-spy can't read the web process: {errors.decode()[-300:]}")
    if not stacks:
        raise BenchFailure(
            "py-spy saw nothing: it needs the right to trace processes (root, or "
            "sysctl kernel.yama.ptrace_scope=0)"
        )
    return run, stacks


def _by_layer(stacks: Counter[str]) -> tuple[dict[str, int], Counter[str]]:
    layers: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = stack.split(";")
        layers[_layer(frames)] += count
        functions[_short(frames[-1])] += count
    return dict(layers.most_common()), functions


def _layer(frames: list[str]) -> str:
    """The library or module of the innermost frame that is in one; Python's own don't count."""
    for frame in reversed(frames):
        matched = _FRAME.match(frame)
        file = matched["file"] if matched else frame
        own = _own(file)
        if own:
            return own
        for mark, layer in _LIBRARIES:
            if f"/{mark}" in f"/{file}":
                return layer
    return "Python itself"


def _own(file: str) -> str | None:
    path = file.removeprefix(f"{ROOT}/")
    if path.startswith(("backend/", "objects/", "functions/", "chain/", "realtime/")):
        return path
    return None


def _short(frame: str) -> str:
    matched = _FRAME.match(frame)
    if not matched:
        return frame
    return f"{matched['function']} ({'/'.join(Path(matched['file']).parts[-3:])})"


def _table(workload: Workload, run: Run, layers: dict[str, int], functions: Counter[str]) -> str:
    # A sample stands for 1/_RATE seconds of one thread.
    each = 1e6 / _RATE / run.load.requests
    python = sum(layers.values()) * each
    lines = [
        f"### {workload.title}: {run.load.rate:,.0f} requests/s while being sampled, CPU "
        f"{run.server_cpu:.0f} µs of the web processes and {run.postgres_cpu:.0f} µs of PostgreSQL",
        "",
        "| layer | µs a request | share |",
        "| --- | ---: | ---: |",
    ]
    for layer, count in layers.items():
        if count * each >= 0.5:
            lines.append(f"| {layer} | {count * each:.1f} | {count * each / run.server_cpu:.0%} |")
    rest = max(run.server_cpu - python, 0.0)
    lines.append(
        f"| granian's own threads, kernel, sampling | {rest:.1f} | {rest / run.server_cpu:.0%} |"
    )
    lines += [
        "",
        "Functions by their own time, µs a request: "
        + ", ".join(f"{name} {count * each:.1f}" for name, count in functions.most_common(12)),
    ]
    return "\n".join(lines)

"""The load: wrk, or autocannon where wrk isn't installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.failure import BenchFailure

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Load:
    """What a run of the generator saw. Times in milliseconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    failed: int
    generator_cpu: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def choose(wanted: str | None) -> str:
    """The generator to use; says so when the better one is missing."""
    if wanted == "autocannon" or (wanted is None and shutil.which("wrk") is None):
        if wanted is None:
            print(
                "wrk isn't installed (apt-get install wrk): autocannon makes the load. It takes a "
                "core for itself, so the figures are lower for every server.",
                file=sys.stderr,
            )
        return "autocannon"
    if shutil.which("wrk") is None:
        raise BenchFailure("wrk isn't installed: apt-get install wrk, or --generator autocannon")
    return "wrk"


def run(
    generator: str,
    port: int,
    headers: dict[str, str],
    requests: Path,
    connections: int,
    seconds: int,
) -> Load:
    """Send the requests of the file, over and over, for this long."""
    url = f"http://127.0.0.1:{port}"
    if generator == "wrk":
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            command += ["-H", f"{name}: {value}"]
        command += ["-s", str(HERE / "replay.lua"), url, "--", str(requests)]
    else:
        given = json.dumps({**headers, "content-type": "application/json"})
        command = ["node", str(HERE / "replay.js"), url, str(requests)]
        command += [str(connections), str(seconds), given]
    output, cpu = _run(command)
    # wrk prints its own summary first.
    seen = json.loads(output.strip().splitlines()[-1])
    return Load(**seen, generator_cpu=cpu)


def _run(command: list[str]) -> tuple[str, float]:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise BenchFailure(f"{command[0]} failed: {done.stderr.strip()[-400:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

"""CPU time of processes, and what the machine is, from /proc."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """User and system time of a process and all below it, those included that have ended."""
    return sum(_ticks(fields) for fields in _tree(root)) / _TICK


def tree(root: int) -> list[int]:
    """The process and all below it."""
    return [int(fields[0]) for fields in _tree(root)]


def _tree(root: int) -> list[list[str]]:
    processes: dict[int, list[str]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:  # ended meanwhile
            continue
        # The name, in parentheses, may itself hold spaces and parentheses.
        fields = [entry.name, *text.rpartition(")")[2].split()]
        processes[int(entry.name)] = fields
        children[int(fields[2])].append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in processes:
            found.append(processes[pid])
            waiting += children[pid]
    return found


def _ticks(fields: list[str]) -> int:
    # Fields 14 to 17 of stat(5): utime, stime, cutime, cstime.
    return sum(int(field) for field in fields[12:16])


def machine() -> dict[str, str]:
    """What the figures depend on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024 // 1024
    return {
        "cpu": f"{os.cpu_count()} cores, {model}",
        "memory": f"{memory} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }

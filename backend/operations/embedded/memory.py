"""How much memory the engines may count on: the machine's, or what its container is allowed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_LIMITS: Final = (
    "memory.max",  # the second version of cgroups, inside a container
    "memory/memory.limit_in_bytes",  # the first one
)


def available_memory(cgroups: Path = _CGROUPS) -> int:
    """Megabytes: of the machine, or of the limit of this process's container if that is lower."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _limit_files(cgroups):
        # "max" is no number, and no limit.
        with contextlib.suppress(OSError, ValueError):
            size = min(size, int((cgroups / name).read_text()))
    return size // 2**20


def _limit_files(cgroups: Path) -> list[str]:
    """The files that may hold a limit, of this process's own group and of those above."""
    files = [*_LIMITS]
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0":  # the second version: one group for everything
                parts = [part for part in path.split("/") if part not in ("", "..")]
                files += [
                    "/".join([*parts[:length], "memory.max"]) for length in range(1, len(parts) + 1)
                ]
    return files

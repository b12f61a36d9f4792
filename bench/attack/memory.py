"""Memory of the service's processes, by role, sampled while an attack runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import accounting

_EVERY = 0.5
_ENGINES = {"postgres": "postgres", "redis-server": "redis", "caddy": "caddy"}


@dataclass(frozen=True, slots=True)
class Usage:
    """Megabytes of each role's processes: proportional set size, so shared pages count once."""

    roles: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.roles.values())

    def growth(self, before: Usage) -> dict[str, float]:
        """By how much each role has grown, the largest growth first."""
        grown = {role: size - before.roles.get(role, 0.0) for role, size in self.roles.items()}
        return dict(sorted(grown.items(), key=lambda item: -item[1]))


def usage(root: int) -> Usage:
    """The memory of a process and of all below it."""
    roles: Counter[str] = Counter()
    for pid in accounting.tree(root):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has ended meanwhile
            continue
        size = next((line for line in rollup.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
        roles[_role([word.decode(errors="replace") for word in command])] += int(size.split()[1])
    return Usage({role: kilobytes / 1024 for role, kilobytes in roles.items()})


def _role(command: list[str]) -> str:
    """The role of a process by its command line."""
    name = Path(command[0]).name.split(":")[0] if command else ""
    if name in _ENGINES:
        return _ENGINES[name]
    if "backend.serve" in command:
        return command[command.index("backend.serve") + 1]
    return "launcher"


class Peak:
    """Samples memory in a thread while a block runs; ``usage`` has the largest of each role."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.usage = usage(root)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(_EVERY):
            sample = usage(self._root)
            roles = {**sample.roles, **self.usage.roles}
            self.usage = Usage(
                {role: max(size, sample.roles.get(role, 0.0)) for role, size in roles.items()}
            )

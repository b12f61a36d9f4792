"""What was restarted: written by supervisors, read by ``/ready``, ``doctor`` and the admin.

Each supervisor of an instance writes a file of its own into ``DataFolder.reports``. Files and no
Redis: Redis may be what fails. Where ``script/server`` doesn't run, as in containers, the folder is
missing and nothing is written: there, something else restarts the processes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Restarted:
    """A process that has been restarted, or a group of equal ones.

    ``restarts`` counts since the start of its supervisor; ``last_end`` is what ended it the last
    time, as text, ``last_time`` when, in seconds since the epoch. ``is_failing`` says that it ended
    five times or more within a minute.
    """

    name: str
    restarts: int
    is_failing: bool
    last_end: str
    last_time: float


def write(folder: Path, source: str, restarted: Iterable[Restarted]) -> None:
    """Replace what ``source`` has reported. Does nothing where the folder can't be written to."""
    place = folder / f"{source}.json"
    fresh = place.with_suffix(".new")
    with contextlib.suppress(OSError):
        fresh.write_text(json.dumps([asdict(each) for each in restarted]))
        fresh.replace(place)


def clear(folder: Path) -> None:
    """Forget what an earlier instance has reported."""
    for place in folder.glob("*.json"):
        with contextlib.suppress(OSError):  # ``read`` ignores what is no report
            place.unlink()


def read(folder: Path) -> list[Restarted]:
    """What all supervisors of the instance have reported, by name."""
    restarted: list[Restarted] = []
    for place in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            restarted += [Restarted(**fields) for fields in json.loads(place.read_text())]
    return sorted(restarted, key=lambda each: each.name)

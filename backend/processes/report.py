"""What was restarted: written by supervisors, read by ``/ready``, ``doctor`` and the admin.

Each supervisor of an instance writes a file of its own into the folder that ``SUPERVISION`` names.
A file and no Redis: Redis may be what fails. Without the variable, as in containers, nothing is
written: there, the engine of the containers restarts them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = "SUPERVISION"
"""The environment variable that names the folder."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """A process that has been restarted, or a group of equal ones.

    ``restarts`` counts since the start of its supervisor; ``last_end`` is what ended it the last
    time, as text, ``last_time`` when, in seconds since the epoch. ``is_failing`` says that it died
    five times or more within a minute.
    """

    name: str
    restarts: int
    is_failing: bool
    last_end: str
    last_time: float


def write(source: str, found: Iterable[Restarted]) -> None:
    """Replace what ``source`` has reported. Does nothing where the folder can't be written to."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    place = Path(folder) / f"{source}.json"
    fresh = place.with_suffix(".new")
    with contextlib.suppress(OSError):
        fresh.write_text(json.dumps([asdict(one) for one in found]))
        fresh.replace(place)


def clear() -> None:
    """Forget what an earlier instance has reported."""
    for place in _places():
        place.unlink(missing_ok=True)


def read() -> list[Restarted]:
    """What all supervisors of this instance have reported."""
    found: list[Restarted] = []
    for place in _places():
        with contextlib.suppress(OSError, ValueError, TypeError):
            found += [_read(one) for one in json.loads(place.read_text())]
    return found


def _places() -> list[Path]:
    folder = os.environ.get(FOLDER)
    return sorted(Path(folder).glob("*.json")) if folder else []


def _read(one: Mapping[str, object]) -> Restarted:
    return Restarted(**one)  # type: ignore[arg-type]

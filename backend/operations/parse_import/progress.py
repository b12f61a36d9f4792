"""The progress of an import: a small file from which it resumes after any stop."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backend.instance.folder import private_file
from backend.operations.parse_import.problems import ImportFailed

_VERSION = 1


@dataclass
class Step:
    """One step, for example the objects of one class: how far it is, and what came of it.

    ``position`` is the source's. ``read`` counts what the source had, ``refused`` what wasn't
    stored, and ``files_left`` the files that it names and that aren't stored: the next run that has
    a place of files fetches them.
    """

    position: str = ""
    read: int = 0
    refused: int = 0
    files_left: int = 0
    is_finished: bool = False


@dataclass
class Progress:
    """All steps of an import by name. ``save`` it after each batch that is committed."""

    source: str
    steps: dict[str, Step] = field(default_factory=dict)
    version: int = _VERSION

    def step(self, name: str) -> Step:
        """Return a step, a new one if it wasn't begun."""
        return self.steps.setdefault(name, Step())

    def save(self, path: Path) -> None:
        """Replace the file in one step."""
        fresh = path.with_name(f"{path.name}.new")
        with private_file(fresh) as file:
            json.dump(asdict(self), file, indent=1)
        fresh.replace(path)


def load(path: Path, source: str) -> Progress:
    """Read the progress of an import, or begin one.

    Raises ``ImportFailed`` for the progress of another source or version.
    """
    if not path.exists():
        return Progress(source)
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
        if stored["version"] != _VERSION:
            raise ImportFailed(f"{path} was written by another version. Delete it to start again.")
        steps = {name: Step(**step) for name, step in stored["steps"].items()}
        progress = Progress(stored["source"], steps)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ImportFailed(f"{path} isn't the progress of an import: {error}") from error
    if progress.source != source:
        raise ImportFailed(
            f"{path} belongs to an import from {progress.source}. Name another file for this"
            " source: --state FILE."
        )
    return progress

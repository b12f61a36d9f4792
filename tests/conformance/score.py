"""The score of a run: how many of the tests that ran have passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Score:
    """Tests that passed, and all that ran."""

    passed: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        return self.passed / self.total if self.total else 0.0


def table(files: Iterable[Mapping[str, Any]], score: Score) -> Iterator[str]:
    """Yield a line for each file with tests that ran, and add them to the score.

    Skipped tests, which need the inside of Parse Server, don't count.
    """
    for file in files:
        passed, total = file["passed"], file["passed"] + file["failed"]
        score.passed += passed
        score.total += total
        if total or file.get("incomplete"):
            name = f"{file['suite']}/{file['file']}"
            missing = f"  -{total - passed}" if total > passed else ""
            end = f"  INCOMPLETE: {file['incomplete']}" if file.get("incomplete") else ""
            yield f"{name:45} {passed}/{total}{missing}{end}"

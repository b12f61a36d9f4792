"""A loaded service, and a table of what happened to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backend.operations.mixed_load import FUNCTIONS, MixedLoad, index, is_whole, stored
from tests.backend.operations.service import PATIENCE, Service
from tests.evm.node import running_node
from tests.polling import until

Start = Callable[..., Service]

NAMES = {
    "backend.serve": "the application with all roles",
    "/postgres": "PostgreSQL",
    "redis-server": "Redis",
}
"""Processes of the service that aren't a role's, by a word of their command line."""


@contextmanager
def loaded(start: Start, folder: Path, **settings: object) -> Iterator[MixedLoad]:
    """A service with clients of every kind and a chain that it indexes. At the end nothing that
    was acknowledged may be missing, and every event has been delivered once, in order."""
    (folder / "notes.py").write_text(FUNCTIONS)
    with running_node(7150, "--gas-limit", "3000000000") as node:
        gem = node.deployed("Gem")
        service = start(WEB_WORKERS=2, PYTHONPATH=folder, CLOUD_MODULES="notes", **settings)
        until(lambda: is_whole(service), PATIENCE)
        index(service, gem)
        with MixedLoad(service, contract=gem) as load:
            load.seconds_to_recover()
            yield load
            load.stop_mining()
            until(load.has_every_event, PATIENCE)
        assert load.without_advice == []
        assert load.stored <= stored(service)


class Table:
    """What happened, the responses meanwhile, and how long recovering took, in Markdown."""

    def __init__(self) -> None:
        self._lines = [
            "| what happened | 2xx | 503 with `Retry-After` | cut off | others | seconds |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]

    def add(self, what: str, load: MixedLoad, seconds: float) -> None:
        """Add what the load has counted since its answers were cleared."""
        answers = load.answers
        good = answers[200] + answers[201]
        cut = sum(number for answer, number in answers.items() if isinstance(answer, str))
        failed = sum(answers.values()) - good - cut - answers[503]
        cells = (what, good, answers[503], cut, failed, f"{seconds:.1f}")
        self._lines.append(f"| {' | '.join(map(str, cells))} |")

    def __str__(self) -> str:
        return "\n".join(self._lines)

"""A loaded service, and a row for what happened to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.evm.node import running_node
from tests.process.mixed_load import FUNCTIONS, MixedLoad, follow, is_whole, stored
from tests.process.service import PATIENCE, Service
from tests.waiting import until

Start = Callable[..., Service]


@contextmanager
def loaded(start: Start, folder: Path, **settings: object) -> Iterator[MixedLoad]:
    """A service with clients of every kind and a chain that it follows. At the end nothing that
    was acknowledged may be missing, and every event has been told once, in order."""
    (folder / "notes.py").write_text(FUNCTIONS)
    with running_node(7150, "--gas-limit", "3000000000") as node:
        gem = node.deployed("Gem")
        service = start(WEB_WORKERS=2, PYTHONPATH=folder, CLOUD_MODULES="notes", **settings)
        until(lambda: is_whole(service), PATIENCE)
        follow(service, gem)
        with MixedLoad(service, contract=gem) as load:
            load.heals()
            yield load
            load.stop_mining()
            until(load.has_heard_all, PATIENCE)
        assert load.without_advice == []
        assert load.stored <= stored(service)


def report(what: str, load: MixedLoad, seconds: float) -> None:
    """A row of the table."""
    answers = load.answers
    good = answers[200] + answers[201]
    cut = sum(number for answer, number in answers.items() if isinstance(answer, str))
    others = {answer: number for answer, number in answers.items() if answer not in (200, 201, 503)}
    print(f"| {what} | {good} | {cut} | {answers[503]} | {seconds:.1f} | {others or ''}")

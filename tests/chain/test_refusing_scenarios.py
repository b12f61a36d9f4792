"""Providers refuse at random, with texts that no list knows, and lie: nothing wrong is stored, and
nothing stands still that one of them answers."""

from __future__ import annotations

import os

import pytest

from chain.rpc import requests
from tests.chain.lying_scenarios import Counts, play
from tests.chain.refusing_scenarios import RefusingScenario
from tests.evm.node import Node
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db(transaction=True)

SCENARIOS = int(os.environ.get("REFUSING_SCENARIOS") or 4)
"""Scenarios of each case of the slow test."""
CASES = [(providers, verify) for providers in (1, 2) for verify in ("all", "sample")]


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two tries."""
    monkeypatch.setattr(requests, "_BACKOFF", 0.0)


@pytest.mark.parametrize(("providers", "verify"), CASES)
def test_refusals_leave_nothing_wrong_and_nothing_unread(
    node: Node, providers: int, verify: str
) -> None:
    counts = play(node, 1, providers=providers, verify=verify, kind=RefusingScenario)
    assert not counts.wrong, str(counts)


@pytest.mark.slow
@pytest.mark.parametrize(("providers", "verify"), CASES)
def test_many_refusals_leave_nothing_wrong_and_nothing_unread(
    node: Node, providers: int, verify: str
) -> None:
    """``REFUSING_SCENARIOS`` in the environment is the number of scenarios of each case."""
    first = seed_of(DRAWN)
    total = Counts.none()
    for seed in range(first, first + SCENARIOS):
        total.add(play(node, seed, providers=providers, verify=verify, kind=RefusingScenario))
    print(total)
    assert not total.wrong, str(total)

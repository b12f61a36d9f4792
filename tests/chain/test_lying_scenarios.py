"""Providers lie at random while the chain grows and is reorganised: what is stored is compared with
the chain as its node has it, and with what subscribers have received."""

from __future__ import annotations

import os
from typing import Any

import pytest

from chain.rpc import requests
from tests.chain.lying_scenarios import Counts, play
from tests.evm.node import Node
from tests.random_seeds import DRAWN, seed_of

pytestmark = pytest.mark.django_db(transaction=True)

SCENARIOS = int(os.environ.get("LYING_SCENARIOS") or 15)
"""Scenarios of each case of the slow test."""
CASES = [(providers, verify) for providers in (1, 2) for verify in ("all", "sample")]


@pytest.fixture(autouse=True)
def with_the_usual_settings(
    without_samples: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default share of samples, and no waiting between two tries."""
    settings.SERVICE = {**settings.SERVICE, "VERIFY_PERCENT": 5}
    monkeypatch.setattr(requests, "_BACKOFF", 0.0)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("providers", "verify"), CASES)
@pytest.mark.slow
def test_lies_leave_nothing_wrong(node: Node, providers: int, verify: str, seed: int) -> None:
    counts = play(node, seed, providers=providers, verify=verify)
    assert not counts.wrong, str(counts)


@pytest.mark.slow
@pytest.mark.parametrize(("providers", "verify"), CASES)
def test_many_lies_leave_nothing_wrong(node: Node, providers: int, verify: str) -> None:
    """``LYING_SCENARIOS`` in the environment is the number of scenarios of each case."""
    first = seed_of(DRAWN)
    total = Counts.none()
    for seed in range(first, first + SCENARIOS):
        total.add(play(node, seed, providers=providers, verify=verify))
    print(total)
    assert not total.wrong, str(total)

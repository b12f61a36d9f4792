"""What a provider allows a second is shared by all processes."""

from __future__ import annotations

from time import monotonic
from uuid import uuid4

import pytest

from chain import rpc
from chain.rpc.client.budget import Budget, OverBudget
from tests.chain.rpc.networks import network, provider
from tests.evm.node import Node
from tests.evm.proxy import proxied


@pytest.fixture
def name() -> str:
    return uuid4().hex


def is_left(wait: float, of: float, since: float) -> bool:
    """Whether this is what is left of a wait that began after ``since``, whoever else has kept the
    machine busy meanwhile."""
    return of - (monotonic() - since) <= wait <= of + 0.001


def test_processes_share_one_budget(name: str) -> None:
    began = monotonic()
    item, other = Budget(name, 10), Budget(name, 10)
    # A second's worth at once, then each in its turn.
    waits = [budget.take(1) for _ in range(6) for budget in (item, other)]
    assert waits[:10] == [0.0] * 10
    assert is_left(waits[11], 0.1, began)


def test_calls_of_a_batch_count_each(name: str) -> None:
    began = monotonic()
    budget = Budget(name, 10)
    assert budget.take(20) == 0.0
    assert is_left(budget.take(1), 1.0, began)


def test_whose_turn_comes_too_late_is_not_counted(name: str) -> None:
    began = monotonic()
    budget = Budget(name, 10)
    budget.take(100)
    for _ in range(5):
        with pytest.raises(OverBudget) as raised:
            budget.take(1)
        assert is_left(raised.value.wait, 9.0, began)


def test_who_has_no_time_doesn_t_wait(name: str) -> None:
    budget = Budget(name, 10)
    budget.take(25)
    with pytest.raises(OverBudget):
        budget.take(1, longest=0.01)


def test_without_redis_a_process_keeps_to_its_share(name: str, settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    began = monotonic()
    budget = Budget(name, 100)
    waits = [budget.take(1) for _ in range(35)]
    assert waits[0] == 0.0
    # A quarter of the rate, after a second's worth.
    assert is_left(waits[-1], 34 / 25 - 1.0, began)


@pytest.mark.django_db
def test_a_provider_over_its_budget_is_left_to_rest_while_another_can_be_queried(
    node: Node,
) -> None:
    network()
    with proxied(node) as first, proxied(node) as second:
        provider(first.url, "first", requests_per_second=2)
        provider(second.url, "second", weight=0)

        def asked(item: rpc.Node) -> str:
            item.batch([("eth_chainId", ())] * 20)
            return item.provider

        assert rpc.attempt(31337, asked) == "first"
        assert rpc.attempt(31337, asked) == "second"
        assert rpc.health(31337)[0].failures == 0

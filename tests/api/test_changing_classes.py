"""Requests to a class that others change all the time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from backend.kernel import principal
from backend.kernel.errors import TransactionConflict
from backend.kernel.limits import result_memory
from objects.access.scope import Scope
from objects.core.names import ClassName
from objects.core.query.node import OrderKey
from objects.core.query.tree import Everything
from objects.definitions import registry
from objects.service import stale_definitions
from objects.storage import reads
from tests.rest import MASTER, Api


def test_a_request_goes_on_when_the_class_has_been_changed_under_it_many_times():
    attempts = 0

    def action() -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 30:
            raise reads.StaleClass([ClassName("Growing")])
        return "done"

    assert stale_definitions.with_current_classes(action) == "done"


@pytest.mark.slow
def test_a_class_that_never_stays_the_same_is_a_conflict():
    def action() -> str:
        raise reads.StaleClass([ClassName("Growing")])

    with pytest.raises(TransactionConflict, match="being changed"):
        stale_definitions.with_current_classes(action)


@pytest.fixture
def sorted_games(transactional_db) -> Callable[[], list[reads.Record]]:
    """Objects of a class sorted by a field: first by its former definition, as another process
    may have it in memory, then by the current one."""
    caller = Api(MASTER)
    assert caller.post("/schemas/Game", {"fields": {"level": {"type": "Number"}}}).status == 200
    former = [registry.find("Game")]
    delete = {"fields": {"level": {"__op": "Delete"}}}
    assert caller.put("/schemas/Game", delete).status == 200
    caller.make("Game", level=True)

    def find() -> list[reads.Record]:
        table = former.pop() if former else registry.find("Game")
        return reads.find(
            table,
            Everything(),
            Scope(principal.MASTER),
            order=[OrderKey(("level",))],
            limit=1,
            memory=result_memory.of_query(),
        )

    return find


@pytest.mark.django_db(transaction=True)
def test_values_that_a_former_definition_cannot_read_are_read_by_the_current_one(sorted_games):
    assert len(stale_definitions.with_current_classes(sorted_games)) == 1


@pytest.mark.django_db(transaction=True)
def test_values_that_a_former_definition_cannot_read_are_a_conflict_in_a_transaction(sorted_games):
    with transaction.atomic(), pytest.raises(TransactionConflict, match="has changed"):
        stale_definitions.with_current_classes(sorted_games)

"""Requests to a class that others change all the time."""

from __future__ import annotations

import pytest

from backend.kernel.errors import TransactionConflict
from objects.core.names import ClassName
from objects.service import stale_definitions
from objects.storage import reads


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

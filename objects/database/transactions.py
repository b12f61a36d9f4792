"""Several writes as one, against others who do the same."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import sleep
from typing import TypeVar

from django.db import connection, transaction

from backend.kernel.errors import TransactionConflict
from backend.kernel.limits.result_memory import checkpoint

_T = TypeVar("_T")

ATTEMPTS = 10
_PAUSE = 0.01  # seconds
_LONGEST_PAUSE = 0.5


def all_or_nothing(action: Callable[[], _T]) -> _T:
    """Return the outcome of an action that writes all that it writes, or nothing.

    One that lost to another transaction is worth repeating, for the other one is through by then;
    it is repeated up to ten times before ``TransactionConflict`` is raised. Inside of a transaction
    it is a part of that, and isn't repeated.
    """
    is_inner = connection.in_atomic_block
    discard = checkpoint()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic():
                return action()
        except TransactionConflict:
            if is_inner or attempt == ATTEMPTS:
                raise
            discard()
            # Two that begin again at the same moment would meet again.
            sleep(uniform(0, min(_PAUSE * 2**attempt, _LONGEST_PAUSE)))
    raise AssertionError("unreachable")

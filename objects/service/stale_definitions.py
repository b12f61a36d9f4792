"""Class definitions in memory that turn out to be outdated."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import uniform
from time import monotonic, sleep
from typing import TypeVar

from django.db import transaction
from psycopg.errors import DataError, UndefinedTable

from backend.kernel.errors import ServiceError, TransactionConflict
from backend.kernel.limits.result_memory import checkpoint
from backend.logs.setup import get_logger
from objects.definitions import registry
from objects.storage import reads

log = get_logger("objects")

_T = TypeVar("_T")

# A class changes rarely; one that changes under so many attempts in a row, for so long, is under
# repair.
_ATTEMPTS = 20
_PATIENCE = 10.0  # seconds
_AT_ONCE = 3
"""So many attempts follow each other; the later ones let the others change the class meanwhile."""
_PAUSE = 0.01  # seconds
_LONGEST = 0.2  # seconds


def with_current_classes(action: Callable[[], _T]) -> _T:
    """Run an action; again with fresh definitions if a class has changed in the meantime.

    Statements find that out themselves. A refusal may come before the first statement, so its
    ground is checked as well: permissions granted by another process hold at once, too.
    """
    missing: UndefinedTable | None = None
    is_checked = False
    end = monotonic() + _PATIENCE
    discard = checkpoint()
    for attempt in count():
        if attempt >= _ATTEMPTS and (missing or monotonic() > end):
            break
        if attempt:
            discard()
        if attempt >= _AT_ONCE:
            sleep(uniform(0, min(_PAUSE * attempt, _LONGEST)))
        try:
            return action()
        except reads.StaleClass as stale:
            for class_name in stale.class_names:
                registry.forget(class_name)
        except (UndefinedTable, DataError) as error:
            # A class in memory that was removed meanwhile, or whose making was rolled back. Or a
            # field that has another type by now: its values fail in the statement before it could
            # compare versions.
            if transaction.get_connection().in_atomic_block:
                # Nothing more can be done in this transaction; the next one will do.
                log.warning("a statement failed within a transaction", exc_info=error)
                registry.forget_all()
                raise TransactionConflict("A class has changed; try again.") from error
            if isinstance(error, UndefinedTable):
                registry.forget_all()
                missing = error
            elif not registry.forget_outdated() and attempt >= _AT_ONCE:
                # Another thread may have forgotten it, but not so often.
                raise
        except ServiceError:
            # Once is enough: the attempt itself may have left a definition that was rolled back.
            if not registry.forget_outdated() or is_checked:
                raise
            is_checked = True
    raise missing or TransactionConflict("The class is being changed; try again.")

"""The bytes of objects that a request with a client's key writes.

A small write of a large object costs PostgreSQL as much as the whole object: it is written again,
to the table and to the log. So a request is limited by what it writes, and not by what it sends.
The last write may exceed the limit by one object.
"""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import ObjectTooLarge
from backend.kernel.memory_pool import LARGEST_OBJECT, MEBIBYTE
from backend.kernel.request_context import current

MOST_WRITTEN: Final = LARGEST_OBJECT


def check() -> None:
    """Raise ``ObjectTooLarge`` if the request has written what it may."""
    budget = current().budget
    if budget is not None and budget.written >= MOST_WRITTEN:
        raise ObjectTooLarge(
            f"A request writes at most {MOST_WRITTEN // MEBIBYTE} MiB of objects, whole objects"
            " counted: change fewer at a time, or store long lists as objects of their own."
        )


def count(size: int) -> None:
    """Count the bytes of an object that was written."""
    budget = current().budget
    if budget is not None:
        budget.written += size

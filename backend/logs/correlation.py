"""The request that work belongs to: its id is in every log line and goes with every task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from structlog.contextvars import bound_contextvars

from backend.kernel.request_context import Current, as_current


@contextmanager
def caused_by(request_id: str) -> Iterator[None]:
    """Run the block as work of a request, which may have ended in another process.

    For what is stored and carried out later, such as a webhook's delivery. Without the id of a
    request the block belongs to the work that is under way.
    """
    if request_id in ("", Current.request_id):
        yield
        return
    with bound_contextvars(request_id=request_id), as_current(Current(request_id)):
        yield

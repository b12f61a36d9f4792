"""What the threads of a dispatcher run."""

from __future__ import annotations

from typing import Any, Protocol

from backend.kernel.errors import ServiceError


class Job(Protocol):
    """A complete request, or a turn of a long response."""

    address: str

    @property
    def is_abandoned(self) -> bool:
        """Whether the client has disconnected: the job is dropped if it still waits (``fail``)."""

    def run(self) -> Any:
        """Return the result. Called in a thread; doesn't raise."""

    def finish(self, result: Any, /) -> None:
        """Take the result. Called in the event loop."""

    def fail(self, error: ServiceError) -> None:
        """Refuse a job that wasn't started. Called in the event loop."""

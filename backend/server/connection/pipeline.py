"""What a connection still has to answer, in order: complete requests, then perhaps a refusal."""

from __future__ import annotations

from collections import deque

from backend.kernel.errors import ServiceError
from backend.server.requests.request import Request


class Pipeline:
    """The complete requests of a connection that wait for the responses before them."""

    __slots__ = ("_requests", "refusal")

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self.refusal: ServiceError | None = None
        """The error that is sent behind all responses, as the last one."""

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def is_due(self) -> bool:
        """Whether a response is still to be sent."""
        return bool(self._requests) or self.refusal is not None

    def add(self, request: Request) -> None:
        """Append a complete request."""
        self._requests.append(request)

    def next_request(self) -> Request | None:
        """Remove the first request and return it; None without one."""
        return self._requests.popleft() if self._requests else None

    def take_refusal(self) -> ServiceError | None:
        """Return the refusal, and forget it."""
        refusal, self.refusal = self.refusal, None
        return refusal

    def end(self) -> None:
        """Close the connection after the response of the last request."""
        if self._requests:
            self._requests[-1].keep_alive = False

    def clear(self) -> None:
        """Free the requests: their client has disconnected."""
        while self._requests:
            self._requests.popleft().free()

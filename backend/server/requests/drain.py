"""Bodies of refused requests that are read to their end before the response is sent.

A proxy that receives the response while it sends the body may take the rest of the body for the
client's next requests. Go's ``net/http`` (in Caddy) sometimes does. Other clients get the response
at once, and the connection lingers.
"""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import ServiceError

_MOST: Final = 256 * 1024 * 1024
"""The connection is dropped after so many bytes of a refused body."""


class Drain:
    """The body of one refused request, and the error that is its response."""

    __slots__ = ("error", "size")

    def __init__(self, error: ServiceError, size: int) -> None:
        """``size`` bytes of the body have been received before."""
        self.error = error
        self.size = size

    def discard(self, piece: bytes) -> bool:
        """Discard a piece of the body; False if the body is longer than any that is drained."""
        self.size += len(piece)
        return self.size <= _MOST

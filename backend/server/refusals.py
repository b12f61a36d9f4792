"""Errors that the server itself answers with."""

from __future__ import annotations

from backend.kernel.errors import (
    CommandUnavailable,
    ObjectTooLarge,
    RateLimited,
    ServiceUnavailable,
    Timeout,
)


class MalformedRequest(CommandUnavailable):
    """A request that isn't well-formed HTTP, or that two parsers could read differently."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message, status=status)


class TooSlow(Timeout):
    """A client that sends its request too slowly."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=408)


class TooManyAtOnce(RateLimited):
    """One client address has too many connections or waiting requests."""

    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("Too many requests at the same time from this address.")


class Overloaded(ServiceUnavailable):
    """No thread, memory or disk space for this request at the moment."""

    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("The service is overloaded. Send the request again later.")


def too_large(limit: int) -> ObjectTooLarge:
    """Return the error for a body of more than ``limit`` bytes."""
    return ObjectTooLarge(f"The request body is larger than {limit} bytes.")

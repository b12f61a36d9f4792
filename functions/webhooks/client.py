"""Requests to webhooks: to allowed addresses only, within a time limit and a size limit.

Each has a connection of its own. On one that is used again, a second response of a receiver would
be taken for the response to the next request (docs/decisions/requests.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend.kernel.outgoing import Client, Response, turn
from backend.kernel.outgoing.addresses import Address, resolved
from backend.kernel.outgoing.connection import Origin
from backend.settings.conf import service_settings


def post(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float | None = None
) -> Response:
    """Send a POST and return the response, in one of the process's turns for requests.

    ``seconds`` is its time, by default ``WEBHOOK_TIMEOUT``. Raises ``Unreachable``.
    """
    with turn(url):
        return send(url, body, headers, seconds)


def send(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float | None = None
) -> Response:
    """As ``post``, for a caller that limits the number of its requests itself."""
    return _client.request(
        "POST",
        url,
        body=body,
        headers=headers,
        seconds=service_settings.WEBHOOK_TIMEOUT if seconds is None else seconds,
        most=service_settings.MAX_BODY_SIZE,
    )


def _resolve(origin: Origin, seconds: float) -> Sequence[Address]:
    return resolved(origin.host, origin.port, seconds, scheme=origin.scheme)


_client = Client(resolve=_resolve)

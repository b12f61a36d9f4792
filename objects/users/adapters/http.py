"""Asking a provider over HTTP: within a time, up to a size, never elsewhere.

Addresses are a deployment's settings, or come from a document that such an address gave. They are
``https``, or ``http`` to this machine where ``DEBUG`` is on and in tests. A redirect is an answer
like any other: no request goes to the place that it names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from backend.kernel.outgoing import PATIENCE, Client, Unreachable, parts_of, turn
from backend.settings.environment import LOOPBACK_HOSTS

__all__ = ["PATIENCE", "Answer", "Unreachable", "allowed", "fetch"]

_CONNECT: Final = 5.0  # seconds for a connection
WHOLE_WAIT = 10.0  # seconds for the answer as a whole
LARGEST_ANSWER = 256 * 1024  # bytes; the longest key lists known have 10 KB

_client = Client(connect_seconds=_CONNECT, uses_proxies=True)


@dataclass(frozen=True)
class Answer:
    """A response of any status."""

    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body, which has to be a JSON object."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Unreachable("the answer is not a JSON object")
        return value


def allowed(url: str) -> bool:
    """Whether the service asks at such an address at all."""
    parts = parts_of(url)
    if parts is None:
        return False
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK_HOSTS and (settings.DEBUG or settings.PROCESS == "test")
    return parts.scheme == "https"


def fetch(
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """GET, or POST the body as JSON. ``Unreachable`` if there is no answer that can be used."""
    if not allowed(url):
        raise Unreachable("the address is not one to ask at")
    lines = {"Accept": "application/json", "User-Agent": "svc-backend"} | dict(headers or {})
    content = None
    if body is not None:
        content = json.dumps(body).encode()
        lines["Content-Type"] = "application/json"
    with turn(url):
        response = _client.request(
            "GET" if content is None else "POST",
            url,
            body=content,
            headers=lines,
            seconds=WHOLE_WAIT,
            most=LARGEST_ANSWER,
        )
    return Answer(response.status, response.body)
